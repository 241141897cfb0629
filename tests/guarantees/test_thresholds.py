"""Certified thresholds and shortfalls: against slow searches, by properties, and at the edges."""

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from credalearn import CredalError, certify
from credalearn.guarantees import CertifyMethod, Shortfall, by_capacity
from present import present
from scored_items import Case, cases, quantiles, scored_items, tried_in_turn

METHODS: tuple[CertifyMethod, ...] = get_args(CertifyMethod)
# A bet that is won before most of the errors come bounds the error below its observed share: valid
# by Ville's inequality, in one of twelve sets of single items. The bounds of these two never do.
ABOVE_OBSERVED: tuple[CertifyMethod, ...] = ("sgr", "learn-then-test")


def slow_p_value(score: np.ndarray, wrong: np.ndarray, threshold: float, rate: float) -> float:
    kept = wrong[score <= threshold]
    return float(binom.cdf(kept.sum(), len(kept), rate))


def slow_sgr(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    """As in the paper, item by item, on the sorted scores."""
    ordered = sorted(score.tolist())
    level = risk / math.ceil(math.log2(len(ordered) + 1))
    low, high, best, tests = 0, len(ordered), None, 0  # `low` items pass, more than `high` fail
    while low < high:
        threshold = ordered[math.ceil((low + high) / 2) - 1]
        tests += 1
        if slow_p_value(score, wrong, threshold, rate) <= level:
            best, low = threshold, sum(s <= threshold for s in ordered)
        else:
            high = sum(s < threshold for s in ordered)
    assert tests <= math.ceil(math.log2(len(ordered) + 1))  # or the risk would be overspent
    return best


def slow_sequence(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    """Each quantile in turn, until one fails."""
    best = None
    for threshold in tried_in_turn(score, rate, risk):
        if slow_p_value(score, wrong, threshold, rate) > risk:
            break
        best = threshold
    return best


def slow_betting(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    """Every item is a group of its own."""
    n = len(score)
    flawless = (risk ** (-1 / n) - 1) * (1 - rate) / rate
    first = min(max(min(flawless / 0.75, 0.5), 1.1 * flawless, 0.2), 1.0)
    order = np.argsort(np.random.default_rng(0).permutation(n))
    best = None
    for threshold in quantiles(score):
        kept = score <= threshold
        if kept.mean() >= first - 1e-9:
            gains = (kept * (wrong - rate))[order]
            before = np.cumsum(gains**2) - gains**2
            variance = (5 * rate * (1 - rate) / 4 + before) / (5 + np.arange(n))
            bets = np.minimum(np.sqrt(2 * math.log(1 / risk) / (n * variance)), 0.95 / (1 - rate))
            if np.cumprod(1 - bets * gains).max() < 1 / risk:
                break
            best = threshold
    return best


def slow_conformal(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    passing = [t for t in score if ((wrong & (score <= t)).sum() + 1) / (len(score) + 1) <= rate]
    return float(max(passing)) if passing else None


SLOW = {
    "sgr": slow_sgr,
    "learn-then-test": slow_sequence,
    "betting": slow_betting,
    "conformal-risk-control": slow_conformal,
}


@pytest.mark.catches(
    "guarantees/_sequence.py", "return risk / round(float(kept[-1])).bit_length()", "return risk"
)
@pytest.mark.parametrize("method", METHODS)
@given(case=cases, max_error=st.sampled_from([0.03, 0.1, 0.25, 0.6]))
def test_thresholds_match_a_slow_search(
    method: CertifyMethod, case: Case, max_error: float
) -> None:
    score, wrong = scored_items(*case)
    rule = certify(score, wrong, max_error=max_error, confidence=0.9, method=method)
    assert rule.threshold == SLOW[method](score, wrong, max_error, 1 - 0.9)
    kept = rule.keeps(score)
    assert (rule.kept, rule.errors) == (kept.sum(), wrong[kept].sum())
    assert rule.coverage == kept.mean()
    if rule.certified:
        assert rule.bound is not None
        assert rule.bound <= max_error
        if method in ABOVE_OBSERVED:
            assert present(rule.error) <= rule.bound


@given(case=cases, share=st.floats(0, 1))
def test_defers_at_most_the_capacity_and_keeps_ties_together(case: Case, share: float) -> None:
    score, wrong = scored_items(*case)
    rule = by_capacity(score, wrong, defer=share)
    deferred = ~rule.keeps(score)
    most = share * len(score) + 1e-9
    assert deferred.sum() == len(score) - rule.kept <= most
    if rule.kept:
        more = (score >= present(rule.threshold)).sum()  # deferring the next score, too
        assert more > most
        assert rule.interval is not None
        assert rule.interval[0] <= present(rule.error) <= rule.interval[1]
    assert not rule.certified


def test_capacity_as_a_count_or_a_share() -> None:
    wrong = np.arange(100) >= 90
    rule = by_capacity(np.arange(100), wrong, defer=5)
    assert (rule.kept, rule.errors, rule.threshold) == (95, 5, 94)
    exact = binomtest(5, 95).proportion_ci(0.95)
    assert rule.interval == pytest.approx((exact.low, exact.high), abs=1e-9)
    same: Any
    for same in (0.05, np.int64(5), np.float64(0.05), np.float32(0.05)):
        assert by_capacity(np.arange(100), wrong, defer=same) == rule
    assert by_capacity(np.arange(100), wrong, defer=0.29).kept == 71


@pytest.mark.parametrize("defer", [True, -1, 3, np.int64(3), 1.5, float("nan"), -0.1, "1"])
def test_rejects_bad_capacities(defer: float) -> None:
    with pytest.raises(CredalError, match=r"whole number in 0\.\.2 or a share in \[0, 1\]; got"):
        by_capacity([0.1, 0.2], [True, False], defer=defer)


@pytest.mark.parametrize(
    ("score", "wrong", "options", "message"),
    [
        ([0.1, float("nan")], [0, 1], {}, "score must not be NaN; item 1"),
        ([0.1, float("inf")], [0, 1], {}, "score must be finite; item 1 has inf. To fix"),
        ([True, False], [0.1, 0.2], {}, "score must be numbers; .* To fix: pass score first"),
        ([0.1, 0.2], [0, 1, 1], {}, r"each of the 2 items; got shape \(3,\)"),
        ([0.1, 0.2], [0, 2], {}, "wrong must be 0 or 1 for every item; item 1 has 2"),
        ([0.1, 0.2], [0.5, 1.5], {}, r"wrong must be in \[0, 1\] .* item 1 has 1.5"),
        ([0.1], [0], {"max_error": 10}, "above 0 and below 1; got 10. To fix: write 10 % as 0.1"),
        ([0.1], [0], {"confidence": 1.0}, "confidence must be above 0 and below 1; got 1.0"),
        ([0.1], [0], {"method": "capacity"}, "method must be one of 'learn-then-test', 'betting'"),
        ([0.1], None, {}, "certifying needs errors. To fix: pass wrong, or predicted and truth"),
        ([0.1], [0], {"max_error": None}, "nothing was requested"),
        ([0.1], [0], {"method": "sgr", "per_class": True}, "promises about classes .* got 'sgr'"),
        ([0.1], [0], {"per_class": True}, "per_class must come with predicted classes"),
        ([0.1], [0], {"against": "truth"}, "against must be one of 'majority'"),
        ([0.1], [0], {"groups": ["a", "b"]}, r"groups must have shape \(1,\); got \(2,\)"),
        ([0.1, 0.2], [0, 1], {"groups": ["a", None]}, "group for every item; item 1 has none"),
        ([0.1, 0.2], [0, 1], {"groups": [np.nan, "b"]}, "group for every item; item 0 has none"),
        ([0.1], None, {"predicted": ["Yes"], "truth": ["yes"]}, "no class in common: 'Yes', and"),
        ([0.1], None, {"predicted": [True], "truth": [1]}, "no class in common: 'True', and '1'"),
        ([0.1], [0], {"promises": [{"kind": "missed"}]}, "promises must be made with Promise; got"),
        ([0.1], [0], {"reference": ([0.1], [0])}, "reference must be ScoredItems; got tuple"),
    ],
)
def test_rejects_bad_input(score: Any, wrong: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        certify(score, wrong, **({"max_error": 0.1} | options))


def shortfall(
    score: np.ndarray, wrong: np.ndarray, max_error: float, method: CertifyMethod
) -> Shortfall:
    return present(certify(score, wrong, max_error=max_error, method=method).shortfall)


@pytest.mark.parametrize("method", ABOVE_OBSERVED)
@pytest.mark.parametrize("random_state", [0, 2, 3, 4, 6, 7, 8])  # 1 and 5: no number would do
def test_items_needed_are_enough_and_not_many_more(
    method: CertifyMethod, random_state: int
) -> None:
    """A tenth more items of the same kind certify the target; a fifth fewer do not."""
    score, wrong = scored_items(random_state, 150, levels=10**6)
    needed = present(shortfall(score, wrong, 0.02, method).items_needed)
    rows = np.arange(2 * needed) % 150  # each about as often as the others
    for factor, expected in ((1.1, True), (0.8, False)):
        chosen = rows[: int(factor * needed)]
        found = certify(score[chosen], wrong[chosen], max_error=0.02, method=method)
        assert found.certified == expected


@pytest.mark.parametrize("method", METHODS)
@given(random_state=st.integers(0, 1000), num_items=st.integers(1, 200))
def test_the_reachable_error_is_the_smallest_that_is_certified(
    method: CertifyMethod, random_state: int, num_items: int
) -> None:
    score, wrong = scored_items(random_state, num_items)
    short = certify(score, wrong, max_error=0.02, method=method).shortfall
    if short is None or short.reachable_error is None:
        return
    reached = certify(score, wrong, max_error=short.reachable_error, method=method)
    assert reached.certified
    assert reached.coverage == short.reachable_coverage
    less = round(short.reachable_error - 0.001, 6)
    if less > 0.02:
        assert not certify(score, wrong, max_error=less, method=method).certified


@pytest.mark.parametrize(("method", "fewest"), [("sgr", 93), ("learn-then-test", 29)])
def test_fewest_items_without_an_error(method: CertifyMethod, fewest: int) -> None:
    """SGR's first test keeps half, at 0.05 / 7; the other keeps all, at 0.05."""
    assert 0.9**47 <= 0.05 / 7 < 0.9**46
    assert 0.9**29 <= 0.05 < 0.9**28
    right = np.zeros(fewest, bool)
    assert certify(np.arange(fewest), right, max_error=0.1, method=method).coverage == 1
    needed = shortfall(np.arange(fewest - 1), right[1:], 0.1, method).items_needed
    assert needed in (fewest, fewest + 1)  # an estimate


def test_says_that_no_number_of_items_would_do() -> None:
    short = shortfall(np.arange(500), np.arange(500) % 2, 0.1, "sgr")
    assert short.items_needed is None
    assert str(short) == "No number of calibration items like these would do."
