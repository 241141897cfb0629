"""The risk that labels which are sets leave open, on the page as in credalearn.theory."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from credalearn import Run, from_votes
from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.report.evaluation import HeldOut
from credalearn.app.steps.report import annotations_of, label_risk, risk_line
from credalearn.labels import VOTE_RULES, VoteRule, from_posterior
from credalearn.theory import RiskProfile, risk_profile
from fake_run import fake_run, rows_of, training_options, with_facts
from present import present
from report_pages import page_of, words_of


def predicted_and_said(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and votes of the test items, row by row from the two tables."""
    rows, said = rows_of(run, "test")
    return np.array([[row[f"p:{name}"] for name in run.classes] for row in rows]), said


def test_the_risk_lies_between_the_best_and_the_worst_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake_run(tmp_path / "run")
    probs, votes = predicted_and_said(run)
    risk = risk_profile(probs, from_votes(votes, rule="relax"))
    words = words_of(page_of(run), "sets")
    low, high = f"{risk.optimistic:.3f}", f"{risk.pessimistic:.3f}"
    assert f"between {low} and {high} nats" in words
    assert f"best case, R₊ {low}" in words
    assert f"worst case, R₋ {high}" in words
    assert "A uniform guess over 3 classes has a risk of 1.099:" in words
    assert "the model is better even in the worst case." in words
    known = label_risk(run, HeldOut.of(run))
    unsure = replace(present(known.profile), pessimistic_interval=(0.94, 1.17))
    found = replace(known, profile=unsure)
    monkeypatch.setattr("credalearn.app.steps.report.label_risk", lambda *_: found)
    assert "but the interval of the worst case reaches" in words_of(page_of(run), "sets")


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_labels_are_made_by_the_rule_of_the_run(tmp_path: Path, rule: VoteRule) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    run = with_facts(run, options=training_options(labels=rule))
    found = label_risk(run, HeldOut.of(run))
    probs, votes = predicted_and_said(run)
    assert found.profile == risk_profile(probs, from_votes(votes, rule=rule))
    assert found.promised == (rule.startswith("clopper") or rule == "total-variation")
    page = page_of(run)
    assert f"rule {rule} " in words_of(page, "sets")
    assumed = words_of(page, "assumptions")
    assert (f"With the rule {rule}, each label does" in assumed) == found.promised
    assert (f"an assumption: the rule {rule} does not" in assumed) == (not found.promised)


def test_stated_bounds_are_used_as_they_are(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    first, *others = run.classes
    zeros = (pl.lit(0.0).alias(f"n:{name}") for name in others)
    items = run.items.with_columns(pl.lit(0.7).alias(f"n:{first}"), *zeros)
    said = items.select("item", pl.lit(first).alias("label"), pl.lit(0.7).alias("at_least"))
    known = replace(run.facts.annotations, kind="bounds", votes=None, votes_per_item=None)
    run = with_facts(run, annotations=said, items=items, annotation_facts=known)
    found = label_risk(run, HeldOut.of(run))
    cost = -np.log(predicted_and_said(run)[0])
    assert found.profile is not None
    assert found.profile.optimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.min(1)).mean())
    assert found.profile.pessimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.max(1)).mean())
    page = page_of(run)
    assert "People stated bounds such as “at least 70 %”" in words_of(page, "sets")
    assert "there are no shares of votes" in words_of(page, "sets")
    assert "takes people’s statements at their word" in words_of(page, "assumptions")
    assert "Stated bounds by class, summed over items" in words_of(page, "people")
    assert "--set-coverage" not in page
    assert "Votes by class" not in page


def test_votes_are_weighted_by_skill_where_training_did(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    run = with_facts(run, options=training_options(labels="idm", skill="dawid-skene"))
    items = HeldOut.of(run)
    found = label_risk(run, items)
    said = annotations_of(run)
    posterior = dict(zip(said.items, dawid_skene(said, said.items), strict=True))
    probs, votes = predicted_and_said(run)
    labels = from_posterior([posterior[item] for item in items.items], votes.sum(1), rule="idm")
    assert found.profile == risk_profile(probs, labels)
    page = page_of(run)
    assert "Dawid and Skene’s model weights the votes" in words_of(page, "sets")
    assert "the model of the annotators must be right" in words_of(page, "assumptions")


def test_a_rule_that_cannot_label_the_items_is_explained(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    thirds = run.items.with_columns(pl.col(f"n:{name}") / 3 for name in run.classes)
    votes = run.annotations.with_columns(weight=1 / 3)
    run = with_facts(run, items=thirds, annotations=votes, options=training_options(labels="idm"))
    page = page_of(run)
    assert re.search(r"There is no risk profile: .*'idm' counts votes", words_of(page, "sets"))
    assert "The risk lies between" not in words_of(page, "assumptions")


@given(st.floats(0.01, 20), st.one_of(st.floats(0, 20), st.just(math.inf)), st.integers(2, 1000))
@example(0.01, 0.0, 2)
def test_the_line_is_drawn_to_scale(best: float, more: float, num_classes: int) -> None:
    worst, guess = best + more, math.log(num_classes)
    profile = RiskProfile(
        optimistic=best,
        pessimistic=worst,
        optimistic_interval=(0.9 * best, 1.1 * best),
        pessimistic_interval=(0.9 * worst, 1.1 * worst),
        items=10,
        confidence=0.95,
        infinite_items=int(math.isinf(worst)),
    )
    line = risk_line(profile, guess)
    places = [line["best"], line["worst"], line["guess"], *line["best_ends"]]
    places += line["worst_ends"] or []
    assert all(0 <= place <= 100 for place in places)
    assert (line["worst_ends"] is None) == math.isinf(worst)
    scale = 1.1 * max(1.1 * (best if math.isinf(worst) else worst), guess)
    for place, risk in ((line["best"], best), (line["worst"], worst), (line["guess"], guess)):
        assert place == pytest.approx(min(100 * risk / scale, 100), abs=0.01)
