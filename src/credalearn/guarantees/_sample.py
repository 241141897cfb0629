"""What each threshold keeps of the calibration items, with which errors.

Shapes: G distinct scores.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from credalearn._ranks import sort_order, tie_ends
from credalearn.guarantees.items import ScoredItems


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One entry per distinct score, ascending; items with equal scores stay together."""

    thresholds: np.ndarray  # the distinct scores, shape (G,)
    kept: np.ndarray  # number of items with this score or less, shape (G,), float64
    errors: np.ndarray  # number of those that are wrong, or the sum of their shares, shape (G,)
    binary: bool  # whether every item is either wrong or right

    @property
    def num_items(self) -> int:
        """Number of items."""
        return round(float(self.kept[-1]))

    def grown(self, num_items: int) -> Self:
        """As many items with the same scores and error rates: more of the same kind."""
        factor = num_items / self.kept[-1]
        return type(self)(self.thresholds, self.kept * factor, self.errors * factor, self.binary)

    def thinned(self, groups: int) -> Self:
        """At most this many of the thresholds, spread evenly, the last among them."""
        if len(self.kept) <= groups:
            return self
        chosen = np.linspace(0, len(self.kept) - 1, groups).round().astype(int)
        thresholds, kept, errors = self.thresholds[chosen], self.kept[chosen], self.errors[chosen]
        return type(self)(thresholds, kept, errors, self.binary)


def as_sample(items: ScoredItems) -> Sample:
    """The items, sorted and counted."""
    order = sort_order(items.score)
    ordered = items.score[order]
    ends = tie_ends(ordered)
    errors = items.wrong[order].cumsum()[ends - 1]
    return Sample(ordered[ends - 1], ends.astype(np.float64), errors, items.binary)
