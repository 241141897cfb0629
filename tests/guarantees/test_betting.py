"""The betting test against an implementation of its own, exact enumeration and closed forms."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import Promise, ScoredItems, certify
from credalearn.guarantees._betting import betting_p_value, growth
from credalearn.guarantees._sequence import GroupEvidence, Sequence
from present import present


def slow_betting(wrong: list[float], kept: list[float], rate: float, risk: float) -> float:
    """A gambler who bets on one group after the other; his best capital so far is 1 / p."""
    capital = best = 1.0
    seen: list[float] = []
    for bad, share in zip(wrong, kept, strict=True):
        variance = (5 * rate * (1 - rate) / 4 + sum(x * x for x in seen)) / (5 + len(seen))
        bet = math.sqrt(2 * math.log(1 / risk) / (len(wrong) * variance))
        gain = bad - rate * share
        capital *= 1 - min(bet, 0.95 / (1 - rate)) * gain
        best = max(best, capital)
        seen.append(gain)
    return 1 / best


shares = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


@pytest.mark.catches(
    "guarantees/_betting.py",
    "np.cumsum(gains**2, axis=0) - gains**2",
    "np.cumsum(gains**2, axis=0)",
)
@given(shares, st.floats(0.02, 0.9), st.sampled_from([0.2, 0.05, 0.001]))
def test_p_value_matches_a_slow_gambler(
    drawn: list[tuple[float, float]], rate: float, risk: float
) -> None:
    kept = np.array([share for share, _ in drawn])
    wrong = kept * [part for _, part in drawn]
    got = betting_p_value(wrong[:, None], kept[:, None], rate, risk=risk)[0]
    assert got == pytest.approx(slow_betting(wrong.tolist(), kept.tolist(), rate, risk), rel=1e-9)


@pytest.mark.parametrize(
    "law",  # probability of (share kept, share kept and wrong) of a group; the error is 10 %
    [
        {(1.0, 0.0): 0.9, (1.0, 1.0): 0.1},
        {(1.0, 0.1): 1.0},
        {(0.5, 0.0): 0.9, (0.5, 0.5): 0.1},
        {(1.0, 0.0): 0.5, (0.0, 0.0): 0.3, (0.5, 0.3): 0.2 * 5 / 6, (1.0, 0.1): 0.2 / 6},
    ],
)
@pytest.mark.parametrize("level", [0.05, 0.3, 0.7])
def test_p_value_is_valid(law: dict[tuple[float, float], float], level: float) -> None:
    """Every sequence of eight groups, weighted by its probability: p <= level has at most that."""
    kept, wrong = (sum(pair[k] * chance for pair, chance in law.items()) for k in (0, 1))
    rate = wrong / kept
    drawn = np.array(list(product(law, repeat=8)))  # (sequences, groups, 2)
    chances = np.prod([[law[pair] for pair in row] for row in product(law, repeat=8)], axis=1)
    p = betting_p_value(drawn[:, :, 1].T, drawn[:, :, 0].T, rate, risk=0.05)
    assert chances[p <= level].sum() <= level


def test_growth_without_an_error_is_that_of_the_largest_bet() -> None:
    """29 groups certify 10 % where a bet could be everything; ours may be 95 % of it."""
    kept = np.ones((30, 1))
    assert betting_p_value(0 * kept, kept, 0.1, risk=0.05)[0] <= 0.05
    assert betting_p_value(0 * kept[:28], kept[:28], 0.1, risk=0.05)[0] > 0.05
    assert 30 * growth(0 * kept, kept, 0.1)[0] == pytest.approx(math.log(20), rel=0.1)


def grouped(random_state: int, num_groups: int, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(random_state)
    score = rng.random(num_groups * size)
    groups = np.repeat(np.arange(num_groups), size)
    return {"score": score, "wrong": rng.random(len(score)) < 0.3 * score**2, "groups": groups}


@given(st.integers(0, 1000))
def test_neither_the_order_of_rows_nor_of_equal_names_matters(random_state: int) -> None:
    items = grouped(random_state, 80, 3)
    order = np.random.default_rng(random_state).permutation(240)
    found = certify(**items, max_error=0.15)
    assert certify(**{name: each[order] for name, each in items.items()}, max_error=0.15) == found


@pytest.mark.catches(
    "guarantees/_sequence.py", "weights = about / sizes[group]", "weights = about / sizes.mean()"
)
def test_group_shares_match_a_slow_loop() -> None:
    drawn = grouped(1, 12, 4)
    drawn["groups"] = np.repeat(range(12), [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 6])
    items = ScoredItems(**drawn)
    sequence = Sequence.of(items, [Promise(limit=0.1)], method="betting")
    evidence = sequence.evidence[0]
    assert isinstance(evidence, GroupEvidence)
    assert items.groups is not None
    for place in range(0, len(sequence.thresholds), 7):
        limit = sequence.thresholds[place]
        kept = [np.mean(items.score[items.groups == g] <= limit) for g in range(12)]
        wrong = [
            np.mean((items.wrong * (items.score <= limit))[items.groups == g]) for g in range(12)
        ]
        assert sorted(evidence.kept[:, place]) == pytest.approx(sorted(kept))
        assert sorted(evidence.errors[:, place]) == pytest.approx(sorted(wrong))


def test_groups_are_the_default_and_single_items_are_no_groups() -> None:
    items = grouped(2, 150, 4)
    found = certify(**items, max_error=0.1)
    assert (found.method, found.by_group, found.num_groups) == ("betting", True, 150)
    alone = items | {"groups": np.arange(600)}
    assert certify(**alone, max_error=0.1).method == "learn-then-test"
    assert found.kept < certify(**alone, max_error=0.1).kept  # what independence would be worth
    assert present(found.error) < present(found.bound) <= 0.1


def test_too_few_groups_say_how_many_it_takes_and_what_independence_would_give() -> None:
    items = grouped(3, 15, 20)
    short = present(certify(**items, max_error=0.1).shortfall)
    assert short.groups
    assert short.items_needed is not None
    assert short.if_independent == certify(items["score"], items["wrong"], max_error=0.1).coverage
    text = str(short)
    assert text.startswith(f"It would take about {short.items_needed:,} groups of calibration")
    assert "In place of this target, an error of" in text
    assert "Only if the items of a group were independent would the target be certified" in text
    enough = grouped(4, 2 * short.items_needed, 20)
    assert certify(**enough, max_error=0.1).certified
    assert certify(**items, max_error=short.reachable_error).certified
