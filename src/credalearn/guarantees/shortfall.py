"""Why nothing could be certified, what it would take, and what is within reach."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from credalearn._formats import percent
from credalearn.guarantees.sample import Sample
from credalearn.guarantees.search import CERTIFIERS, first_of_sequence

_MOST_ITEMS = 10**9  # more is called never
_FIRM = 20  # the error among fewer kept items says too little to build on
_GROUPS = 500  # enough thresholds for an estimate
_STEP = 0.001  # of max_error
# Which other method promises the same.
OTHER: Mapping[str, Literal["sgr", "learn-then-test"]] = {
    "sgr": "learn-then-test",
    "learn-then-test": "sgr",
}


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a target cannot be certified with these calibration items, and what can.

    As text it is two or three sentences.

    Args:
        why: What stands in the way.
        items_needed: About how many calibration items it would take, if more of them had the same
            scores and rates of errors; None where no number would do.
        reachable_error: The smallest max_error, in steps of 0.1 %, that these items can certify by
            the same method; None where there is none. Trying it afterwards is a second look at
            the same items: certify it with new ones.
        reachable_coverage: The share of items kept there; None likewise.
        method: The method, where another promises the same: "sgr" or "learn-then-test".
        needed_by_other: About how many items that other method would take, where they are fewer,
            but more than these.

    Example:
        >>> print(Shortfall("20 items are too few.", 94, 0.31, 0.5, "sgr", 61))
        20 items are too few. About 94 calibration items like these would do by SGR, about 61 by
        learn-then-test. With these items 31 % can be certified, keeping 50 %.
    """

    why: str
    items_needed: int | None
    reachable_error: float | None
    reachable_coverage: float | None
    method: str | None = None
    needed_by_other: int | None = None

    @property
    def remedy(self) -> str:
        """What it would take, and what is within reach."""
        if self.items_needed is None:
            needed = "By this method no number of calibration items like these would do"
        else:
            needed = f"About {self.items_needed:,} calibration items like these would do"
            needed += _by(self.method)
        if self.needed_by_other is not None:
            needed += ", " if self.items_needed else ", but "
            needed += f"about {self.needed_by_other:,}{_by(OTHER.get(self.method or ''))}"
        needed += "."
        if self.reachable_error is None or self.reachable_coverage is None:
            return needed
        return (
            f"{needed} With these items {percent(self.reachable_error)} can be "
            f"certified, keeping {percent(self.reachable_coverage)}."
        )

    def __str__(self) -> str:
        return f"{self.why} {self.remedy}"


def explain(sample: Sample, *, method: str, max_error: float, risk: float) -> Shortfall:
    """What to tell someone whose target the method cannot certify."""
    constant = len(sample.kept) == 1 < sample.num_items
    other = OTHER.get(method)
    fewest, by_other = (
        None if each is None else _fewest(constant, each, max_error, risk)
        for each in (method, other)
    )
    if fewest is not None and sample.num_items < fewest:
        items = "item is" if sample.num_items == 1 else "items are"
        why = f"{sample.num_items:,} calibration {items} too few: "
        why += f"even without an error it takes {fewest:,}{_by(method if other else None)}"
        less = by_other is not None and by_other < fewest
        why += f", {by_other:,}{_by(other)}." if less else "."
    else:
        why = f"The bound on the {_bounded(method)} exceeds {percent(max_error)} "
        why += _where(sample, method, max_error, risk)
    if constant:
        why += " The score is the same for every item, so all are kept or none."
    needed = _items_needed(sample, method, max_error, risk, fewest)
    reached = _within_reach(sample, method, max_error, risk)
    if other is None:
        return Shortfall(why, needed, *reached)
    rather = _items_needed(sample, other, max_error, risk, by_other)
    fits = CERTIFIERS[other].search(sample, max_error, risk) is not None  # these items, already
    if fits or rather is None or (needed is not None and needed <= rather):
        rather = None
    return Shortfall(why, needed, *reached, method, rather)


def _by(method: str | None) -> str:
    return {None: "", "sgr": " by SGR"}.get(method, f" by {method}")


def _fewest(constant: bool, method: str, max_error: float, risk: float) -> int | None:
    """The least number of items that the method certifies something with if none is wrong."""
    search = CERTIFIERS[method].search
    return _least(lambda n: search(_errorless(n, constant), max_error, risk) is not None, 1)


def _bounded(method: str) -> str:
    return "share of items kept and wrong" if method == "conformal-risk-control" else "error"


def _where(sample: Sample, method: str, max_error: float, risk: float) -> str:
    if method != "learn-then-test":
        return "at every threshold tested."
    first = sample.kept[first_of_sequence(sample, max_error, risk)] / sample.num_items
    return f"at the first threshold tested, which keeps {percent(first)} of the items."


def _items_needed(
    sample: Sample, method: str, max_error: float, risk: float, fewest: int | None
) -> int | None:
    """The least number of items of the same kind that the method certifies something with."""
    firm = min(_FIRM / sample.num_items, 0.5)
    few = sample.thinned(_GROUPS)

    def enough(num_items: int) -> bool:
        grown = few.grown(num_items)
        group = CERTIFIERS[method].search(grown, max_error, risk)
        return group is not None and bool(grown.kept[group] >= firm * num_items)

    needed = _least(enough, sample.num_items + 1)
    if needed is None or fewest is None:
        return needed
    return max(needed, fewest)  # one of few items that grow to many is a tie of many


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
