"""Guarantees: what they keep, what they say, and what is stored of them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import credalearn
from credalearn import CredalError, Guarantee, certify
from credalearn.guarantees import CertifyMethod, by_capacity
from credalearn.guarantees._truths import HAVING, LACKING, TRUTHS, Truth
from scored_items import scored_items

METHODS = (*get_args(CertifyMethod), "capacity")


def some(method: Any = "learn-then-test", num_items: int = 500, **options: Any) -> Guarantee:
    score, wrong = scored_items(0, num_items)
    if method == "capacity":
        return by_capacity(score, wrong, defer=0.2, **options)
    return certify(score, wrong, max_error=0.1, method=method, **options)


def test_scores_at_the_threshold_are_predicted() -> None:
    found = certify(np.float32(np.arange(300) / 7), np.arange(300) > 290, max_error=0.1)
    assert found.threshold is not None
    at = np.float32(found.threshold)
    assert at == found.threshold
    beyond = np.nextafter(at, np.float32(99))
    assert found.keeps(np.array([at, beyond])).tolist() == [True, False]
    assert found.decide(np.array([np.nextafter(found.threshold, 99)])).tolist() == ["defer"]
    assert found.keeps([np.inf]).tolist() == [False]
    assert found.decide(np.zeros(0)).shape == (0,)
    with pytest.raises(CredalError, match="must not be NaN; item 1"):
        found.decide([0.1, float("nan")])


def test_a_float32_score_does_not_round_the_threshold() -> None:
    found = by_capacity([0.1, 0.3, 0.5], [0, 0, 1], defer=1)
    assert found.threshold == 0.3 < float(np.float32(0.3))
    assert found.keeps(np.array([0.1, 0.3], dtype=np.float32)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("method", "parts"),
    [
        ("sgr", ["With 95 % confidence, at most 10 % of the predicted items are wrong"]),
        ("learn-then-test", ["With 95 % confidence, at most 10 % of the predicted items"]),
        ("betting", ["With 95 % confidence, at most 10 % of the predicted items"]),
        (
            "conformal-risk-control",
            ["On average", "at most 10 % of all items are both predicted and wrong", "larger"],
        ),
        ("capacity", ["No error rate is promised: 94 of 500", "(95 % interval"]),
    ],
)
def test_sentence_says_what_is_promised(method: str, parts: list[str]) -> None:
    found = some(method)
    for part in [*parts, "compared with the class with the most votes"]:
        assert part in found.sentence()
    if method not in ("capacity", "betting"):
        assert "for new items drawn like the 500 calibration items" in found.sentence()
    assert ("group" in found.sentence()) == (method == "betting")


@pytest.mark.parametrize("against", get_args(Truth))
def test_sentence_names_the_truth_and_which_items_have_one(against: Truth) -> None:
    found = some(against=against)
    assert f"compared with {TRUTHS[against]}" in found.sentence()
    assert "left out" not in found.sentence()
    partly = replace(found, left_out=12, left_out_kept=3).sentence()
    assert f"This is about items with {HAVING[against]}; 12 calibration items without" in partly
    assert LACKING[against]
    capacity = replace(some("capacity", against=against), left_out=12).sentence()
    assert f"calibration items with {HAVING[against]} are deferred" in capacity
    one = replace(some("capacity", against=against), kept=499).sentence()
    assert "1 of 500 calibration items is deferred" in one


@pytest.mark.parametrize("method", [each for each in METHODS if each != "betting"])
def test_sentence_says_what_groups_do_to_the_promise(method: str) -> None:
    plain = some(method)
    grouped = replace(some(method, groups=np.arange(500) // 10), group="patient")
    assert grouped.num_groups == 50
    assert grouped.sentence().startswith(plain.sentence())
    assert "these come from 50 groups (patient), and with few large groups" in grouped.sentence()
    assert some(method, groups=["x"] * 500).sentence().count("from 1 group,") == 1
    assert some(method, groups=np.arange(500)).sentence() == plain.sentence()


def test_sentence_of_groups_is_about_a_random_item_of_a_random_group() -> None:
    found = replace(some("betting", groups=np.arange(500) // 2), group="patient")
    assert found.sentence().endswith(
        "for a random item of a random new group (patient), drawn like the 250 groups of the 500 "
        "calibration items."
    )


def test_sentence_counts_the_requests() -> None:
    again = replace(some(), requests=3, confidence=0.9125).sentence()
    assert again.startswith("With 91.2 % confidence")
    assert again.endswith("The confidence counts all 3 requests on these items.")


def test_sentence_of_a_shortfall_says_what_it_would_take() -> None:
    found = some(num_items=30)
    asked = "an error of at most 10 % with 95 % confidence"
    assert found.refusal() == f"{asked} cannot be certified with 30 calibration items"
    refused = f"Nothing is certified and every item is deferred: {found.refusal()}."
    assert found.sentence() == f"{refused} {found.shortfall}"


def test_promises_and_refusals_are_worded_here_alone() -> None:
    package = Path(credalearn.__file__).parent
    worded = re.compile(
        r"(?i)\bwith\s[^;]{0,60}[%}]\s+confidence\b|confidence[^;.]{0,60},[^;.]{0,60}at most"
        r"|at most\s[^;]{0,60}((is|are) wrong|cannot be)"
    )
    for path in package.rglob("*"):
        # The theory has bounds of its own, which are not about a user's items.
        apart = {"guarantees", "theory"} & {*path.relative_to(package).parts}
        if path.suffix in (".py", ".j2", ".js") and not apart:
            found = worded.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: use Guarantee.sentence(): {found and found[0]}"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("num_items", [3, 400])
def test_json_round_trip(method: str, num_items: int) -> None:
    found = replace(some(method, num_items, groups=["a"] * num_items), group="patient")
    text = found.to_json()
    assert Guarantee.from_json(text) == found
    assert json.loads(text)["sentence"] == found.sentence()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("method", "magic", "Invalid enum value 'magic'"),
        ("threshold", "0.3", r"Expected `float \| null`, got `str`"),
        ("threshold", None, "a threshold exactly where items are kept"),
        ("kept", 10**6, "0 <= kept <= num_items"),
        ("bound", 0.2, "bound <= max_error"),
        ("class_thresholds", [["cat", 9.0]], "the largest threshold of its classes"),
    ],
)
def test_rejects_contradictory_files(field: str, value: object, message: str) -> None:
    content = json.loads(some().to_json()) | {field: value}
    with pytest.raises(CredalError, match=f"{message}.*To fix: certify again"):
        Guarantee.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"threshold": NaN}'])
def test_rejects_files_that_are_not_guarantees(text: str) -> None:
    with pytest.raises(CredalError, match=r"not a guarantee: .* To fix: certify again"):
        Guarantee.from_json(text)
