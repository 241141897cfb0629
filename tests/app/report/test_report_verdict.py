"""The verdict of the report page: one sentence for every kind of rule."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from credalearn import CredalError
from credalearn.app.report import PageRule, Walk
from credalearn.app.report.html import short_percent
from credalearn.app.report.verdict import verdict
from credalearn.app.run import Run
from credalearn.app.steps.certifying import certify_run
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_rule
from fake_run import add_rule, fake_run
from report_pages import data_of

MAJORITY = "the class with most votes"


def a_walk() -> Walk:
    """Keep none, 75 or all of 100 items; of the 75, 6 are wrong."""
    kept, wrong = np.array([0, 75, 100]), np.array([0, 6, 20])
    low, high = np.array([0, 0.03, 0.13]), np.array([1, 0.166, 0.29])
    return Walk("mmi", np.array([-1, 0.4, 0.9]), kept, kept, wrong, low, high, np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("rule", "state", "sentence"),
    [
        (None, "open", "No rule has been made yet."),
        (
            PageRule(0.4, max_error=0.1, confidence=0.95, coverage=0.75),
            "certified",
            "Keep 75 % of the items at an error of at most 10 % with 95 % confidence; 25 % go to a "
            "human.",
        ),
        (
            PageRule(0.4, "kept-and-wrong", max_error=0.005, coverage=0.7461),
            "certified",
            "Keep 74.6 % of the items; at most 0.5 % of all items are expected to be kept and "
            "wrong. 25.4 % go to a human.",
        ),
        (
            PageRule(0.4, "capacity", coverage=2 / 3),
            "capacity",
            "Defer the least certain 33.3 % to a human and keep 66.7 % of the items.",
        ),
        (
            PageRule(None, max_error=0.01, confidence=0.9995, why_not="30 are too few."),
            "refused",
            "An error of at most 1 % with 99.95 % confidence cannot be certified with these data.",
        ),
    ],
)
def test_the_verdict_is_a_sentence(rule: PageRule | None, state: str, sentence: str) -> None:
    said = verdict(rule, a_walk(), command="credalearn certify RUN", counted=MAJORITY)
    assert said.state == state
    assert said.sentence.replace("\N{NO-BREAK SPACE}", " ") == sentence
    notes = " ".join(said.notes).replace("\N{NO-BREAK SPACE}", " ")
    if rule is not None and rule.threshold is not None:
        assert "keeps 75.0 %, with an observed error of 8.0 % (95 % interval 3.0 % to" in notes
    assert ("30 are too few. Until then" in notes) == (state == "refused")
    assert ("6.0 % of all items with a truth are kept and wrong" in notes) == (
        rule is not None and rule.quantity == "kept-and-wrong"
    )
    assert (said.command == "credalearn certify RUN") == (state == "open")


def test_a_promise_about_annotators_is_not_checked_against_the_majority_alone() -> None:
    rule = PageRule(0.4, max_error=0.3, confidence=0.95, truth="a random annotator")
    said = verdict(rule, a_walk(), command="", counted=MAJORITY, disagreement=0.25)
    notes = " ".join(said.notes).replace("\N{NO-BREAK SPACE}", " ")
    assert "an observed error of 8.0 % against the class with most votes" in notes
    assert "A random annotator disagrees with a label that is kept 25.0 % of the time." in notes


def test_a_rule_must_say_something() -> None:
    with pytest.raises(CredalError, match="a threshold or say why there is none"):
        PageRule(None, max_error=0.1)
    with pytest.raises(CredalError, match="must hold the max_error asked for"):
        PageRule(0.2)


@pytest.mark.parametrize("method", ["pocc", "softmax"])
@pytest.mark.parametrize("kind", ["open", "refused", "capacity", "everything", "conformal"])
def test_every_kind_of_rule_has_a_page(tmp_path: Path, kind: str, method: str) -> None:
    run = fake_run(tmp_path / kind, method=method, num_items=200, classes=("yes", "no"))
    options: dict[str, Any] = {
        "refused": {"max_error": 0.001},
        "capacity": {"capacity": 0.25},
        "everything": {"capacity": 1.0},
        "conformal": {"max_error": 0.05, "method": "conformal-risk-control"},
    }
    if kind != "open":
        add_rule(run, **options[kind])
    text = write_report(run).read_text(encoding="utf-8")
    said = {
        "open": "No rule has been made yet.",
        "refused": "cannot be certified with these data.",
        "capacity": "Defer the least certain 2",
        "everything": "Defer the least certain 100",
        "conformal": "are expected to be kept and wrong.",
    }
    assert said[kind] in text
    assert ("pessimist" in text) == (method == "pocc")
    assert (f"credalearn certify {run.path} --max-error 0.10" in text) == (kind == "open")
    content = data_of(text)
    shown = text.split('<ul class="gallery">')[1].split("</ul>")[0] if "<h3>" in text else ""
    assert shown.count("<li>") == min(24, _gallery_size(run))
    assert content["region"] is None
    assert (content["rule"] is None) == (kind in ("open", "refused"))
    assert content["walks"][0]["kept"][content["start"]] == _kept(run)


def _gallery_size(run: Run) -> int:
    total = run.predictions.filter(pl.col("split") == "test").height
    kept = _kept(run)
    return total - kept if kept < total else total


def _kept(run: Run) -> int:
    table = run.predictions.filter(pl.col("split") == "test")
    rule = read_rule(run)
    if rule is None or rule.threshold is None:
        return len(table)
    return int((table["score"] <= rule.threshold).sum())


def test_the_verdict_says_what_the_promise_is_about(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    rule = certify_run(run, max_error=0.1).rule
    text = write_report(run).read_text(encoding="utf-8")
    share = short_percent(round(rule.coverage, 3))
    assert f"Keep {share} of the items at an error of at most" in text
    assert "among those with a single most-voted class, with" in text
    total = rule.num_items + rule.left_out
    assert f"Of the {total} calibration items {rule.left_out} have none and took no part" in text
    assert f"from {rule.num_items} calibration items with a single most-voted class by" in text
    assert "for new items with a single most-voted class. It holds" in text
    kept = run.predictions.filter((pl.col("split") == "test") & (pl.col("score") <= rule.threshold))
    judged = kept["wrong"].count()
    assert judged < len(kept)
    assert f"among the {judged} kept that have a truth (95" in text
