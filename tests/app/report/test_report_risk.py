"""The risk on the report page: what the model's cross-entropy is, given labels that are sets."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from credalearn import from_votes
from credalearn.app.annotations import dawid_skene
from credalearn.app.report.html import percent
from credalearn.app.report.risk_line import nats, risk_line
from credalearn.app.report.sets import _beside_guessing, _infinite
from credalearn.app.run import Run
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_label_sets, read_test_items
from credalearn.app.steps.voted_items import said_of
from credalearn.labels import VOTE_RULES, VoteRule
from credalearn.theory import risk_profile
from fake_run import fake_run, with_facts
from report_pages import Elements, a_profile, rests_on, told


def as_bounds(run: Run) -> Run:
    """Let the run be one whose people stated that the first class has .7 or more."""
    first, *others = run.classes
    zeros = (pl.lit(0.0).alias(f"n:{name}") for name in others)
    items = run.items.with_columns(pl.lit(0.7).alias(f"n:{first}"), *zeros)
    items.write_parquet(run.path / "items.parquet")
    said = items.select("item", pl.lit(first).alias("label"), pl.lit(0.7).alias("at_least"))
    said.write_parquet(run.path / "annotations.parquet")
    return with_facts(run, annotations=run.facts.annotations | {"kind": "bounds"})


def predicted_and_said(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and votes of the test items, row by row from the two files."""
    votes = {row["item"]: row for row in run.items.iter_rows(named=True)}
    rows = [row for row in run.predictions.iter_rows(named=True) if row["split"] == "test"]
    probs = [[row[f"p:{name}"] for name in run.classes] for row in rows]
    said = [[votes[row["item"]][f"n:{name}"] for name in run.classes] for row in rows]
    return np.array(probs), np.array(said)


def test_the_risk_lies_between_what_relaxed_labels_cost_at_best_and_at_worst(
    tmp_path: Path,
) -> None:
    run = fake_run(tmp_path / "run")
    best, worst = [], []
    for p, votes in zip(*predicted_and_said(run), strict=True):
        cost, top = -np.log(p), int(votes.argmax())
        kept = votes[top] / votes.sum()
        best.append(kept * cost[top] + (1 - kept) * cost.min())
        worst.append(kept * cost[top] + (1 - kept) * cost.max())
    low, high = nats(float(np.mean(best))), nats(float(np.mean(worst)))
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert f"on the 300 test items lies between {low} and {high} nats" in words
    chances = [percent(math.exp(-np.mean(each))) for each in (worst, best)]
    between = f"a probability between {chances[0]} and {chances[1]}."
    assert between.replace("\N{NO-BREAK SPACE}", " ") in words
    assert "Guessing all 3 classes alike scores 1.099 nats (the logarithm of 3), or 33.3 %" in words
    assert ("even at worst the model does better" in words) == (np.mean(worst) < math.log(3))
    spread = np.std(best) / np.sqrt(300)
    interval = re.search(r"at best, R₊ .*? 95 % interval (\S+) to (\S+)", words)
    assert interval is not None
    assert abs(float(interval[1]) - (np.mean(best) - 1.96 * spread)) < 0.4 * spread
    assert abs(float(interval[2]) - (np.mean(best) + 1.96 * spread)) < 0.4 * spread


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_labels_are_made_by_the_rule_of_the_run(tmp_path: Path, rule: VoteRule) -> None:
    run = with_facts(fake_run(tmp_path / "run", num_items=200), label_rule=rule)
    found = read_label_sets(run, read_test_items(run))
    probs, votes = predicted_and_said(run)
    assert found.profile == risk_profile(probs, from_votes(votes, rule=rule))
    assert found.promised == (rule.startswith("clopper") or rule == "total-variation")
    text = write_report(run).read_text(encoding="utf-8")
    assert f"rule {rule} " in told(text)
    rests = rests_on(text)
    assert (f"By the rule {rule} each does so with a probability of 95 %" in rests) == (
        found.promised
    )
    assert (f"an assumption: the rule {rule} does not promise it" in rests) == (not found.promised)
    assert ("the model’s true cross-entropy on the 50 test items is" in told(text)) == (
        rule == "precise"
    )
    assert ("price of imprecise labels" in told(text)) == (rule != "precise")


def test_stated_bounds_are_taken_as_they_are(tmp_path: Path) -> None:
    run = as_bounds(fake_run(tmp_path / "run", num_items=200))
    found = read_label_sets(run, read_test_items(run))
    cost = -np.log(predicted_and_said(run)[0])
    assert found.profile is not None
    assert found.profile.optimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.min(1)).mean())
    assert found.profile.pessimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.max(1)).mean())
    text = write_report(run).read_text(encoding="utf-8")
    assert "People stated bounds such as “at least 70 %”" in told(text)
    assert "Nobody voted, people stated bounds" in told(text)
    assert "--set-coverage" not in text
    assert "what people stated is taken at their word" in rests_on(text)


