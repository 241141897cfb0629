"""Every threshold of a score and what deferring by it does: the table behind the slider.

Shapes: N items, P positions, G groups of classes.
"""

from dataclasses import dataclass

import numpy as np

from credalearn.app.report.heldout import NO_TRUTH, HeldOut
from credalearn.errors import CredalError
from credalearn.guarantees.bounds import interval

MOST_POSITIONS = 500
_MOST_GROUPS = 24  # classes with a row of their own; the others share one, if they are several
OTHERS = "other classes"


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """From deferring everything to keeping everything, one position a threshold.

    Args:
        score: Name of the score.
        thresholds: Items with at most this score are kept; −1 keeps none. Ascending, shape (P,).
        kept: Items kept, shape (P,).
        judged: Of these, items with a truth, shape (P,).
        wrong: Of these, items with a wrong label, shape (P,).
        low: Lower end of the 95 % Clopper–Pearson interval of wrong / judged, shape (P,).
        high: Its upper end, shape (P,).
        deferred: Items deferred by group of true classes, shape (P, G).

    Example:
        Keep none, or one of two items.

        >>> none, one = np.array([0, 1]), np.array([0, 1])
        >>> ends = np.array([0.0, 0.1]), np.array([1.0, 0.9])
        >>> two = Walk("mmi", np.array([-1.0, 0.3]), none, none, one, *ends, np.zeros((2, 1)))
        >>> two.position(0.2), two.position(0.3), two.error(0), two.error(1)
        (0, 1, None, 1.0)
    """

    score: str
    thresholds: np.ndarray
    kept: np.ndarray
    judged: np.ndarray
    wrong: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deferred: np.ndarray

    def position(self, threshold: float) -> int:
        """The last position whose threshold is not above this one."""
        return int(np.searchsorted(self.thresholds, threshold, side="right")) - 1

    def error(self, position: int) -> float | None:
        """Share of wrong labels among the kept that have a truth; None where there are none."""
        judged = int(self.judged[position])
        return int(self.wrong[position]) / judged if judged else None

    def coverage(self, position: int) -> float:
        """Share of the items that is kept."""
        return int(self.kept[position]) / int(self.kept[-1])

    def coverage_at(self, max_error: float) -> float:
        """The largest coverage whose observed error is at most this; 0 where there is none."""
        errors = (self.error(place) for place in range(len(self.kept)))
        fits = [place for place, error in enumerate(errors) if error is None or error <= max_error]
        return self.coverage(fits[-1])


def walk(
    held_out: HeldOut,
    score: str,
    groups: np.ndarray,
    num_groups: int,
    *,
    threshold: float | None = None,
    only: np.ndarray | None = None,
) -> Walk:
    """What each threshold does to the test items.

    Args:
        held_out: The test items.
        score: The score to defer by.
        groups: Which row each item counts in, shape (N,).
        num_groups: How many rows there are.
        threshold: A certified threshold, which gets a position of its own.
        only: Which items to take, bool of shape (N,); None for all.

    Raises:
        CredalError: If there is no such score.

    Example:
        >>> one = HeldOut(("a", "b"), ("cat", "dog"), np.array([[0.9, 0.1], [0.6, 0.4]]),
        ...               np.array([0, 0]), np.array([0, 1]), {"mmi": np.array([0.2, 0.5])},
        ...               np.zeros((2, 2)))
        >>> found = walk(one, "mmi", np.array([0, 1]), 2)
        >>> found.thresholds.tolist(), found.kept.tolist(), found.wrong.tolist()
        ([-1.0, 0.2, 0.5], [0, 1, 2], [0, 0, 1])
    """
    if score not in held_out.scores:
        known = ", ".join(held_out.scores)
        raise CredalError(f"score must be one of {known}; got {score!r}.")
    taken = np.ones(len(held_out.items), dtype=bool) if only is None else only
    values, groups = held_out.scores[score][taken], groups[taken]
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    kept, thresholds = _stops(ordered, threshold)

    def until(flags: np.ndarray) -> np.ndarray:
        """How many of the flags are among the kept, at each position."""
        found: np.ndarray = np.append(0, flags[order].cumsum())[kept]
        return found

    judged, wrong = until(held_out.judged[taken]), until(held_out.wrong[taken])
    low, high = interval(wrong, judged, confidence=0.95, binary=True)
    totals = np.bincount(groups, minlength=num_groups)
    deferred = [totals[g] - until(groups == g) for g in range(num_groups)]
    return Walk(score, thresholds, kept, judged, wrong, low, high, np.stack(deferred, axis=1))


def _stops(ordered: np.ndarray, threshold: float | None) -> tuple[np.ndarray, np.ndarray]:
    """How many items are kept at each position, and by which threshold."""
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) + 1  # of equal scores
    if len(ends) > MOST_POSITIONS - 2:
        chosen = np.linspace(0, len(ends) - 1, MOST_POSITIONS - 2).round().astype(int)
        ends = ends[chosen]
    limits = dict(zip(ends.tolist(), ordered[ends - 1].tolist(), strict=True))
    limits = {0: -1.0} | limits  # a score is never below 0
    if threshold is not None:  # its own number, not the largest test score below it
        limits[int(np.searchsorted(ordered, threshold, side="right"))] = threshold
    kept = np.array(sorted(limits))
    return kept, np.array([limits[count] for count in kept.tolist()])


def class_groups(held_out: HeldOut) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the rows in which deferrals are counted, and the row of each item, shape (N,).

    A row a true class, one for items without, and one for all but the largest where there are many.
    """
    truth = held_out.truth
    sizes = np.bincount(truth[truth != NO_TRUTH], minlength=len(held_out.classes))
    most = _MOST_GROUPS + (len(sizes) == _MOST_GROUPS + 1)  # a single one needs no row to share
    largest = np.sort(np.argsort(-sizes, kind="stable")[:most])
    names = [held_out.classes[place] for place in largest]
    row_of = np.full(len(held_out.classes), len(names))
    row_of[largest] = np.arange(len(largest))
    if len(largest) < len(held_out.classes):
        names.append(OTHERS)
    groups = np.where(truth == NO_TRUTH, len(names), row_of[truth])
    if (truth == NO_TRUTH).any():
        names.append(held_out.no_truth)
    return tuple(names), groups
