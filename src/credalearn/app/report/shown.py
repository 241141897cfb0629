"""The items that the gallery shows, least certain first."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credalearn.app.report.heldout import NO_TRUTH, HeldOut
from credalearn.app.report.holding import WidenedSets
from credalearn.app.report.verdict import PageRule

MOST_SHOWN = 24  # items in the gallery
_LONGEST_NAME = 200  # letters: an item may be named by its whole text
_MOST_BARS = 5  # classes an item of the gallery shows


@dataclass(frozen=True, slots=True)
class Shown:
    """An item of the gallery.

    Args:
        item: Its name.
        label: The predicted class.
        truth: The true class, or that there is none: "no single most-voted class".
        score: Its uncertainty, by the score that defers.
        votes: Classes with votes, most first.
        bars: By class, most probable first, the probability each head gives.
        image: The thumbnail as a data URI; None where there is none.
        widened: For each class of the bars, its bounds in the widened set; none without one.

    Example:
        >>> Shown("a.png", "cat", "dog", 0.5, (("cat", 1.0),), (("cat", (0.2, 0.6)),)).truth
        'dog'
    """

    item: str
    label: str
    truth: str
    score: float
    votes: tuple[tuple[str, float], ...]
    bars: tuple[tuple[str, tuple[float, ...]], ...]
    image: str | None = None
    widened: tuple[tuple[float, float], ...] = ()


def gallery_rows(held_out: HeldOut, score: str, threshold: float | None) -> list[int]:
    """Rows of the deferred items that are least certain; of all items where there is no rule."""
    values = held_out.scores[score]
    order = np.argsort(-values, kind="stable")
    if threshold is not None:
        order = order[values[order] > threshold]
    return [int(row) for row in order[:MOST_SHOWN]]


def gallery(
    held_out: HeldOut,
    score: str,
    rule: PageRule | None,
    images: Mapping[str, str],
    widened: WidenedSets | None = None,
) -> tuple[Shown, ...]:
    """These items, with what people said and what each head says of the likeliest classes."""
    found = []
    classes = held_out.classes
    heads = list(held_out.heads.values()) or [held_out.probs]
    for row in gallery_rows(held_out, score, rule.threshold if rule else None):
        votes = held_out.votes[row]
        truth = int(held_out.truth[row])
        # What people said is shown even where the model gives it little.
        weight = held_out.probs[row] + (votes > 0)
        order = np.argsort(-weight, kind="stable")[:_MOST_BARS]
        order = order[np.argsort(-held_out.probs[row][order], kind="stable")]
        item = held_out.items[row]
        found.append(
            Shown(
                item=item if len(item) <= _LONGEST_NAME else f"{item[:_LONGEST_NAME]}…",
                label=classes[int(held_out.label[row])],
                truth=held_out.no_truth if truth == NO_TRUTH else classes[truth],
                score=float(held_out.scores[score][row]),
                votes=tuple(
                    (classes[k], float(votes[k]))
                    for k in np.argsort(-votes, kind="stable")
                    if votes[k] > 0
                ),
                bars=tuple((classes[k], tuple(float(h[row, k]) for h in heads)) for k in order),
                image=images.get(item),
                widened=_bounds(widened, row, order),
            )
        )
    return tuple(found)


def _bounds(
    widened: WidenedSets | None, row: int, order: np.ndarray
) -> tuple[tuple[float, float], ...]:
    """Of these classes, the bounds in the item's widened set, if that promises anything."""
    if widened is None or not widened.promised:
        return ()
    return tuple((float(widened.lower[row, k]), float(widened.upper[row, k])) for k in order)
