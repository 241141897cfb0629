"""What it would take to certify a target that these calibration items cannot."""

from collections.abc import Callable
from dataclasses import dataclass

from credalearn._formats import percent


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What it would take to certify a target, and what can be certified instead.

    Args:
        items_needed: About how many calibration items, or groups, it would take, if more of them
            had the same scores and error rates; None where no number would do.
        reachable_error: The smallest max_error, in steps of 0.1 %, that these items can certify by
            the same method; None where there is none. To certify it, use new items: trying it on
            the same ones is a second look at them.
        reachable_coverage: The share of items kept there; None likewise.
        groups: Whether ``items_needed`` counts groups.
        if_independent: For groups, the share of items that would be kept if the items of a group
            were independent; None where nothing would be certified, or without groups.

    Example:
        >>> print(Shortfall(94, 0.31, 0.5))
        It would take about 94 calibration items like these. With these items an error of 31 % could
        have been certified in a first request, keeping 50 %.
        >>> print(Shortfall(60, None, None, groups=True, if_independent=0.4))
        It would take about 60 groups of calibration items like these. Only if the items of a group
        were independent would the target be certified, keeping 40 %.
    """

    items_needed: int | None
    reachable_error: float | None
    reachable_coverage: float | None
    groups: bool = False
    if_independent: float | None = None

    def __str__(self) -> str:
        units = "groups of calibration items" if self.groups else "calibration items"
        notes = [
            f"No number of {units} like these would do."
            if self.items_needed is None
            else f"It would take about {self.items_needed:,} {units} like these."
        ]
        if self.reachable_error is not None and self.reachable_coverage is not None:
            notes.append(
                f"With these items an error of {percent(self.reachable_error)} could have been "
                f"certified in a first request, keeping {percent(self.reachable_coverage)}."
            )
        if self.if_independent is not None:
            notes.append(
                "Only if the items of a group were independent would the target be certified, "
                f"keeping {percent(self.if_independent)}."
            )
        return " ".join(notes)


def least(passes: Callable[[int], bool], start: int, most: int = 10**9) -> int | None:
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
