"""Promises about classes and costs: counted by loops, one threshold or one per class."""

import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from credalearn import CredalError, Guarantee, Promise, ScoredItems, certify
from credalearn.guarantees import better_score
from present import present
from scored_items import tried_in_turn

NAMES = np.array(["benign", "malignant", "other"])


def classified(random_state: int, num_items: int = 900) -> dict[str, Any]:
    """Scores with predicted and true classes; malignant items are missed most often."""
    rng = np.random.default_rng(random_state)
    score = rng.random(num_items)
    truth = rng.choice(3, num_items, p=[0.6, 0.25, 0.15])
    wrong = rng.random(num_items) < score**2 * np.array([0.2, 0.5, 0.4])[truth]
    predicted = np.where(wrong, (truth + rng.integers(1, 3, num_items)) % 3, truth)
    return {"score": score, "predicted": NAMES[predicted], "truth": NAMES[truth]}


PROMISES = (
    Promise(kind="called", name="malignant", limit=0.12),
    Promise(kind="missed", name="malignant", limit=0.2),
)


@pytest.mark.catches("guarantees/_sequence.py", "np.max(found, axis=0)", "np.min(found, axis=0)")
@pytest.mark.parametrize("random_state", range(4))
def test_one_threshold_keeps_all_promises(random_state: int) -> None:
    """The largest threshold up to which the largest of three binomial p-values is at most 5 %."""
    items = classified(random_state)
    score, wrong = items["score"], items["predicted"] != items["truth"]
    found = certify(**items, max_error=0.15, promises=PROMISES)
    members = [
        (np.ones(900, dtype=bool), 0.15),
        (items["predicted"] == "malignant", 0.12),
        (items["truth"] == "malignant", 0.2),
    ]
    best = None
    for limit in tried_in_turn(score, 0.12, 0.05):  # the smallest limit needs the most items
        kept = [(score <= limit) & member for member, _ in members]
        p = [
            binom.cdf(wrong[rows].sum(), rows.sum(), rate)
            for rows, (_, rate) in zip(kept, members, strict=True)
        ]
        if max(p) > 1 - 0.95:
            break
        best = limit
    assert found.threshold == best is not None
    for promise, (member, _) in zip(found.promises, members[1:], strict=True):
        rows = member & found.keeps(score)
        assert (promise.kept, promise.errors) == (rows.sum(), wrong[rows].sum())
        assert promise.errors / promise.kept < present(promise.bound) <= promise.limit
    assert found.kept <= certify(**items, max_error=0.15).kept
    assert Guarantee.from_json(found.to_json()) == found


def test_sentence_names_every_promise() -> None:
    text = certify(**classified(0), max_error=0.15, promises=PROMISES).sentence()
    assert "at most 15 % of the predicted items are wrong" in text
    assert "; and at most 12 % of the predicted items called malignant are wrong" in text
    assert "; and at most 20 % of the predicted items that are malignant by" in text


def test_a_class_promise_can_stand_alone() -> None:
    found = certify(**classified(1), max_error=None, promises=PROMISES[:1])
    assert found.max_error is None
    assert found.certified
    assert "With 95 % confidence, at most 12 % of the predicted items called" in found.sentence()


def test_costs_weigh_errors() -> None:
    """Errors that cost five times as much defer more; equal costs are the plain error in shares."""
    items = classified(2)
    costly = Promise(limit=0.15, costs=(("malignant", "benign", 5.0),))
    found = certify(**items, max_error=None, promises=[costly])
    kept = found.keeps(items["score"])
    truth, predicted = items["truth"][kept], items["predicted"][kept]
    bad = (truth == "malignant") & (predicted == "benign")
    cost = float((truth != predicted).sum() + 4 * bad.sum())
    assert found.promises[0].errors == pytest.approx(cost)
    assert cost / kept.sum() < present(found.promises[0].bound) <= 0.15
    assert found.kept < certify(**items, max_error=0.15).kept
    assert "where calling malignant benign costs 5 and any other error 1" in found.sentence()
    wrong_name = Promise(limit=0.15, costs=(("malign", "benign", 5.0),))
    with pytest.raises(CredalError, match="no item is or is called 'malign'"):
        certify(**items, max_error=None, promises=[wrong_name])


def test_classes_of_promises_may_be_numbers() -> None:
    items = classified(2)
    numbered = {key: np.searchsorted(NAMES, items[key]) for key in ("predicted", "truth")}
    pairs: Any = (
        ({"kind": "called", "name": "malignant"}, {"kind": "called", "name": 1}),
        ({"costs": (("malignant", "benign", 5.0),)}, {"costs": ((1, 0, 5.0),)}),
    )
    for named, by_number in pairs:
        wanted = certify(**items, max_error=None, promises=[Promise(limit=0.15, **named)])
        promise = Promise(limit=0.15, **by_number)
        for truth in (numbered["truth"], numbered["truth"].astype(np.float64)):
            found = certify(
                **items | numbered | {"truth": truth}, max_error=None, promises=[promise]
            )
            assert found.threshold == wanted.threshold
    assert "at most 4.321 % of" in Promise(limit=0.04321).sentence("the gold labels")
    with pytest.raises(CredalError, match="truth must name a class for every item; item 1 has"):
        ScoredItems([0.1, 0.2], predicted=["cat", "dog"], truth=np.array(["cat", None]))


