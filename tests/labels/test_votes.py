"""Which vote rules hold the distribution behind the votes: 1 to 100 votes, 2 to 20 classes.

Exact, without simulation: by binomial tails for any distribution, or a sum over all outcomes.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from credalearn import TotalVariationBall, from_votes
from credalearn.labels import PROMISING
from random_sets import outcomes

CLASSES = (2, 3, 5, 10, 20)
CONFIDENCE = 0.95


def exact_coverage(num_votes: int, truth: np.ndarray, rule: Any) -> float:
    """Probability that the set holds the truth (K,): a sum over all outcomes."""
    counts = outcomes(num_votes, len(truth))
    sets = from_votes(counts.astype(np.float64), rule=rule, confidence=CONFIDENCE)
    inside = sets.contains(truth, tolerance=1e-12).numpy()
    return float(multinomial(num_votes, truth).pmf(counts) @ inside)


def limits(num_votes: int, num_classes: int, rule: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of x = 0..M votes for one class, or event, the limits of its probability, twice (M + 1,)."""
    counts = np.zeros((num_votes + 1, num_classes))
    counts[:, 0], counts[:, 1] = np.arange(num_votes + 1), np.arange(num_votes + 1)[::-1]
    sets = from_votes(counts, rule=rule, confidence=CONFIDENCE)
    if rule == "clopper-pearson-intervals":
        return sets.lower[:, 0].numpy(), sets.upper[:, 0].numpy()
    lower = sets.lower[:, 0].numpy()
    if isinstance(sets, TotalVariationBall):  # no event's share is above its probability by more
        lower = (counts[:, 0] / num_votes - sets.radius.numpy()).clip(min=0)
    return lower, np.ones(num_votes + 1)


def largest_miss(lower: np.ndarray, upper: np.ndarray) -> float:
    """The largest probability over all p that p lies outside the limits of x votes, x ~ Bin(M, p).

    Between two neighboring limits the x that hold p are the same a..b, and P(a <= x <= b) has a
    single hump in p: it is least just below some lower limit, or just above some upper one.
    """
    most = len(lower) - 1
    votes = np.arange(most + 1)
    too_high, too_low = np.searchsorted(lower, upper, side="right"), np.searchsorted(upper, lower)
    below = binom.sf(votes - 1, most, lower) + binom.cdf(too_low - 1, most, lower)
    above = binom.cdf(votes, most, upper) + binom.sf(too_high - 1, most, upper)
    return float(max(below[1:].max(), above[:-1].max()))


@pytest.mark.parametrize("rule", PROMISING)
def test_coverage_holds_for_any_votes_classes_and_truth(rule: str) -> None:
    """A set misses p only if some class, or event, lies outside its limits: Bonferroni's bound."""
    misses = []
    for num_classes in CLASSES:
        tested = 2**num_classes - 2 if rule == "total-variation" else num_classes
        for num_votes in range(1, 101):
            misses.append(tested * largest_miss(*limits(num_votes, num_classes, rule)))
    assert 1 - max(misses) >= CONFIDENCE - 1e-9
    # Narrower limits would break it at once; Weissman's rest on a looser bound.
    assert (max(misses) > 0.999 * (1 - CONFIDENCE)) == (rule != "total-variation")


@pytest.mark.parametrize("num_votes", [1, 7, 30])
def test_largest_miss_equals_a_fine_grid(num_votes: int) -> None:
    lower, upper = limits(num_votes, 2, "clopper-pearson-intervals")
    grid = np.linspace(0, 1, 20_001)[1:-1, None]
    missed = (grid < lower) | (grid > upper)
    chances = binom.pmf(np.arange(num_votes + 1), num_votes, grid)
    on_grid = (chances * missed).sum(1).max()
    assert on_grid <= largest_miss(lower, upper) <= 1.02 * on_grid


def test_relaxation_is_not_a_confidence_set() -> None:
    """With three votes it misses p = (0.6, 0.3, 0.1) nine times in ten, not one time in twenty.

    It contains p where the top class's share is at most that class's probability: with three votes,
    only where all three classes got one (6 · 0.6 · 0.3 · 0.1 = 0.108). More votes do not mend it:
    the share exceeds the probability about half of the time.
    """
    truth = np.array([0.6, 0.3, 0.1])
    assert exact_coverage(3, truth, "relax") == pytest.approx(0.108)
    assert exact_coverage(3, truth, "clopper-pearson") >= CONFIDENCE
    many = [exact_coverage(number, truth, "relax") for number in (20, 50, 100)]
    assert 0.5 < min(many) <= max(many) < 0.55
    # A single vote, and its set is the one class voted for.
    assert exact_coverage(1, truth, "relax") == 0
