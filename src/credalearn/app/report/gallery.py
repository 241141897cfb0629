"""The least certain test items, as the page shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from credalearn.app.images import find_images, thumbnail
from credalearn.app.report.held_out import NO_TRUTH, HeldOut
from credalearn.app.report.threshold_curve import without_truth

MOST_ITEMS = 24
_LONGEST_NAME = 200  # an item may be named by its whole text
_MOST_CLASSES = 5


@dataclass(frozen=True, slots=True)
class ClassBar:
    """One class of an item: the probability by each head, and the bounds of the widened set."""

    name: str
    probabilities: tuple[float, ...]
    widened: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class GalleryItem:
    """An item of the gallery."""

    name: str  # its name, shortened where it is long
    label: str  # the predicted class
    truth: str  # the true class, or what it lacks to have one
    votes: tuple[tuple[str, float], ...]  # votes by class, most first
    bars: tuple[ClassBar, ...]  # the likeliest classes, most probable first
    image: str | None  # thumbnail as a data URI, if there is one
    text: str  # its text, or the start of it; empty without


def gallery(
    held_out: HeldOut,
    kept: np.ndarray | None,
    folder: Path | None,
    bounds: tuple[np.ndarray, np.ndarray] | None,
    texts: Mapping[str, str],
) -> tuple[GalleryItem, ...]:
    """The least certain deferred items, or of all items where nothing is decided."""
    order = np.argsort(-held_out.score, kind="stable")
    if kept is not None:
        order = order[~kept[order]]
    rows = order[:MOST_ITEMS].tolist()
    files = find_images(folder, [held_out.items[row] for row in rows]) if folder else {}
    images = {item: thumbnail(path) for item, (path, _) in files.items()}
    classes, found = held_out.classes, []
    for row in rows:
        name, probs, votes = held_out.items[row], held_out.probs[row], held_out.votes[row]
        truth = int(held_out.truth[row])
        # A class that people voted for is shown even where the model gives it little.
        shown = np.argsort(-(probs + (votes > 0)), kind="stable")[:_MOST_CLASSES]
        shown = shown[np.argsort(-probs[shown], kind="stable")]
        voted = [k for k in np.argsort(-votes, kind="stable") if votes[k]]
        bars = [
            ClassBar(
                name=classes[k],
                probabilities=tuple(float(head[row, k]) for head in held_out.heads.values()),
                widened=bounds and (float(bounds[0][row, k]), float(bounds[1][row, k])),
            )
            for k in shown
        ]
        item = GalleryItem(
            name=name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
            label=classes[int(held_out.label[row])],
            truth=without_truth(held_out) if truth == NO_TRUTH else classes[truth],
            votes=tuple((classes[k], float(votes[k])) for k in voted),
            bars=tuple(bars),
            image=images.get(name),
            text=texts.get(name, ""),
        )
        found.append(item)
    return tuple(found)
