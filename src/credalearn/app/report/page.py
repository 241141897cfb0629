"""Everything that the report page shows, computed before any HTML is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credalearn.app.images import find_images, thumbnail
from credalearn.app.report.baseline import Baseline, above_promise, baseline
from credalearn.app.report.evaluation import NO_TRUTH, HeldOut
from credalearn.app.report.rule_check import HeldOutCheck, check_rule
from credalearn.app.report.threshold_curve import (
    KEEP_NONE,
    Slider,
    threshold_curve,
    without_truth,
)
from credalearn.app.run import Run
from credalearn.guarantees import Guarantee

if TYPE_CHECKING:
    from credalearn.app.steps.set_coverage import WidenedSets

_MATRIX_CLASSES = 12  # larger matrices do not fit the page
_MOST_PAIRS = 15
MOST_ITEMS = 24  # of the gallery
_LONGEST_NAME = 200  # an item may be named by its whole text
_MOST_CLASSES = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The headline: what is promised, and how it does on the test items."""

    guarantee: Guarantee | None  # what ``certify`` found; None before
    check: HeldOutCheck | None = None  # what its rule does on the test items
    baseline: Baseline | None = None  # the most frequent class as a rival; None without a truth
    above: str = ""  # whether chance explains more errors than promised; empty without more
    contradicted: bool = False  # whether chance gives so many errors in under 5 % of cases
    outdated: str | None = None  # why the promise no longer holds, if newer items showed it

    @property
    def state(self) -> Literal["open", "capacity", "cautious", "certified"]:
        """What kind of verdict it is; cautious: certified, but amber."""
        if self.guarantee is None:
            return "open"
        if not self.guarantee.certified:
            return "capacity"
        return "cautious" if self.cautions else "certified"

    @property
    def cautions(self) -> list[str]:
        """Why a certified threshold is shown in amber; empty where it is green."""
        old = [] if self.outdated is None else [f"out of date, {self.outdated.rstrip('.')}"]
        old += ["the test items contradict the guarantee"] if self.contradicted else []
        return old + ([] if self.baseline is None else self.baseline.cautions)


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What the charts, the slider and the tables show."""

    verdict: Verdict  # the headline
    held_out: HeldOut  # the test items
    slider: Slider  # the curves and what the slider shows
    class_votes: tuple[tuple[str, float], ...]  # votes by class over all items, most first
    confusions: list[dict[str, Any]]  # of all items, or of the kept and of the deferred items
    gallery: list[dict[str, Any]] | None  # the least certain test items; None to show none
    compared: list[dict[str, Any]]  # this run and others; empty without others

    @property
    def shaded(self) -> bool:
        """Whether the promise is about the error that the curve shows, so that it can be drawn."""
        rule = self.verdict.guarantee
        return (
            self.verdict.state in ("certified", "cautious")
            and rule is not None
            and rule.max_error is not None
            and rule.confidence is not None
            and rule.against == self.held_out.against
            and not rule.class_thresholds
        )

    @property
    def same_items(self) -> bool:
        """Whether all runs were tested on the same items."""
        return len({frozenset(each["held_out"].items) for each in self.compared}) == 1

    def script_data(self) -> dict[str, Any]:
        """The numbers and texts behind the charts and the slider."""
        data = self.slider.script_data()
        if self.shaded and self.verdict.check and self.verdict.guarantee:
            coverage, limit = self.verdict.check.coverage, self.verdict.guarantee.max_error or 0.0
            data["region"] = {"right": 100 * coverage, "bottom": 100 - 100 * limit}
        found = self.held_out.reliability
        bins = zip(found.confidence, found.accuracy, found.count, strict=True)
        data["bins"] = [[100 * stated, 100 * right, n] for stated, right, n in bins if n]
        if self.compared:
            data["runs"] = Slider.chart_data([each["curve"] for each in self.compared])
        return data


def build_page(
    run: Run,
    held_out: HeldOut,
    *,
    widened: "WidenedSets | None",
    others: Sequence[Run],
    images: Path | None,
    items: bool,
) -> Page:
    """Compute the page of a run."""
    guarantee = run.guarantee
    kept, threshold, verdict = None, None, Verdict(None, outdated=run.outdated)
    if guarantee is not None:
        kept = held_out.kept_by(guarantee)
        check, rival = check_rule(run, guarantee), baseline(run, guarantee)
        above = above_promise(guarantee, check.errors, check.judged_kept)
        verdict = Verdict(guarantee, check, rival, *above, outdated=run.outdated)
        if not guarantee.class_thresholds:  # the slider has one for all classes
            threshold = KEEP_NONE if guarantee.threshold is None else guarantee.threshold
    bounds = (widened.lower, widened.upper) if widened is not None else None
    rows = {"kept": kept, "deferred": ~kept} if kept is not None else {"all": held_out.score >= 0}
    votes = {name: float(run.items[f"n:{name}"].sum()) for name in run.classes}
    return Page(
        verdict=verdict,
        held_out=held_out,
        slider=Slider.of(held_out, threshold),
        class_votes=tuple(sorted(votes.items(), key=lambda each: -each[1])),
        confusions=[_confusion(held_out, which, each) for which, each in rows.items()],
        gallery=_gallery(held_out, kept, images, bounds, run.texts) if items else None,
        compared=_compared(run, held_out, others) if others else [],
    )


def _compared(run: Run, held_out: HeldOut, others: Sequence[Run]) -> list[dict[str, Any]]:
    """This run and others, named by their folders; by the whole path where two have one name."""
    paths = [each.path.resolve() for each in (run, *others)]
    names, found = [path.name for path in paths], []
    for each, path in zip((run, *others), paths, strict=True):
        items, rule = held_out if each is run else HeldOut.of(each), each.guarantee
        name = path.name if names.count(path.name) == 1 else str(path)
        curve = replace(threshold_curve(items, next(iter(items.scores))), name=name)
        kept = float(items.kept_by(rule).mean()) if rule and rule.certified else None
        found.append({"run": each, "held_out": items, "name": name, "curve": curve, "kept": kept})
    return found


def _confusion(held_out: HeldOut, which: str, rows: np.ndarray) -> dict[str, Any]:
    """True against predicted classes of some items, bool (N,): a matrix if the classes are few."""
    classes = held_out.classes
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    chosen = rows & held_out.judged
    np.add.at(counts, (held_out.truth[chosen], held_out.label[chosen]), 1)
    mistakes = counts - np.diag(np.diag(counts))
    order = np.argsort(-mistakes, axis=None, kind="stable")[:_MOST_PAIRS]
    pairs = [divmod(int(flat), len(classes)) for flat in order]
    return {
        "which": which,
        "items": int(counts.sum()),
        "wrong": int(mistakes.sum()),
        "matrix": counts.tolist() if len(classes) <= _MATRIX_CLASSES else [],
        # The most frequent mistakes: truth, label, items.
        "pairs": [
            (classes[t], classes[p], int(mistakes[t, p])) for t, p in pairs if mistakes[t, p]
        ],
    }


def _gallery(
    held_out: HeldOut,
    kept: np.ndarray | None,
    folder: Path | None,
    bounds: tuple[np.ndarray, np.ndarray] | None,
    texts: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The least certain deferred items, or of all items where nothing is decided."""
    order = np.argsort(-held_out.score, kind="stable")
    if kept is not None:
        order = order[~kept[order]]
    rows = order[:MOST_ITEMS].tolist()
    files = find_images(folder, [held_out.items[row] for row in rows]) if folder else {}
    images = {item: thumbnail(path) for item, path in files.items()}
    classes, found = held_out.classes, []
    for row in rows:
        name, probs, votes = held_out.items[row], held_out.probs[row], held_out.votes[row]
        truth = int(held_out.truth[row])
        # A class that people voted for is shown even where the model gives it little.
        shown = np.argsort(-(probs + (votes > 0)), kind="stable")[:_MOST_CLASSES]
        shown = shown[np.argsort(-probs[shown], kind="stable")]
        voted = [k for k in np.argsort(-votes, kind="stable") if votes[k]]
        bars = [
            {
                "name": classes[k],
                "probabilities": [float(head[row, k]) for head in held_out.heads.values()],
                "widened": bounds and (float(bounds[0][row, k]), float(bounds[1][row, k])),
            }
            for k in shown
        ]
        item = {
            "name": name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
            "label": classes[int(held_out.label[row])],
            "truth": without_truth(held_out) if truth == NO_TRUTH else classes[truth],
            "votes": [(classes[k], float(votes[k])) for k in voted],
            "bars": bars,
            "image": images.get(name),
            "text": texts.get(name, ""),
        }
        found.append(item)
    return found
