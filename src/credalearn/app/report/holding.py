"""What sets hold: the risk that the labels' sets leave open, and predicted sets with a promise.

Shapes: N items, K classes.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

from credalearn._formats import percent
from credalearn.conformal import Inflation
from credalearn.errors import CredalError
from credalearn.guarantees.bounds import interval
from credalearn.labels import PROMISING
from credalearn.predictions import CredalPredictions
from credalearn.theory import RiskProfile

CONFIDENCE = 0.95  # of every interval on the page
_EDGE = 1e-3


@dataclass(frozen=True, slots=True)
class LabelSets:
    """What the sets that the run learns from say about its risk on the test items.

    Args:
        rule: Name of the rule that makes sets of votes; empty where people stated bounds.
        profile: Between which two risks the true one lies, if the sets hold it.
        why_not: Why there is no profile, in a sentence.
        skilled: Whether a model of the annotators stands between their votes and the rule.
        confidence: Of the rules that promise one.

    Raises:
        CredalError: If there is neither a profile nor a reason.

    Example:
        >>> LabelSets("relax", None, "Nobody voted.").promised
        False
    """

    rule: str
    profile: RiskProfile | None
    why_not: str = ""
    skilled: bool = False
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.profile is None and not self.why_not:
            raise CredalError("label sets must hold a risk profile or say why there is none.")

    @property
    def promised(self) -> bool:
        """Whether the rule itself promises that an item's set holds its true distribution."""
        return self.rule in PROMISING and not self.skilled


@dataclass(frozen=True, slots=True, eq=False)
class WidenedSets:
    """Predicted sets that were widened until they hold, and how they do on the test items.

    Args:
        inflation: By how much, and what that promises.
        lower: Smallest probabilities of the test items' widened sets, shape (N, K).
        upper: Largest probabilities, shape (N, K).
        seen: Test items with votes enough to see it on.
        covered: Those of them whose shares of votes lie in the widened set.
        width_before: Mean width of a class's interval on these, as predicted.
        width_after: The same when widened.
        counted: Whether it is known how many votes an item has; else shares alone were given.
        kept: Of the items that the rule keeps, how many are seen and how many of them covered;
            None without a rule.

    Raises:
        CredalError: If shapes differ, or more items are covered than seen.

    Example:
        >>> found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="none", items=300)
        >>> wide = WidenedSets(found, np.zeros((100, 2)), np.ones((100, 2)), 100, 80, 0.02, 0.15)
        >>> [round(end, 3) for end in wide.interval], wide.usual, wide.short
        ([0.708, 0.873], (0.83, 0.96), True)
    """

    inflation: Inflation
    lower: np.ndarray
    upper: np.ndarray
    seen: int
    covered: int
    width_before: float
    width_after: float
    counted: bool = True
    kept: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.ndim != 2:
            raise CredalError(
                "lower and upper must have one shape (N, K); got "
                f"{self.lower.shape} and {self.upper.shape}."
            )
        if not 0 <= self.covered <= self.seen <= len(self.lower):
            raise CredalError(
                "of the test items some are seen, and of these some covered; got "
                f"{self.covered} covered of {self.seen} seen of {len(self.lower)}."
            )

    @property
    def saying_nothing(self) -> float:
        """Share of the test items with a class that may have any probability at all."""
        everything = (self.lower <= _EDGE) & (self.upper >= 1 - _EDGE)
        return float(everything.any(1).mean()) if len(everything) else 0.0

    @property
    def promised(self) -> bool:
        """Whether the widened sets promise anything: calibration items may have been too few."""
        return not self.inflation.vacuous

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the 95 % Clopper–Pearson interval of covered / seen."""
        missed, number = np.array([[self.seen - self.covered], [self.seen]])
        low, high = interval(missed, number, confidence=CONFIDENCE, binary=True)
        return 1 - high.item(), 1 - low.item()

    @property
    def usual(self) -> tuple[float, float]:
        r"""Between which shares covered / seen is in 19 of 20 draws of calibration and test items.

        The radius is the r-th smallest of n nonconformities, :math:`r = \lceil (n+1) \cdot
        \text{coverage} \rceil`, so that the number covered follows the beta-binomial law with
        parameters r and n + 1 − r where no two are equal, and is larger where some are (Vovk,
        2012). The interval of covered / seen alone does not know that the radius was drawn, too.
        """
        rank = self.inflation.rank
        law = betabinom(self.seen, rank, self.inflation.items + 1 - rank)
        below = law.pmf(np.arange(self.seen + 1)).cumsum()
        ends = np.searchsorted(below, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        low, high = (float(end) / self.seen for end in ends)
        return low, high

    @property
    def by_decision(self) -> str:
        """What share of the items kept and of those deferred is covered; empty where all are one.

        Example:
            >>> found = Inflation(coverage=0.9, radius=1, distance="box", scale="none", items=50)
            >>> bounds = np.zeros((100, 2))
            >>> WidenedSets(found, bounds, bounds, 100, 88, 0.1, 0.2, kept=(50, 39)).by_decision
            'The widened sets hold 78 % of the 50 items that the rule keeps and 98 % of the 50 that
            it defers; what is promised is the share of both together.'
        """
        seen, covered = self.kept or (0, 0)
        if not 0 < seen < self.seen:
            return ""
        deferred = self.seen - seen
        share = percent((self.covered - covered) / deferred)
        return (
            f"The widened sets hold {percent(covered / seen)} of the {seen:,} items that the rule "
            f"keeps and {share} of the {deferred:,} that it defers; what is promised is the share "
            "of both together."
        )

    @property
    def short(self) -> bool:
        """Whether fewer are covered than such draws explain."""
        return self.seen > 0 and self.promised and self.covered / self.seen < self.usual[0]


def widen_sets(
    inflation: Inflation,
    predicted: CredalPredictions,
    observed: np.ndarray,
    usable: np.ndarray,
    *,
    counted: bool = True,
    kept: np.ndarray | None = None,
) -> WidenedSets:
    """Widen the test items' sets, and see what they hold.

    Args:
        inflation: By how much.
        predicted: Their sets.
        observed: Votes or shares by class, shape (N, K).
        usable: Which items have votes enough to see it on, bool (N,).
        counted: Whether it is known how many votes an item has.
        kept: Which items the rule keeps, bool (N,); None without a rule.

    Example:
        >>> found = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=50)
        >>> point = CredalPredictions(*[np.array([[0.7, 0.3]])] * 3)
        >>> wide = widen_sets(found, point, np.array([[3.0, 1.0]]), np.array([True]))
        >>> wide.lower.round(3), wide.covered, round(wide.width_after, 3)
        (array([[0.6, 0.2]]), 1, 0.2)
    """
    wide = predicted.conformalize(inflation)
    lower, upper = wide.lower.numpy(), wide.upper.numpy()
    seen = int(usable.sum())
    covered, before, after = np.zeros(seen, dtype=bool), 0.0, 0.0
    if seen:
        covered = predicted[usable].covers(observed[usable], inflation).numpy()
        before, after = (float((s.upper - s.lower)[usable].mean()) for s in (predicted, wide))
    ruled = None if kept is None else (int(kept[usable].sum()), int(covered[kept[usable]].sum()))
    held = int(covered.sum())
    return WidenedSets(inflation, lower, upper, seen, held, before, after, counted, ruled)
