"""The accuracy-rejection curves, and the slider that walks along the first of them.

Shapes: N items, T thresholds, R rows of the table by class.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from credalearn._formats import number, percent
from credalearn.app.report.evaluation import NO_TRUTH, HeldOut
from credalearn.guarantees._bounds import interval
from credalearn.guarantees._truths import HAVING

CONFIDENCE = 0.95  # of every interval on the page
KEEP_NONE = -1.0  # a threshold below every score
MOST_THRESHOLDS = 500
_MOST_ROWS = 24  # classes with a row of their own


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a threshold does to the test items: those with a score up to it are kept."""

    threshold: float  # largest score that is kept
    items: int  # number of items
    kept: int  # number of kept items
    judged: int  # number of kept items that have a truth
    wrong: int  # number of those with a wrong label
    low: float  # lower end of the 95 % Clopper-Pearson interval of wrong / judged
    high: float  # upper end

    @property
    def coverage(self) -> float:
        """Share of the items that is kept."""
        return self.kept / self.items

    @property
    def error(self) -> float | None:
        """Share of wrong labels among the kept items with a truth; None where there are none."""
        return self.wrong / self.judged if self.judged else None

    @property
    def accuracy(self) -> float | None:
        """One minus the error."""
        return 1 - self.wrong / self.judged if self.judged else None

    @property
    def reading(self) -> dict[str, str]:
        """What the slider shows, by the name of its slot: the page's script formats no number."""
        return {
            "threshold": number(self.threshold) if self.kept else "–",
            "kept": percent(self.coverage),
            "kept_count": number(self.kept),
            "deferred": percent(1 - self.coverage),
            "deferred_count": number(self.items - self.kept),
            "error": percent(self.error),
            "low": percent(self.low),
            "high": percent(self.high),
            "wrong": number(self.wrong),
            "judged": number(self.judged),
        }


@dataclass(frozen=True, slots=True)
class Curve:
    """Outcomes from deferring every item to keeping every item, by ascending threshold."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def judged(self) -> list[Outcome]:
        """Outcomes that keep an item with a truth, so that they have an accuracy."""
        return [each for each in self.outcomes if each.judged]

    def nearest(self, coverage: float) -> Outcome:
        """The outcome whose coverage is nearest to this one."""
        return min(self.outcomes, key=lambda each: abs(each.coverage - coverage))

    def coverage_at(self, max_error: float) -> float:
        """The largest coverage with an observed error of at most this."""
        return max(each.coverage for each in self.outcomes if (each.error or 0) <= max_error)


def threshold_curve(held_out: HeldOut, score: str, *, threshold: float | None = None) -> Curve:
    """The curve of one score."""
    values = held_out.scores[score]
    limits = np.unique(values)
    if len(limits) > MOST_THRESHOLDS - 2:
        places = np.linspace(0, len(limits) - 1, MOST_THRESHOLDS - 2)
        limits = limits[places.round().astype(int)]
    chosen = [] if threshold is None else [threshold]
    limits = np.unique([KEEP_NONE, *limits, *chosen])
    # Of thresholds that keep the same items, the largest: a chosen one is not lost.
    limits = limits[np.append(np.diff(_count(values, limits)) > 0, True)]
    return Curve(score, outcomes(held_out, limits, values))


def outcomes(held_out: HeldOut, thresholds: np.ndarray, values: np.ndarray) -> tuple[Outcome, ...]:
    """What each threshold does."""
    kept = _count(values, thresholds)
    judged = _count(values[held_out.judged], thresholds)
    wrong = _count(values[held_out.wrong], thresholds)
    low, high = interval(wrong, judged, confidence=CONFIDENCE, binary=True)
    columns = (np.asarray(each).tolist() for each in (thresholds, kept, judged, wrong, low, high))
    return tuple(
        Outcome(limit, len(values), *counts) for limit, *counts in zip(*columns, strict=True)
    )


def class_rows(held_out: HeldOut, thresholds: np.ndarray) -> list[tuple[str, int, list[int]]]:
    """Each true class, its test items, and how many each threshold defers; small ones share."""
    truth, score = held_out.truth, held_out.score
    sizes = np.bincount(truth[truth != NO_TRUTH], minlength=len(held_out.classes))
    most = _MOST_ROWS + (len(sizes) == _MOST_ROWS + 1)  # a single class needs no shared row
    largest = np.sort(np.argsort(-sizes, kind="stable")[:most])
    members = [(held_out.classes[k], truth == k) for k in largest]
    if len(largest) < len(sizes):
        members.append(("other classes", held_out.judged & ~np.isin(truth, largest)))
    if not held_out.judged.all():
        members.append((without_truth(held_out), ~held_out.judged))
    return [
        (name, int(mask.sum()), (mask.sum() - _count(score[mask], thresholds)).tolist())
        for name, mask in members
    ]


def without_truth(held_out: HeldOut) -> str:
    """What an item without a truth is called, such as "no single most-voted class"."""
    return f"no {HAVING[held_out.against].removeprefix('a ')}"


def _count(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many values are at most each threshold."""
    return np.searchsorted(np.sort(values), thresholds, side="right")


