"""Widened sets checked on items that had no part in widening them.

Shapes: N items, K classes.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

from credalearn._formats import many, percent
from credalearn.conformal import Inflation
from credalearn.guarantees.bounds import interval
from credalearn.predictions import CredalPredictions

_CONFIDENCE = 0.95
_EDGE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class WidenedSets:
    """Predicted sets widened to contain vote shares, and what they contain of the test items."""

    inflation: Inflation  # by how much they are widened, and what that promises
    lower: np.ndarray  # lower bounds of the widened sets, shape (N, K)
    upper: np.ndarray  # upper bounds, shape (N, K)
    seen: int  # number of test items with enough votes to check
    covered: int  # number of those whose vote shares lie in the widened set
    width_before: float  # mean width of a class's interval on these, as predicted
    width_after: float  # the same when widened
    counted: bool = True  # whether the number of votes per item is known; otherwise only shares are
    kept: tuple[int, int] | None = None  # kept items: number seen, number covered

    @property
    def saying_nothing(self) -> float:
        """Share of the test items with a class that may have any probability at all."""
        everything = (self.lower <= _EDGE) & (self.upper >= 1 - _EDGE)
        return float(everything.any(1).mean()) if len(everything) else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Clopper-Pearson interval of covered / seen."""
        missed, number = np.array([[self.seen - self.covered], [self.seen]])
        low, high = interval(missed, number, confidence=_CONFIDENCE, binary=True)
        return 1 - high.item(), 1 - low.item()

    @property
    def usual(self) -> tuple[float, float]:
        r"""Range of covered / seen in 19 of 20 draws of calibration and test items.

        The radius is the r-th smallest of n nonconformities, :math:`r = \lceil (n+1) \cdot
        \text{coverage} \rceil`, so that the number covered follows the beta-binomial law with
        parameters r and n + 1 − r where no two are equal, and is larger where some are (Vovk,
        2012). The interval of covered / seen alone ignores that the radius was drawn, too.
        """
        rank = self.inflation.rank
        law = betabinom(self.seen, rank, self.inflation.items + 1 - rank)
        below = law.pmf(np.arange(self.seen + 1)).cumsum()
        ends = np.searchsorted(below, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
        low, high = (float(end) / self.seen for end in ends)
        return low, high

    @property
    def short(self) -> bool:
        """Whether fewer items are covered than usual."""
        return self.seen > 0 and self.covered / self.seen < self.usual[0]

    @property
    def by_decision(self) -> str:
        """What is covered of the kept and of the deferred items; empty where all are one."""
        seen, covered = self.kept or (0, 0)
        if not 0 < seen < self.seen:
            return ""
        deferred = self.seen - seen
        share = percent((self.covered - covered) / deferred)
        return (
            f"Of {many(seen, 'kept item')} the widened sets contain {percent(covered / seen)}, and "
            f"of {many(deferred, 'deferred item')} {share}; the guarantee is about both together."
        )


def widen_sets(
    inflation: Inflation,
    predicted: CredalPredictions,
    observed: np.ndarray,
    usable: np.ndarray,
    *,
    counted: bool = True,
    kept: np.ndarray | None = None,
) -> WidenedSets:
    """Widen the sets of test items, and check what they contain."""
    wide = predicted.conformalize(inflation)
    seen = int(usable.sum())
    covered, before, after = np.zeros(seen, dtype=bool), 0.0, 0.0
    if seen:
        covered = predicted[usable].covers(observed[usable], inflation).numpy()
        before, after = (float((s.upper - s.lower)[usable].mean()) for s in (predicted, wide))
    return WidenedSets(
        inflation=inflation,
        lower=wide.lower.numpy(),
        upper=wide.upper.numpy(),
        seen=seen,
        covered=int(covered.sum()),
        width_before=before,
        width_after=after,
        counted=counted,
        kept=None if kept is None else (int(kept[usable].sum()), int(covered[kept[usable]].sum())),
    )
