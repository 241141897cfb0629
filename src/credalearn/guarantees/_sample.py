"""The calibration items as every method sees them: what each threshold keeps, with which errors.

Shapes: N items, G distinct scores.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from credalearn._ranks import as_array, as_scores, sort_order, tie_ends
from credalearn.errors import CredalError


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


def as_sample(score: ArrayLike, wrong: ArrayLike) -> Sample:
    """Checked scores (N,) and errors (N,), sorted and counted.

    Bools and integers are binary errors; floats are shares in [0, 1], even if each is 0 or 1.
    """
    scores = as_scores(score, name="score").astype(np.float64)
    if not np.isfinite(scores).all():
        row = int(np.isfinite(scores).argmin())
        raise CredalError(
            f"score must be finite; item {row} has {scores[row]}. To fix: fill or drop it."
        )
    shares = as_scores(wrong, name="wrong", num_items=len(scores)).astype(np.float64)
    binary = np.asarray(as_array(wrong)).dtype.kind in "biu"
    good = np.isin(shares, (0, 1)) if binary else (shares >= 0) & (shares <= 1)
    if not good.all():
        row = int(good.argmin())
        rule = "0 or 1" if binary else "in [0, 1]"
        raise CredalError(
            f"wrong must be {rule} for every item; item {row} has {shares[row]:g}. To fix: give "
            "wrong = predicted != true, or the share of annotators who disagree."
        )
    order = sort_order(scores)
    ordered = scores[order]
    ends = tie_ends(ordered)
    errors = shares[order].cumsum()[ends - 1]
    return Sample(ordered[ends - 1], ends.astype(np.float64), errors, binary)
