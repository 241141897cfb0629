"""The accuracy-rejection curves and the slider that walks along the first of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from credalearn._formats import number, percent
from credalearn.app.report.held_out import HeldOut
from credalearn.app.report.threshold_curve import (
    ClassRows,
    Curve,
    Outcome,
    class_rows,
    threshold_curve,
)


@dataclass(frozen=True, slots=True, eq=False)
class Slider:
    """The curves, and what the slider shows at each threshold of the first."""

    curves: tuple[Curve, ...]  # one curve per score; items are deferred by the first
    start: int  # where the slider stands first
    rows: ClassRows  # deferred items by true class at each threshold of the first curve
    decided: bool  # whether the start is the threshold of a guarantee

    @classmethod
    def of(cls, held_out: HeldOut, threshold: float | None) -> Self:
        """Start at the threshold of the guarantee, or keep every item where there is none."""
        first, *others = held_out.scores
        curve = threshold_curve(held_out, first, threshold=threshold)
        limits = np.array([each.threshold for each in curve.outcomes])
        return cls(
            curves=(curve, *(threshold_curve(held_out, name) for name in others)),
            start=curve.position(math.inf if threshold is None else threshold),
            rows=class_rows(held_out, limits),
            decided=threshold is not None,
        )

    @property
    def outcome(self) -> Outcome:
        """Where the slider stands first."""
        return self.curves[0].outcomes[self.start]

    @property
    def reading(self) -> dict[str, str]:
        """What it shows there."""
        return _reading(self.outcome)

    def class_readings(self, place: int) -> list[dict[str, str | float]]:
        """Deferred items by true class at a position."""
        counts = zip(self.rows.deferred[place].tolist(), self.rows.totals, strict=True)
        shares = [(count, count / total if total else None) for count, total in counts]
        return [
            {
                "deferred": number(count),
                "share": percent(share),
                "width": round(100 * (share or 0), 1),
            }
            for count, share in shares
        ]

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
                    "texts": _reading(outcome),
                    "classes": self.class_readings(place),
                }
                for place, outcome in enumerate(first)
            ],
        }

    @staticmethod
    def chart_data(curves: Sequence[Curve]) -> dict[str, Any]:
        """Points of the curves, x and y in percent with their texts, and where the y axis starts.

        Below a tenth of the items a handful of items decides: those points do not set the scale.
        """
        errors = [
            each.error or 0 for curve in curves for each in curve.judged if each.coverage >= 0.1
        ]
        return {
            "floor": max(0, 5 * math.floor(20 * (1 - max(errors, default=1)) - 1)),
            "curves": [
                {"name": curve.name, "points": [_point(each) for each in curve.judged]}
                for curve in curves
            ],
        }


def _point(outcome: Outcome) -> list[float | str]:
    x, y = 100 * outcome.coverage, 100 - 100 * (outcome.error or 0)
    return [x, y, percent(outcome.coverage), percent(outcome.accuracy)]


def _reading(outcome: Outcome) -> dict[str, str]:
    """What the slider shows, by the name of its slot: the page's script formats no number."""
    return {
        "threshold": number(outcome.threshold) if outcome.kept else "–",
        "kept": percent(outcome.coverage),
        "kept_count": number(outcome.kept),
        "deferred": percent(1 - outcome.coverage),
        "deferred_count": number(outcome.deferred),
        "error": percent(outcome.error),
        "low": percent(outcome.low),
        "high": percent(outcome.high),
        "wrong": number(outcome.wrong),
        "judged": number(outcome.judged),
    }
