"""Certified thresholds: against scans, by properties, at the edges, and what they say."""

import json
import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import credalearn as cl
from credalearn import CredalError, Guarantee, certify
from credalearn.guarantees import by_capacity
from credalearn.guarantees.rule import CertifyMethod
from credalearn.guarantees.search import CERTIFIERS

METHOD_NAMES: tuple[CertifyMethod, ...] = get_args(CertifyMethod)
PROMISING: tuple[CertifyMethod, ...] = ("sgr", "learn-then-test")


def calibration(
    random_state: int, num_items: int, levels: int = 50
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    score = rng.integers(0, levels, num_items) / levels
    return score, rng.random(num_items) < 0.5 * score**2


cases = st.tuples(st.integers(0, 10_000), st.integers(1, 400), st.sampled_from([1, 3, 50, 10**6]))


def slow_p_value(score: np.ndarray, wrong: np.ndarray, threshold: float, rate: float) -> float:
    kept = wrong[score <= threshold]
    return float(binom.cdf(kept.sum(), len(kept), rate))


def slow_sgr(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    """As the paper tells it, item by item, on the sorted scores."""
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
    """Every threshold in turn, from the first that keeps enough items, until one fails."""
    n, quarter = len(score), rate / 4
    divergence = quarter * math.log(quarter / rate)
    divergence += (1 - quarter) * math.log((1 - quarter) / (1 - rate))
    first = max(min(-math.log(risk) / divergence, n / 2), math.log(risk) / math.log(1 - rate))
    first = min(math.ceil(max(first, 0.2 * n)), n)
    best = None
    for threshold in sorted(set(score.tolist())):
        if (score <= threshold).sum() >= first:
            if slow_p_value(score, wrong, threshold, rate) > risk:
                break
            best = threshold
    return best


def slow_conformal(score: np.ndarray, wrong: np.ndarray, rate: float, risk: float) -> float | None:
    passing = [t for t in score if ((wrong & (score <= t)).sum() + 1) / (len(score) + 1) <= rate]
    return float(max(passing)) if passing else None


SLOW = {
    "sgr": slow_sgr,
    "learn-then-test": slow_sequence,
    "conformal-risk-control": slow_conformal,
}


def test_every_method_has_a_slow_one() -> None:
    assert set(SLOW) == set(CERTIFIERS) == set(METHOD_NAMES)


@pytest.mark.parametrize("method", METHOD_NAMES)
@given(case=cases, max_error=st.sampled_from([0.03, 0.1, 0.25, 0.6]))
def test_thresholds_are_those_of_a_slow_search(
    method: CertifyMethod, case: tuple[int, int, int], max_error: float
) -> None:
    score, wrong = calibration(*case)
    rule = certify(score, wrong, max_error=max_error, confidence=0.9, method=method)
    assert rule.threshold == SLOW[method](score, wrong, max_error, 1 - 0.9)
    kept = rule.keeps(score)
    assert (rule.kept, rule.errors) == (kept.sum(), wrong[kept].sum())
    assert rule.coverage == kept.mean()
    if rule.certified:
        assert rule.bound is not None
        assert rule.error is not None
        assert rule.bound <= max_error
        if method in PROMISING:
            assert rule.error <= rule.bound


@pytest.mark.parametrize("method", PROMISING)
@given(case=cases, confidence=st.floats(0.5, 0.99), more=st.floats(0, 1))
def test_more_confidence_never_keeps_more(
    method: CertifyMethod, case: tuple[int, int, int], confidence: float, more: float
) -> None:
    score, wrong = calibration(*case)
    surer = confidence + more * (0.999 - confidence)
    plain = certify(score, wrong, max_error=0.1, confidence=confidence, method=method)
    strict = certify(score, wrong, max_error=0.1, confidence=surer, method=method)
    if method == "sgr":
        assert strict.kept <= plain.kept
    elif (
        strict.certified and plain.certified
    ):  # surer, it starts later, and may pass the first test
        assert strict.kept <= plain.kept


@pytest.mark.parametrize("method", ["sgr", "conformal-risk-control"])
@given(case=cases, max_error=st.floats(0.01, 0.9), more=st.floats(0, 0.09))
def test_a_larger_error_never_keeps_less(
    method: CertifyMethod, case: tuple[int, int, int], max_error: float, more: float
) -> None:
    score, wrong = calibration(*case)
    small, large = (
        certify(score, wrong, max_error=error, method=method)
        for error in (max_error, max_error + more)
    )
    assert small.kept <= large.kept


@pytest.mark.parametrize("method", METHOD_NAMES)
@given(case=cases, random_state=st.integers(0, 99))
def test_only_the_order_of_the_scores_matters(
    method: CertifyMethod, case: tuple[int, int, int], random_state: int
) -> None:
    score, wrong = calibration(*case)
    rows = np.random.default_rng(random_state).permutation(len(score))
    rule = certify(score, wrong, max_error=0.1, method=method)
    shuffled = certify(score[rows], wrong[rows], max_error=0.1, method=method)
    assert shuffled == rule
    stretched = certify(8 * score - 4, wrong, max_error=0.1, method=method)
    assert stretched.kept == rule.kept


@given(case=cases)
def test_shares_keep_no_more_than_whole_errors(case: tuple[int, int, int]) -> None:
    score, wrong = calibration(*case)
    whole = certify(score, wrong, max_error=0.2)
    shares = certify(score, wrong.astype(np.float32), max_error=0.2, against="a random annotator")
    assert (whole.bound_by, shares.bound_by) == ("binomial", "hoeffding-bentkus")
    assert shares.kept <= whole.kept


@pytest.mark.parametrize("kind", [list, np.asarray, torch.from_numpy])
def test_arrays_of_any_kind(kind: Any) -> None:
    score, wrong = calibration(0, 300)
    expected = certify(score, wrong, max_error=0.1)
    assert expected.certified
    assert certify(kind(score), kind(wrong), max_error=0.1) == expected
    assert certify(kind(score), kind(wrong.astype(np.int64)), max_error=0.1) == expected


class TestShortfall:
    @pytest.mark.parametrize("method", PROMISING)
    @pytest.mark.parametrize(
        "random_state", [0, 2, 3, 4, 6, 7, 8]
    )  # for 1 and 5 no number would do
    def test_the_number_of_items_it_takes_is_enough(
        self, method: CertifyMethod, random_state: int
    ) -> None:
        """A tenth more items of the same kind certify the target; a fifth fewer do not."""
        score, wrong = calibration(random_state, 150, levels=10**6)
        short = certify(score, wrong, max_error=0.02, method=method).shortfall
        assert short is not None
        assert short.items_needed is not None
        rows = np.arange(2 * short.items_needed) % 150  # each as often as the others, nearly
        for factor, expected in ((1.1, True), (0.8, False)):
            chosen = rows[: int(factor * short.items_needed)]
            rule = certify(score[chosen], wrong[chosen], max_error=0.02, method=method)
            assert rule.certified == expected

    @pytest.mark.parametrize("method", METHOD_NAMES)
    @given(random_state=st.integers(0, 1000), num_items=st.integers(1, 200))
    def test_what_is_within_reach_is_certified(
        self, method: CertifyMethod, random_state: int, num_items: int
    ) -> None:
        score, wrong = calibration(random_state, num_items)
        short = certify(score, wrong, max_error=0.02, method=method).shortfall
        if short is None or short.reachable_error is None:
            return
        reached = certify(score, wrong, max_error=short.reachable_error, method=method)
        assert reached.certified
        assert reached.coverage == short.reachable_coverage
        less = round(short.reachable_error - 0.001, 6)
        if less > 0.02:
            assert not certify(score, wrong, max_error=less, method=method).certified

    @pytest.mark.parametrize("method", PROMISING)
    def test_the_error_within_reach_is_the_same_from_wherever_it_is_asked(
        self, method: CertifyMethod
    ) -> None:
        """Doubling the target from 30 or 52 % on steps over the 67.5 % that SGR reaches."""
        wrong = np.random.default_rng(0).permutation(200) < 120
        shorts = [
            certify(np.arange(200), wrong, max_error=asked, method=method).shortfall
            for asked in (0.3, 0.4, 0.48, 0.52, 0.55)
        ]
        (found,) = {short.reachable_error for short in shorts if short is not None}
        assert found is not None
        assert certify(np.arange(200), wrong, max_error=found, method=method).certified
        last = certify(np.arange(200), np.ones(200, bool), max_error=0.9995, method=method)
        assert last.shortfall is not None
        assert last.shortfall.reachable_error is None

    def test_the_fewest_items(self) -> None:
        """SGR's first test keeps half: (1 − 0.1)^47 <= 0.05 / 7, and 46 would not do."""
        assert 0.9**47 <= 0.05 / 7 < 0.9**46
        rule = certify(np.arange(92), np.zeros(92, bool), max_error=0.1)
        assert rule.shortfall is not None
        assert rule.shortfall.why == (
            "92 calibration items are too few: even without an error it takes 93 by SGR, 29 by "
            "learn-then-test."
        )
        assert rule.shortfall.needed_by_other is None  # 92 do, so no number is missing
        few = certify(np.arange(20), np.zeros(20, bool), max_error=0.1).shortfall
        assert few is not None
        assert (few.needed_by_other, 0.9**29 <= 0.05 < 0.9**28) == (29, True)
        assert " would do by SGR, about 29 by learn-then-test. With" in few.remedy
        other = certify(np.arange(20), np.zeros(20, bool), max_error=0.1, method="learn-then-test")
        assert other.shortfall is not None
        assert "without an error it takes 29 by learn-then-test. About" in str(other.shortfall)
        assert "SGR" not in str(other.shortfall)
        assert certify(np.arange(93), np.zeros(93, bool), max_error=0.1).coverage == 1

    def test_no_number_of_items_would_do(self) -> None:
        rule = certify(np.arange(500), np.arange(500) % 2, max_error=0.1)
        assert rule.shortfall is not None
        assert rule.shortfall.items_needed is None
        assert "exceeds 10 % at every threshold" in rule.shortfall.why
        assert "no number of calibration items like these would do" in rule.statement

    def test_a_sequence_says_where_it_began(self) -> None:
        rule = certify(np.arange(500), np.arange(500) % 2, max_error=0.1, method="learn-then-test")
        assert rule.shortfall is not None
        assert "first threshold tested, which keeps 20 % of the items" in rule.shortfall.why

    @pytest.mark.parametrize("method", METHOD_NAMES)
    @pytest.mark.parametrize("num_items", [1, 2, 500])
    @pytest.mark.parametrize("constant", [True, False])
    def test_all_wrong(self, method: CertifyMethod, num_items: int, constant: bool) -> None:
        score = np.zeros(num_items) if constant else np.arange(num_items)
        rule = certify(score, np.ones(num_items, bool), max_error=0.1, method=method)
        if method == "conformal-risk-control" and num_items == 500 and not constant:
            # The other quantity: 49 items kept, all of them wrong, are less than 10 % of all.
            assert (rule.kept, rule.errors) == (49, 49)
            return
        assert not rule.certified
        assert rule.threshold is None
        assert rule.coverage == 0
        assert rule.error is None
        assert rule.decide(score).tolist() == ["defer"] * num_items
        assert rule.shortfall is not None
        assert rule.shortfall.items_needed is None
        assert ("same for every item" in rule.shortfall.why) == (constant and num_items > 1)

    @pytest.mark.parametrize("method", METHOD_NAMES)
    def test_none_wrong(self, method: CertifyMethod) -> None:
        for score in (np.zeros(200), np.arange(200)):
            rule = certify(score, np.zeros(200, bool), max_error=0.1, method=method)
            assert rule.coverage == 1
            assert rule.certified

    def test_one_item(self) -> None:
        rule = certify([0.3], [False], max_error=0.1)
        assert rule.shortfall is not None
        assert rule.shortfall.why.startswith("1 calibration item is too few")
        assert rule.shortfall.items_needed == 93


class TestCapacity:
    @given(case=cases, share=st.floats(0, 1))
    def test_never_more_is_deferred_and_ties_stay_together(
        self, case: tuple[int, int, int], share: float
    ) -> None:
        score, wrong = calibration(*case)
        rule = by_capacity(score, wrong, defer=share)
        deferred = ~rule.keeps(score)
        most = share * len(score) + 1e-9
        assert deferred.sum() == len(score) - rule.kept <= most
        if rule.kept:
            assert rule.threshold is not None
            more = (score >= rule.threshold).sum()  # deferring the next score, too
            assert more > most
            assert rule.interval is not None
            assert rule.error is not None
            assert rule.interval[0] <= rule.error <= rule.interval[1]
        assert not rule.certified

    def test_a_count_and_the_interval(self) -> None:
        wrong = np.arange(100) >= 90
        rule = by_capacity(np.arange(100), wrong, defer=5)
        assert (rule.kept, rule.errors, rule.threshold) == (95, 5, 94)
        exact = binomtest(5, 95).proportion_ci(0.95)
        assert rule.interval == pytest.approx((exact.low, exact.high), abs=1e-9)
        same: Any
        for same in (0.05, np.int64(5), np.float64(0.05), np.float32(0.05)):
            assert by_capacity(np.arange(100), wrong, defer=same) == rule
        assert by_capacity(np.arange(100), wrong, defer=0.29).kept == 71

    def test_everything_can_be_deferred(self) -> None:
        rule = by_capacity([0.1, 0.2], [True, False], defer=1.0)
        assert rule.threshold is None
        assert rule.statement == "No error is promised: 2 of 2 calibration items are deferred."

    @pytest.mark.parametrize("defer", [True, -1, 3, np.int64(3), 1.5, float("nan"), -0.1, "1"])
    def test_bad_capacities_are_refused(self, defer: float) -> None:
        with pytest.raises(
            CredalError, match=r"whole number in 0\.\.2 or a share in \[0, 1\]; got"
        ):
            by_capacity([0.1, 0.2], [True, False], defer=defer)


class TestRule:
    def test_it_says_what_it_promises(self) -> None:
        score, wrong = calibration(0, 500)
        said = {m: certify(score, wrong, max_error=0.1, method=m).statement for m in METHOD_NAMES}
        for method in PROMISING:
            assert said[method].startswith(
                "With 95 % confidence, at most 10 % of the items it pred"
            )
            assert "drawn like the 500 calibration items" in said[method]
        conformal = said["conformal-risk-control"]
        assert "On average" in conformal
        assert "of all items are both predicted and wrong" in conformal
        assert "no confidence" in conformal
        rule = certify(score, wrong, max_error=0.1, method="conformal-risk-control")
        assert rule.confidence is None
        gold = certify(score, wrong / 1, max_error=0.2, against="a random annotator")
        assert "wrong against a random annotator" in gold.statement

    def test_shares_speak_of_a_random_annotator_unless_told(self) -> None:
        score, wrong = calibration(1, 500)
        shares = 0.8 * wrong
        whole = [(wrong, "majority"), (wrong.astype(int), "majority")]
        for kind, against in (*whole, (shares, "a random annotator")):
            promised = certify(score, kind, max_error=0.3)
            counted = by_capacity(score, kind, defer=0.2)
            assert (promised.against, counted.against) == (against, against)
        assert "are wrong against a random annotator" in promised.statement
        assert "are wrong against a random annotator" in counted.statement
        assert certify(score, shares, max_error=0.3, against="gold").against == "gold"
        assert by_capacity(score, shares, defer=0.2, against="majority").against == "majority"

    @pytest.mark.parametrize("method", [*METHOD_NAMES, "capacity"])
    @pytest.mark.parametrize("num_items", [3, 400])
    def test_json_gives_it_back(self, method: Any, num_items: int) -> None:
        score, wrong = calibration(1, num_items)
        if method == "capacity":
            rule = by_capacity(score, wrong, defer=0.2)
        else:
            rule = certify(score, wrong, max_error=0.1, method=method)
        text = rule.to_json()
        assert Guarantee.from_json(text) == rule
        assert json.loads(text)["statement"] == rule.statement

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no decision rule: Expecting value"),
            ("[]", "no decision rule"),
            ("{}", "'method' is missing. To fix: certify again"),
        ],
    )
    def test_what_is_no_rule_is_refused(self, text: str, message: str) -> None:
        with pytest.raises(CredalError, match=message):
            Guarantee.from_json(text)

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("method", "magic", "method must be one of"),
            ("threshold", None, "no threshold: nothing is kept"),
            ("threshold", "0.3", "threshold must be a number or None"),
            ("threshold", True, "threshold must be a number or None"),
            ("kept", 3.5, "kept must be a whole number"),
            ("kept", 10**6, r"kept must lie in 0\.\.num_items"),
            ("errors", -1, r"errors must lie in 0\.\.kept"),
            ("bound", 0.2, "the bound must not exceed max_error"),
            ("confidence", None, "only this method has no confidence"),
            ("max_error", None, "only a capacity has no max_error"),
            ("against", "me", "against must be one of 'majority', 'gold'"),
            ("group", 3, "group must be a name or None"),
            ("group", "patient", "group and num_groups belong together"),
            ("num_groups", 3, "group and num_groups belong together"),
            ("one_a_group", "yes", "one_a_group must be true or false"),
            ("one_a_group", True, "one_a_group: there must be as many groups as items"),
        ],
    )
    def test_a_changed_file_is_refused(self, field: str, value: object, message: str) -> None:
        score, wrong = calibration(0, 500)
        content = json.loads(certify(score, wrong, max_error=0.1).to_json()) | {field: value}
        with pytest.raises(CredalError, match=message):
            Guarantee.from_json(json.dumps(content))

    @pytest.mark.parametrize("number", [0, 501, 2.5])
    def test_groups_are_counted_among_the_items(self, number: int) -> None:
        score, wrong = calibration(0, 500)
        content = json.loads(certify(score, wrong, max_error=0.1).to_json())
        content |= {"group": "patient", "num_groups": number}
        with pytest.raises(
            CredalError, match=r"num_groups must be a whole number in 1\.\.num_items"
        ):
            Guarantee.from_json(json.dumps(content))

    @pytest.mark.parametrize("name", ["threshold", "interval", "shortfall", "group", "left_out"])
    def test_a_file_that_lacks_a_field_is_refused(self, name: str) -> None:
        score, wrong = calibration(0, 500)
        content = json.loads(certify(score, wrong, max_error=0.1).to_json())
        del content[name]
        with pytest.raises(CredalError, match=f"'{name}' is missing. To fix: certify again"):
            Guarantee.from_json(json.dumps(content))

    def test_scores_at_the_threshold_are_predicted(self) -> None:
        rule = certify(np.float32(np.arange(300) / 7), np.arange(300) > 290, max_error=0.1)
        assert rule.threshold is not None
        at = np.float32(rule.threshold)
        assert at == rule.threshold
        assert rule.keeps(np.array([at, np.nextafter(at, np.float32(99))])).tolist() == [
            True,
            False,
        ]
        above = np.array([np.nextafter(rule.threshold, 99)])
        assert rule.decide(above).tolist() == ["defer"]
        assert rule.decide(np.zeros(0)).shape == (0,)
        assert rule.keeps([np.inf]).tolist() == [False]
        with pytest.raises(CredalError, match="none NaN; item 1 has nan"):
            rule.decide([0.1, float("nan")])

    def test_a_float32_score_does_not_round_the_threshold(self) -> None:
        rule = by_capacity([0.1, 0.3, 0.5], [0, 0, 1], defer=1)
        assert rule.threshold == 0.3 < float(np.float32(0.3))
        assert rule.keeps(np.array([0.1, 0.3], dtype=np.float32)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("score", "wrong", "options", "message"),
    [
        ([0.1, float("nan")], [0, 1], {}, "none NaN; item 1 has nan"),
        ([0.1, float("inf")], [0, 1], {}, "score must be finite; item 1 has inf. To fix"),
        ([0.1, 0.2], [0, 1, 1], {}, r"each of the 2 items; got shape \(3,\)"),
        ([], [], {}, r"one item or more; got shape \(0,\)"),
        ([[0.1]], [0], {}, r"got shape \(1, 1\)"),
        ([0.1, 0.2], [0, 2], {}, "wrong must be 0 or 1 for every item; item 1 has 2"),
        ([0.1, 0.2], [0.5, 1.5], {}, r"wrong must be in \[0, 1\] .* item 1 has 1.5"),
        ([0.1, 0.2], [0.5, float("nan")], {}, "wrong must hold .* none NaN; item 1"),
        ([0.1, 0.2], ["right", "wrong"], {}, "wrong must be an array of numbers"),
        (
            [0.1],
            [0],
            {"max_error": 10},
            r"max_error must lie in \(0, 1\); got 10. To fix: write 10 %",
        ),
        ([0.1], [0], {"max_error": 0.0}, r"max_error must lie in \(0, 1\); got 0.0"),
        ([0.1], [0], {"max_error": float("nan")}, r"max_error must lie in \(0, 1\); got nan"),
        ([0.1], [0], {"max_error": "0.1"}, r"max_error must lie in \(0, 1\); got '0.1'"),
        ([0.1], [0], {"confidence": 95}, r"confidence must lie in \(0, 1\); got 95"),
        ([0.1], [0], {"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ([0.1], [0], {"method": "magic"}, "method must be one of 'sgr', 'learn-then-test'"),
        ([0.1], [0], {"method": "capacity"}, "method must be one of 'sgr', 'learn-then-test'"),
        ([0.1], [0], {"against": "truth"}, "against must be one of 'majority'"),
    ],
)
def test_bad_input_is_refused(
    score: Any, wrong: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CredalError, match=message):
        certify(score, wrong, **({"max_error": 0.1} | options))


def test_numbers_of_numpy_are_numbers() -> None:
    score, wrong = calibration(0, 500)
    max_error, confidence = 0.25, 0.875  # exact in float32
    numbers: Any = {"max_error": np.float32(max_error), "confidence": np.float32(confidence)}
    given = certify(score, wrong, **numbers)
    plain = certify(score, wrong, max_error=max_error, confidence=confidence)
    assert given == plain
    assert given.to_json() == plain.to_json()


def test_it_is_public() -> None:
    assert cl.certify is certify
    assert cl.Guarantee is Guarantee
