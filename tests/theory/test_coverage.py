"""Label rules held against votes they have not seen: tests, splits, and the table of rules."""

from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from credalearn import CredalError, from_votes
from credalearn.labels import VOTE_RULES, VoteRule, from_posterior
from credalearn.theory import (
    Half,
    consistent,
    coverage_of_rules,
    halves_of_annotators,
    halves_of_counts,
    votes_to_reject,
)
from random_sets import outcomes

Rows = list[list[float]]

# The test


def slow_consistent(row: list[int], lower: list[float], upper: list[float], level: float) -> bool:
    """Class by class, bound by bound, with scipy's binomial distribution."""
    total, num_classes = sum(row), len(row)
    for votes, low, high in zip(row, lower, upper, strict=True):
        bounds = (low > 0) + (high < 1)
        if low > 0 and binom.cdf(votes, total, low) < level / num_classes / bounds:
            return False
        if high < 1 and binom.sf(votes - 1, total, high) < level / num_classes / bounds:
            return False
    return True


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[int], list[float], list[float]]:
    """Votes and bounds, from no votes to many, from points to the whole simplex."""
    num_classes = draw(st.integers(2, 4))
    votes = draw(st.lists(st.integers(0, 12), min_size=num_classes, max_size=num_classes))
    share = st.sampled_from([0.0, 0.03, 0.1, 0.25, 0.5, 0.77, 0.95, 1.0])
    pairs = [sorted([draw(share), draw(share)]) for _ in range(num_classes)]
    return votes, [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@given(boxes(), st.sampled_from([0.01, 0.05, 0.3]))
def test_consistency_equals_the_slow_test(
    box: tuple[list[int], list[float], list[float]], level: float
) -> None:
    votes, lower, upper = box
    found = consistent([votes], [lower], [upper], level=level)
    assert found.tolist() == [slow_consistent(votes, lower, upper, level)]


@given(boxes(), st.integers(0, 6))
def test_a_set_is_testable_where_some_outcome_rejects_it(
    box: tuple[list[int], list[float], list[float]], total: int
) -> None:
    _, lower, upper = box
    every = outcomes(total, len(lower))
    rows = len(every)
    notes = consistent(every, [lower] * rows, [upper] * rows)
    assert (total >= votes_to_reject([lower], [upper])).item() == (not notes.all().item())


@pytest.mark.parametrize("share", [0.01, 0.1, 0.35, 0.5, 0.8, 0.99, 1.0])
def test_true_sets_are_rejected_at_most_at_the_level(share: float) -> None:
    """Two classes, exactly: every outcome with its probability; the set is the truth alone."""
    worst = 0.0
    for total in range(1, 41):
        votes = np.stack([np.arange(total + 1), total - np.arange(total + 1)], axis=1)
        bounds = np.tile([share, 1 - share], (total + 1, 1))
        rejected = ~consistent(votes, bounds, bounds).numpy()
        weights = [comb(total, n) * share**n * (1 - share) ** (total - n) for n in votes[:, 0]]
        worst = max(worst, float(np.dot(weights, rejected)))
    assert worst <= 0.05
    if 0.1 <= share <= 0.9:
        assert worst > 0.01  # it does reject, and not everything but the truth is accepted


def test_nothing_is_rejected_without_votes_or_bounds() -> None:
    lower, upper = [[0.9, 0.0], [0.0, 0.0]], [[1.0, 0.1], [1.0, 1.0]]
    assert consistent([[0, 0], [0, 99]], lower, upper).all()
    assert votes_to_reject(lower, upper).tolist()[1] == float("inf")
    assert consistent([[7]], [[1.0]], [[1.0]]).all()  # one class
    assert votes_to_reject([[1.0]], [[1.0]]).tolist() == [float("inf")]
    assert len(consistent(np.zeros((0, 3)), np.zeros((0, 3)), np.ones((0, 3)))) == 0


def test_rounding_in_float32_changes_nothing() -> None:
    """An upper bound of 0.6 + 0.4 is 1 but for rounding, and must not halve the level."""
    # Nobody of six: 1/64 = 0.0156 of a half, between 0.05 / 3 and half of that.
    almost_one = [[1 - 6e-8, 0.5, 0.5]]
    assert not consistent([[0, 3, 3]], [[0.5, 0.0, 0.0]], almost_one).item()
    assert consistent([[0, 3, 3]], [[0.5, 0.0, 0.0]], [[0.99, 0.5, 0.5]]).item()
    votes = np.random.default_rng(0).multinomial(9, [0.5, 0.3, 0.2], 500)
    held = np.random.default_rng(1).multinomial(6, [0.2, 0.3, 0.5], 500)
    for rule in VOTE_RULES:
        exact = from_votes(torch.from_numpy(votes).double(), rule=rule)
        rounded = exact.to(torch.float32)
        notes = consistent(held, exact.lower, exact.upper)
        assert torch.equal(notes, consistent(held, rounded.lower, rounded.upper)), rule


@pytest.mark.parametrize(
    ("counts", "lower", "upper", "message"),
    [
        ([[1, 2]], [[0.1, 0.1]], [[0.9, 0.9, 0.9]], r"upper.* shape \(1, 2\); got \(1, 3\)"),
        ([[1, 2, 3]], [[0.1, 0.1]], [[0.9, 0.9]], r"counts must have shape \(1, 2\)"),
        ([[1, 0.5]], [[0.1, 0.1]], [[0.9, 0.9]], "whole numbers .* row 0"),
        ([[1, 2]], [[0.5, 0.1]], [[0.4, 0.9]], "lower <= upper .* swap the bounds"),
    ],
)
def test_rejects_bad_votes_and_bounds(counts: Rows, lower: Rows, upper: Rows, message: str) -> None:
    with pytest.raises(CredalError, match=message):
        consistent(counts, lower, upper)
    with pytest.raises(CredalError, match=r"level must be above 0 and below 1; got 1.0"):
        votes_to_reject([[0.5, 0.0]], [[1.0, 0.5]], level=1.0)


# The splits


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=5),
    st.floats(0.05, 0.95),
    st.integers(0, 100),
)
def test_counts_split_and_add_up(counts: list[list[int]], share: float, random_state: int) -> None:
    votes = np.array(counts)
    for half in halves_of_counts(votes, splits=3, share=share, random_state=random_state):
        np.testing.assert_array_equal(half.building + half.held_out, votes)
        assert half.building.min() >= 0
        assert half.held_out.min() >= 0
        total, built = votes.sum(1), half.building.sum(1)
        several = total > 1
        assert (np.abs(built - share * total)[several] <= 1).all()
        np.testing.assert_array_equal(half.used, several)