def test_weights_are_shares(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    run.items.with_columns(pl.col(f"n:{name}") / 3 for name in run.classes).write_parquet(
        run.path / "items.parquet"
    )
    whole = read_label_sets(fake_run(tmp_path / "whole", num_items=200), read_test_items(run))
    found = read_label_sets(run, read_test_items(run))
    assert found.profile is not None
    assert whole.profile is not None
    assert found.profile.pessimistic == pytest.approx(whole.profile.pessimistic)
    found = read_label_sets(with_facts(run, label_rule="idm"), read_test_items(run))
    assert "the rule 'idm' counts votes" in found.why_not


def test_annotators_are_weighed_by_skill_where_training_weighed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    options = run.facts.options | {"skill": "dawid-skene"}
    run = with_facts(run, label_rule="idm", options=options)
    items = read_test_items(run)
    found = read_label_sets(run, items)
    said = said_of(run)
    posterior = dict(zip(said.items, dawid_skene(said), strict=True))
    probs, votes = predicted_and_said(run)
    best = []
    for item, p, total in zip(items.items, probs, votes.sum(1), strict=True):
        lower = posterior[item] * total / (total + 1)
        best.append(-lower @ np.log(p) - (1 - lower.sum()) * np.log(p.max()))
    assert found.profile is not None
    assert found.profile.optimistic == pytest.approx(np.mean(best))
    text = write_report(run).read_text(encoding="utf-8")
    assert "Dawid and Skene’s model weighs the votes on an item" in told(text)
    assert "that the model of the annotators is right" in rests_on(text)
    for name in [name for name in sys.modules if name.split(".")[0] == "crowdkit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "There is no risk profile: Dawid and Skene's model is crowd-kit's" in words
    assert "To fix: pip install 'credalearn[crowd]'" in words


def test_a_run_without_its_annotations_has_a_page_all_the_same(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    (run.path / "annotations.parquet").unlink()
    text = write_report(run).read_text(encoding="utf-8")
    assert re.search(r"no risk profile: .*annotations.parquet cannot be read", told(text))
    assert "The risk lies between" not in rests_on(text)
    run = with_facts(fake_run(tmp_path / "odd", num_items=200), label_rule="<script>")
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "no risk profile: rule must be one of 'relax'" in words
    assert "got '<script>'" in words


@pytest.mark.parametrize(
    ("best", "worst", "said"),
    [
        (0.2, 0.6, "even at worst the model does better. The width of 0.400 nats"),
        (0.2, 0.7, "at worst the model does no better. The width of 0.500 nats"),
        (0.7, 0.9, "even at best the model does no better. The width of 0.200 nats"),
        (0.5, 0.5, "even at worst the model does better. Brackets"),
        (0.5, math.inf, "at worst the model does no better. Brackets"),
    ],
)
def test_risks_are_set_beside_guessing(best: float, worst: float, said: str) -> None:
    profile = a_profile(best, worst, infinite=3 * math.isinf(worst))
    words = _beside_guessing(profile, 2)
    assert f": {said}" in words
    assert words.startswith("Guessing all 2 classes alike scores 0.693 nats")
    warned = "".join(_infinite(profile))
    assert ("on 3 test items the model gives a probability of exactly 0" in warned) == (
        worst == math.inf
    )


@given(
    st.floats(0, 20),
    st.one_of(st.floats(0, 20), st.just(math.inf)),
    st.integers(2, 1000),
)
@example(0.0, 0.0, 2)
def test_the_line_of_risks_is_drawn_to_scale(best: float, more: float, num_classes: int) -> None:
    profile = a_profile(best, best + more, infinite=int(more == math.inf))
    drawn = Elements(risk_line(profile, num_classes))
    attributes = {(attrs.get("class") or "").split()[0]: attrs for _, attrs in drawn.tags}
    pieces = {
        name: [float(n) for n in re.findall(r"([\d.]+)%", attributes[name].get("style") or "")]
        for name in ("between", "guess")
    }
    (left, width), (guess, _) = pieces["between"], pieces["guess"]
    assert 0 <= left <= left + width <= 100.01
    scale = guess / math.log(num_classes)
    rounding = 0.01 * (1 + (best + more) / math.log(num_classes))
    assert left == pytest.approx(best * scale, abs=min(rounding, 1))
    if more < math.inf:
        assert width == pytest.approx(more * scale, abs=min(rounding, 1))
    else:
        assert left + width == pytest.approx(100, abs=0.02)
    assert (attributes["between"].get("class") == "between open") == (more == math.inf)
    assert attributes["risk"].get("role") == "img"
    label = attributes["risk"].get("aria-label") or ""
    for number in (best, best + more, math.log(num_classes)):
        assert nats(number) in label
        assert nats(number) in " ".join(drawn.texts)
