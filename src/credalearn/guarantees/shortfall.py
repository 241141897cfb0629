"""What it would take to certify a target that these calibration items cannot."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from credalearn._formats import percent
from credalearn.guarantees._sample import Sample
from credalearn.guarantees._search import CERTIFIERS

_MOST_ITEMS = 10**9  # more counts as never
_FIRM = 20  # the error among fewer kept items is too uncertain to extrapolate
_GROUPS = 500  # thresholds, enough for an estimate
_STEP = 0.001  # of max_error


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What it would take to certify a target, and what can be certified instead.

    Args:
        items_needed: About how many calibration items it would take, if more of them had the same
            scores and error rates; None where no number would do.
        reachable_error: The smallest max_error, in steps of 0.1 %, that these items can certify by
            the same method; None where there is none. To certify it, use new items: trying it on
            the same ones is a second look at them.
        reachable_coverage: The share of items kept there; None likewise.

    Example:
        >>> print(Shortfall(94, 0.31, 0.5))
        It would take about 94 calibration items like these. With these items an error of 31 % can
        be certified, keeping 50 %.
    """

    items_needed: int | None
    reachable_error: float | None
    reachable_coverage: float | None

    def __str__(self) -> str:
        needed = (
            "No number of calibration items like these would do."
            if self.items_needed is None
            else f"It would take about {self.items_needed:,} calibration items like these."
        )
        if self.reachable_error is None or self.reachable_coverage is None:
            return needed
        return (
            f"{needed} With these items an error of {percent(self.reachable_error)} can be "
            f"certified, keeping {percent(self.reachable_coverage)}."
        )


def find_shortfall(sample: Sample, *, method: str, max_error: float, risk: float) -> Shortfall:
    """What it would take to certify ``max_error`` by this method, which failed on the sample."""
    needed = _items_needed(sample, method, max_error, risk)
    return Shortfall(needed, *_within_reach(sample, method, max_error, risk))


def _items_needed(sample: Sample, method: str, max_error: float, risk: float) -> int | None:
    """The smallest number of items of the same kind that the method certifies something with."""
    search = CERTIFIERS[method].search
    firm = min(_FIRM / sample.num_items, 0.5)
    few = sample.thinned(_GROUPS)

    def enough(num_items: int) -> bool:
        grown = few.grown(num_items)
        group = search(grown, max_error, risk)
        return group is not None and bool(grown.kept[group] >= firm * num_items)

    needed = _least(enough, sample.num_items + 1)
    # Scores of few items that grow to many are ties of many; all different, they may need more.
    constant = len(sample.kept) == 1 < sample.num_items
    flawless = _least(lambda n: search(_errorless(n, constant), max_error, risk) is not None, 1)
    return None if needed is None else max(needed, flawless or 0)


def _within_reach(
    sample: Sample, method: str, max_error: float, risk: float
) -> tuple[float | None, float | None]:
    """The smallest max_error that passes, and the coverage it passes with."""
    search, steps = CERTIFIERS[method].search, round(1 / _STEP)

    def passes(step: int) -> bool:
        return search(sample, step / steps, risk) is not None

    found = _least(passes, int(max_error * steps) + 1, most=steps - 1)
    if found is None or (group := search(sample, found / steps, risk)) is None:
        return None, None
    return found / steps, float(sample.kept[group] / sample.num_items)


def _least(passes: Callable[[int], bool], start: int, *, most: int = _MOST_ITEMS) -> int | None:
    """The least number in start..most that passes, by doubling and halving; None if none does."""
    low, high = start - 1, start  # low fails, or lies below the start
    while high > most or not passes(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _errorless(num_items: int, constant: bool) -> Sample:
    groups = 1 if constant else min(num_items, 10 * _GROUPS)
    kept = np.arange(1, groups + 1, dtype=np.float64)
    return Sample(kept, kept, np.zeros_like(kept), binary=True).grown(num_items)