def test_votes_are_drawn_without_replacement() -> None:
    """Class by class, the mean and the variance of the hypergeometric distribution."""
    counts = np.array([6, 3, 1])
    built = next(halves_of_counts(np.tile(counts, (20_000, 1)), splits=1)).building
    mean, share = 5 * counts / 10, counts / 10
    variance = 5 * share * (1 - share) * (10 - 5) / (10 - 1)
    np.testing.assert_allclose(built.mean(0), mean, atol=0.04)
    np.testing.assert_allclose(built.var(0), variance, rtol=0.05)


def test_votes_of_one_person_stay_together() -> None:
    """Annotator a votes on the items 2a and 2a + 1, so that the sides can be read off."""
    who = np.arange(20) // 2
    halves = list(halves_of_annotators(np.arange(20), who, np.zeros(20), shape=(20, 2), splits=50))
    sides = np.stack([half.building[:, 0].reshape(10, 2) for half in halves])
    assert (sides[..., 0] == sides[..., 1]).all()
    assert (sides[..., 0].sum(1) == 5).all()
    assert (sides[..., 0].mean(0) > 0.2).all()  # everybody builds in some and not in others
    assert (sides[..., 0].mean(0) < 0.8).all()


def test_votes_without_annotator_are_split_one_by_one() -> None:
    label = np.array([0, 1, 1, -1])
    built = set()
    for half in halves_of_annotators([0] * 4, [-1] * 4, label, shape=(1, 2), splits=40):
        np.testing.assert_array_equal(half.building + half.held_out, [[1, 2]])
        built.add(tuple(half.building[0].tolist()))
    assert len(built) == 6  # all ways to split one vote and two


def test_rejects_bad_counts_and_options() -> None:
    with pytest.raises(CredalError, match="whole numbers of 0 or more; row 1"):
        halves_of_counts([[1.0, 2.0], [0.5, 1.0]])
    with pytest.raises(CredalError, match=r"share must be above 0 and below 1; got 1.0"):
        halves_of_counts([[1, 2]], share=1.0)


def test_rejects_codes_and_parts_that_do_not_fit() -> None:
    with pytest.raises(CredalError, match=r"item must lie in 0..1; row 1.* To fix: count from 0"):
        halves_of_annotators([0, 2], [0, 1], [0, 0], shape=(2, 2))
    with pytest.raises(CredalError, match=r"annotator, as item, must have shape \(2,\)"):
        halves_of_annotators([0, 1], [0], [0, 0], shape=(2, 2))
    with pytest.raises(CredalError, match=r"held_out must have shape \(2, 2\); got \(2, 3\)"):
        Half(np.ones((2, 2)), np.ones((2, 3)))