def test_thresholds_per_class_share_the_risk() -> None:
    items = classified(3)
    found = certify(**items, max_error=0.1, per_class=True)
    limits = dict(found.class_thresholds)
    for name in NAMES:
        rows = items["predicted"] == name
        own = {key: each[rows] for key, each in items.items()}
        alone = certify(**own, max_error=0.1, confidence=1 - 0.05 / 3)
        assert limits[name] == alone.threshold
    kept = found.keeps(items["score"], items["predicted"])
    slow = [s <= (limits[k] or -1) for s, k in zip(items["score"], items["predicted"], strict=True)]
    assert kept.tolist() == slow
    assert found.kept == kept.sum()
    assert found.decide([0.0], ["unseen"]).tolist() == ["defer"]
    assert "of each class at most 10 % of the predicted items are wrong" in found.sentence()
    assert Guarantee.from_json(found.to_json()) == found
    with pytest.raises(CredalError, match="thresholds per class need the classes"):
        found.keeps([0.1])
    reference = ScoredItems(**classified(9))
    helped = certify(**items, max_error=0.1, per_class=True, reference=reference)
    assert helped.certified
    nothing = certify(**classified(3, 20), max_error=0.1, per_class=True)
    short = present(nothing.shortfall)
    needed = r"It would take about \d+ calibration items predicted as '\w+' like these; there are"
    assert re.match(f"{needed} {short.items}\\.", str(short))
    assert short.items == (classified(3, 20)["predicted"] == short.predicted).sum()


def test_an_outcome_is_worded() -> None:
    called = Promise(kind="called", name="cat", limit=0.05, kept=20, errors=1.0)
    assert called.outcome() == "5.0 % of 20 called cat are wrong (at most 5 %)"
    assert Promise(kind="missed", name="cat", limit=0.05).outcome() == "there are none that are cat"
    costs = Promise(limit=2.0, costs=(("cat", "dog", 8.0),), kept=4, errors=2.0)
    assert costs.outcome() == "the mean cost of 4 is 0.5 (at most 2)"
    assert str(costs) == "mean cost at most 2"


def test_says_which_of_several_promises_fails_alone() -> None:
    easy, hard = (Promise(kind="missed", name=NAMES[0], limit=limit) for limit in (0.9, 0.001))
    for reference in (None, ScoredItems(**classified(9))):
        found = certify(**classified(3), max_error=0.5, promises=(easy, hard), reference=reference)
        assert found.shortfall is not None
        assert found.shortfall.failing == (f"missed {NAMES[0]} at most 0.1 %",)
        assert "Not certified alone either: missed" in str(found.shortfall)


def test_promises_hold_for_new_items() -> None:
    """200 calibration sets: each promise is broken for new items in at most 5 % of them, about."""
    new = classified(10_000, 200_000)
    wrong = new["predicted"] != new["truth"]
    broken = 0
    for random_state in range(200):
        found = certify(**classified(random_state, 400), max_error=0.12, promises=PROMISES)
        kept = found.keeps(new["score"])
        rates = [
            wrong[kept & (new[key] == "malignant")].mean() if kept.any() else 0
            for key in ("predicted", "truth")
        ]
        rates.append(wrong[kept].mean() if kept.any() else 0)
        broken += any(rate > limit for rate, limit in zip(rates, (0.12, 0.2, 0.12), strict=True))
    assert broken <= binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "called", "limit": 0.1}, "a promise must name a class unless it is about all"),
        ({"name": "cat", "limit": 0.1}, "a promise must name a class unless it is about all"),
        ({"kind": "found", "name": "cat", "limit": 0.1}, "kind must be one of 'error'"),
        ({"limit": 1.5}, "limit must be above 0 and below 1; got 1.5"),
        ({"limit": 0.1, "costs": (("a", "b", -1.0),)}, "a cost must be 0 or more; got -1.0"),
        ({"limit": 0.1, "costs": (("a", "a", 1.0),)}, "calling a a is no error, and costs nothing"),
        ({"limit": 0.1, "costs": (("a", "b", 1), ("a", "b", 2))}, "calling a b has two costs"),
        ({"limit": 0.1, "costs": "a:b=5"}, r"costs must be triples, .* got 'a:b=5'"),
    ],
)
def test_rejects_contradictory_promises(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        Promise(**options)


def test_rejects_promises_about_unknown_classes() -> None:
    items = classified(0)
    with pytest.raises(CredalError, match="no item is called 'cat', so nothing can be promised"):
        certify(**items, promises=[Promise(kind="called", name="cat", limit=0.1)])
    with pytest.raises(CredalError, match=r"need the classes\. To fix: pass predicted and truth"):
        certify(items["score"], items["score"] > 0.9, promises=PROMISES)


def test_the_better_score_has_the_larger_area() -> None:
    items = ScoredItems(**classified(0))
    assert items.wrong.dtype == np.float64
    wrong = items.wrong.astype(bool)
    scores = {"lower-probability": -items.score, "top-probability": items.score}
    assert better_score(scores, wrong) == "top-probability"  # type: ignore[arg-type]
