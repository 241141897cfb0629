"""Which vote rules hold the distribution behind the votes, for a known one: 1 to 100 votes.

Exact wherever all outcomes of the votes can be listed (two classes always), by simulation beyond.
"""

import math
from typing import Any, get_args

import numpy as np
import pytest
from scipy.special import gammaln, xlogy

from credalearn import from_votes
from credalearn.labels import VoteRule

VOTES = (1, 2, 3, 5, 10, 20, 50, 100)
CLASSES = (2, 3, 5, 10, 20)
CONFIDENCE = 0.95
PROMISING = ("clopper-pearson", "clopper-pearson-intervals", "total-variation")
LISTED = 6000  # outcomes: 100 votes on 3 classes have 5151, 3 votes on 20 have 1540
DRAWN = 1000


def truths(num_classes: int) -> np.ndarray:
    """Distributions to draw votes from, shape (P, K): peaked, flat, sparse and at random."""
    rng = np.random.default_rng(num_classes)
    even, first = np.full(num_classes, 1 / num_classes), np.eye(num_classes)[0]
    pair = 0.7 * first + 0.3 * np.eye(num_classes)[1]
    peaked = [share * first + (1 - share) * even for share in (0.5, 0.9, 0.99)]
    random = [rng.dirichlet(np.full(num_classes, size)) for size in (0.1, 0.3, 1, 1, 10)]
    return np.stack([first, even, pair, *peaked, *random])


def outcomes(num_votes: int, num_classes: int) -> np.ndarray:
    """Every way to spread the votes over the classes, shape (outcomes, K)."""
    if num_classes == 1:
        return np.array([[num_votes]])
    parts = []
    for first in range(num_votes + 1):
        rest = outcomes(num_votes - first, num_classes - 1)
        parts.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(parts)


def probabilities(counts: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Multinomial probability of each outcome, shape (outcomes,)."""
    ways = gammaln(counts.sum(1) + 1) - gammaln(counts + 1).sum(1)
    chances: np.ndarray = np.exp(ways + xlogy(counts, truth).sum(1))
    return chances


def exact_coverage(
    num_votes: int, points: np.ndarray, rule: Any, confidence: float = CONFIDENCE
) -> np.ndarray:
    """Probability that the set holds each of these truths, shape (P,): a sum over all outcomes."""
    counts = outcomes(num_votes, points.shape[1])
    sets = from_votes(counts.astype(np.float64), rule=rule, confidence=confidence)
    chances = [probabilities(counts, truth) for truth in points]
    np.testing.assert_allclose(np.sum(chances, 1), 1)
    inside = [sets.contains(truth, tolerance=1e-12).numpy() for truth in points]
    found: np.ndarray = (np.stack(chances) * np.stack(inside)).sum(1)
    return found


def simulated_coverage(num_votes: int, points: np.ndarray, rule: Any) -> np.ndarray:
    """Share of drawn votes whose set holds each of these truths, shape (P,)."""
    rng = np.random.default_rng(num_votes)
    many = np.repeat(points, DRAWN, axis=0)
    counts = rng.multinomial(num_votes, many).astype(np.float64)
    sets = from_votes(counts, rule=rule, confidence=CONFIDENCE)
    found: np.ndarray = (
        sets.contains(many, tolerance=1e-12).view(-1, DRAWN).double().mean(1).numpy()
    )
    return found


@pytest.mark.parametrize("rule", PROMISING)
def test_two_classes_are_covered_exactly_as_promised(rule: str) -> None:
    """Binomial sums, no simulation: at every probability of a grid, 1 − δ or more."""
    grid = np.concatenate([np.linspace(0, 1, 401), np.geomspace(1e-6, 0.5, 100)])
    least = [exact_coverage(n, np.stack([grid, 1 - grid], 1), rule).min() for n in VOTES]
    assert min(least) >= CONFIDENCE - 1e-9
    # Close to the level somewhere, or the limits would be needlessly wide; Weissman's are.
    assert (min(least) < 0.98) == (rule != "total-variation")


@pytest.mark.parametrize("rule", PROMISING)
@pytest.mark.parametrize("num_classes", CLASSES)
def test_the_promise_holds_for_any_votes_classes_and_truth(rule: str, num_classes: int) -> None:
    points = truths(num_classes)
    listed = 0
    for num_votes in VOTES:
        if math.comb(num_votes + num_classes - 1, num_classes - 1) <= LISTED:
            assert exact_coverage(num_votes, points, rule).min() >= CONFIDENCE - 1e-9
            listed += 1
        else:
            noise = math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWN)
            assert simulated_coverage(num_votes, points, rule).min() >= CONFIDENCE - 4 * noise
    assert listed >= 3


def test_the_papers_relaxation_promises_nothing() -> None:
    """With three votes it misses p = (0.6, 0.3, 0.1) nine times in ten, not one time in twenty.

    It holds p where the top class's share is at most that class's probability: with three votes,
    only where all three classes got one (6 · 0.6 · 0.3 · 0.1 = 0.108). More votes do not mend it:
    the share exceeds the probability about half of the time.
    """
    truth = np.array([[0.6, 0.3, 0.1]])
    assert exact_coverage(3, truth, "relax")[0] == pytest.approx(0.108)
    assert exact_coverage(3, truth, "clopper-pearson")[0] >= CONFIDENCE
    many = [exact_coverage(number, truth, "relax")[0] for number in (20, 50, 100)]
    assert 0.5 < min(many) <= max(many) < 0.55
    # A single vote, and its set is the one class voted for.
    assert exact_coverage(1, truth, "relax")[0] == 0


def test_the_other_rules_promise_nothing_either() -> None:
    truth = np.array([[0.5, 0.3, 0.2]])
    found = {
        (rule, number): float(exact_coverage(number, truth, rule)[0])
        for rule in get_args(VoteRule)
        for number in (3, 100)
    }
    # The hull holds p once every class was seen: 6 · 0.5 · 0.3 · 0.2 of the times with three votes.
    assert found["hull", 3] == pytest.approx(0.18)
    assert found["hull", 100] > 0.999
    # The imprecise Dirichlet model's one unseen vote is less than sampling noise.
    assert found["idm", 3] == pytest.approx(0.225)
    assert found["idm", 100] < 0.01
    assert found["precise", 3] == 0


@pytest.mark.parametrize("rule", PROMISING)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
def test_the_promise_holds_at_other_levels(rule: str, confidence: float) -> None:
    assert exact_coverage(10, truths(3), rule, confidence).min() >= confidence - 1e-9