# The rules


def slow_coverage(halves: list[Half], rule: VoteRule) -> dict[str, float]:
    """Item by item and split by split, nothing kept and nothing shared."""
    each: dict[int, dict[int, list[float]]] = {}
    for split, half in enumerate(halves):
        for item in range(len(half.building)):
            build, held = half.building[item], half.held_out[item]
            if not build.sum() or not held.sum():
                continue
            if half.posterior is None:
                label = from_votes(build[None], rule=rule)
            else:
                label = from_posterior(half.posterior[item][None], build.sum()[None], rule=rule)
            low, high = label.lower[0].tolist(), label.upper[0].tolist()
            top = int(label.reference[0].argmax())
            rounded = [round(x, 9) for x in high]
            agree = slow_consistent(held.astype(int).tolist(), low, rounded, 0.05)
            share = held[top] / held.sum()
            row = [label.diameter().item(), agree, low[top], share, share - low[top]]
            each.setdefault(item, {})[split] = row
    means = np.array([np.mean(list(rows.values()), axis=0) for rows in each.values()])
    names = ("diameter", "agree", "stated", "held_out")
    found = dict(zip(names, means.mean(0), strict=False))
    errors = (
        slow_error([{split: row[column] for split, row in rows.items()} for rows in each.values()])
        for column in (1, 4)
    )
    return (
        found | dict(zip(("agree_error", "gap_error"), errors, strict=True)) | {"items": len(each)}
    )


def slow_error(values: list[dict[int, float]]) -> float:
    """Of each item its values by split: the spread over items, and pair by pair what is common."""
    means = [float(np.mean(list(rows.values()))) for rows in values]
    pairs = 0.0
    for one, other in product(range(len(values)), repeat=2):
        for split in (values[one].keys() & values[other].keys()) if one != other else ():
            pairs += (values[one][split] - means[one]) * (values[other][split] - means[other])
    times = sum(len(rows) for rows in values)
    often = times / len(values)
    shared = often / (often - 1) * pairs / times**2
    return float(np.sqrt(np.var(means, ddof=1) / len(means) + max(shared, 0)))


def split_counts() -> list[Half]:
    """Four splits of five votes on forty items."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(5, rng.dirichlet(np.ones(3), 40))
    counts[7] = [1, 0, 0]  # one vote cannot be split
    return list(halves_of_counts(counts, splits=4, random_state=3))


def split_annotators() -> list[Half]:
    """Four splits of six annotators of thirty items, with a model of the annotators."""
    rng = np.random.default_rng(6)

    def model(item: np.ndarray, who: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Votes of annotator 0 count three times."""
        counts = np.full((30, 3), 0.1)
        np.add.at(counts, (item, label), np.where(who == 0, 3.0, 1.0))
        shares: np.ndarray = counts / counts.sum(1, keepdims=True)
        return shares

    item, who = np.divmod(np.arange(30 * 6), 6)
    voted = rng.random(len(item)) < 0.5  # so that some splits leave an item out
    item, who = item[voted], who[voted]
    label = rng.integers(0, 3, len(item))
    return list(halves_of_annotators(item, who, label, shape=(30, 3), splits=4, posterior=model))


@pytest.mark.parametrize("rule", VOTE_RULES)
@pytest.mark.parametrize("split", [split_counts, split_annotators])
def test_coverage_equals_the_slow_reference(
    split: Callable[[], list[Half]], rule: VoteRule
) -> None:
    halves = split()
    (found,) = coverage_of_rules(halves, rules=[rule])
    for name, value in slow_coverage(halves, rule).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-9), name


def test_rejects_splits_without_held_out_votes_and_repeated_rules() -> None:
    halves = list(halves_of_counts([[1, 0], [0, 1]], splits=2))
    with pytest.raises(CredalError, match=r"no item has votes on both sides of a split. To fix"):
        coverage_of_rules(halves, rules=["idm"])
    with pytest.raises(CredalError, match="each once"):
        coverage_of_rules(halves, rules=["idm", "idm"])


def test_standard_errors_need_two_items_and_two_splits() -> None:
    found = coverage_of_rules(halves_of_counts([[5, 1]]), rules=["idm"])[0]
    assert found.agree_error == float("inf")
    assert not found.agrees(0.95)
    assert not found.bound_holds
    found = coverage_of_rules(halves_of_counts([[5, 1]] * 9, splits=1), rules=["idm"])[0]
    assert found.agree_error == found.gap_error == float("inf")
