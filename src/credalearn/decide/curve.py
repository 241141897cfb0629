"""Coverage against error, with intervals: what a page draws.

Shapes: N items, G thresholds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from credalearn.decide.bounds import interval, upper_bound
from credalearn.decide.sample import as_sample
from credalearn.errors import CredalError


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """For each threshold what it keeps and how wrong that is, from few items kept to all.

    Args:
        thresholds: Scores, ascending, shape (G,); items with equal scores go together.
        kept: How many items have this score or less, shape (G,), int64.
        coverage: Their share of all items, shape (G,).
        error: Share of them that is wrong, shape (G,).
        low: Lower end of the error's interval, at each point alone, shape (G,).
        high: Upper end, shape (G,).
        upper: One-sided bound at the level of one of SGR's tests: where it is at most max_error, a
            test of SGR passes, shape (G,).

    Example:
        >>> curve = coverage_curve([0.1, 0.2, 0.2], [False, False, True])
        >>> curve.kept.tolist(), curve.error.round(2).tolist()
        ([1, 3], [0.0, 0.33])
    """

    thresholds: np.ndarray
    kept: np.ndarray
    coverage: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    upper: np.ndarray


def coverage_curve(
    score: ArrayLike, wrong: ArrayLike, *, confidence: float = 0.95, points: int | None = None
) -> CoverageCurve:
    """Error, interval and bound at every threshold, or at ``points`` of them spread evenly.

    Exact, as in :func:`~credalearn.certify`. What a rule certifies is the part of the curve up to
    its coverage. A hundred thousand points take 0.8 s, nearly all of it for the bounds.

    Args:
        score: Uncertainty, shape (N,).
        wrong: Errors, shape (N,).
        confidence: Of the intervals and of SGR, in (0, 1).
        points: The most thresholds to return, 2 or more; None: all.

    Raises:
        CredalError: If an option is out of range, and as :func:`~credalearn.certify`.

    Example:
        >>> curve = coverage_curve([0.1, 0.2, 0.3], [False, False, True])
        >>> curve.coverage.round(2).tolist(), curve.high.round(3).tolist()
        ([0.33, 0.67, 1.0], [0.975, 0.842, 0.906])
    """
    if not 0 < confidence < 1 or (points is not None and points < 2):
        raise CredalError(
            "confidence must lie in (0, 1) and points be 2 or more; "
            f"got confidence={confidence!r}, points={points!r}."
        )
    whole = as_sample(score, wrong)
    sample, binary = whole if points is None else whole.thinned(points), whole.binary
    low, high = interval(sample.errors, sample.kept, confidence=confidence, binary=binary)
    level = (1 - confidence) / whole.num_items.bit_length()
    return CoverageCurve(
        thresholds=sample.thresholds,
        kept=sample.kept.astype(np.int64),
        coverage=sample.kept / whole.num_items,
        error=sample.errors / sample.kept,
        low=low,
        high=high,
        upper=upper_bound(sample.errors, sample.kept, level=level, binary=binary),
    )