@dataclass(frozen=True, slots=True, eq=False)
class Slider:
    """The curves, and what the slider shows at each threshold of the first."""

    curves: tuple[Curve, ...]  # one curve per score; items are deferred by the first
    start: int  # where the slider stands first
    # By true class: its name, its test items, those deferred at each threshold of the first curve.
    rows: list[tuple[str, int, list[int]]]
    decided: bool  # whether the start is the threshold of a guarantee

    @classmethod
    def of(cls, held_out: HeldOut, threshold: float | None) -> Self:
        """Start at the threshold of the guarantee, or keep every item where there is none."""
        first, *others = held_out.scores
        curve = threshold_curve(held_out, first, threshold=threshold)
        limits = np.array([each.threshold for each in curve.outcomes])
        largest = math.inf if threshold is None else threshold
        return cls(
            curves=(curve, *(threshold_curve(held_out, name) for name in others)),
            start=int(np.searchsorted(limits, largest, side="right")) - 1,
            rows=class_rows(held_out, limits),
            decided=threshold is not None,
        )

    @property
    def outcome(self) -> Outcome:
        """Where the slider stands first."""
        return self.curves[0].outcomes[self.start]

    def class_readings(self, place: int) -> list[dict[str, Any]]:
        """Deferred items by true class at a position."""
        found = []
        for _, total, deferred in self.rows:
            share = deferred[place] / total if total else None
            reading = {"deferred": number(deferred[place]), "share": percent(share)}
            found.append({**reading, "width": round(100 * (share or 0), 1)})
        return found

    def script_data(self) -> dict[str, Any]:
        """The curves and every reading, for the page's script."""
        first = self.curves[0].outcomes
        return {
            "start": self.start,
            "chart": self.chart_data(self.curves),
            "band": [[100 * o.coverage, 100 - 100 * o.high, 100 - 100 * o.low] for o in first],
            "readings": [
                {
                    "share": 1 - outcome.coverage,
                    "texts": outcome.reading,
                    "classes": self.class_readings(place),
                }
                for place, outcome in enumerate(first)
            ],
        }

    @staticmethod
    def chart_data(curves: Sequence[Curve]) -> dict[str, Any]:
        """Points of the curves, x and y in percent with their texts; where the y axis starts."""
        # Below a tenth of the items a handful decides: those points do not set the scale.
        errors = [
            each.error or 0 for curve in curves for each in curve.judged if each.coverage >= 0.1
        ]

        def point(each: Outcome) -> list[float | str]:
            x, y = 100 * each.coverage, 100 - 100 * (each.error or 0)
            return [x, y, percent(each.coverage), percent(each.accuracy)]

        return {
            "floor": max(0, 5 * math.floor(20 * (1 - max(errors, default=1)) - 1)),
            "curves": [{"name": c.name, "points": [*map(point, c.judged)]} for c in curves],
        }
