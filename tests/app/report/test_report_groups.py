"""The page of a rule about one item of each group: it is checked on such items."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credalearn.app.run import Run
from credalearn.app.steps.card import card
from credalearn.app.steps.certifying import certify_run, one_of_each
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_rule
from credalearn.guarantees import Guarantee
from fake_run import add_sets, fake_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Groups of one to five items; 300 items test."""
    run = fake_run(tmp_path / "run")
    sizes = np.tile([1, 2, 3, 4, 5], len(run.items) // 15)
    groups = [f"p{number}" for number in np.repeat(np.arange(len(sizes)), sizes)]
    run.items.with_columns(group=pl.Series(groups)).write_parquet(run.path / "items.parquet")
    splits = run.facts.splits | {"group": "patient"}
    write_json(run.path / "run.json", run.facts | {"splits": splits})
    return Run.load(run.path)


def page_of(run: Run) -> str:
    return write_report(run).read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_the_observed_error_is_of_the_items_that_the_promise_is_about(run: Run) -> None:
    certify_run(run, max_error=0.2)
    assert "Checked on 300 test items that neither the model" in page_of(run)
    found = certify_run(run, max_error=0.2, one_per_group=True)
    assert found.test_items == 100
    page = page_of(run)
    said = re.search(r"Checked on (.*?)</p>", page)
    assert said is not None
    share, error = found.test_kept / found.test_items, found.errors / found.judged_kept
    assert said[1].startswith(
        "100 test items, one of each group, that neither the model nor the rule has seen: it keeps "
        f"{100 * share:.1f} %, with an observed error of {100 * error:.1f} % "
    )
    assert "Of one item, drawn at random, of each group keep" in page
    assert "items with a single most-voted class, one of each group, by selection" in page
    assert (
        "for one item, drawn at random, of each new group, if it has a single most-voted class. It "
        "holds for the rule’s own threshold" in page
    )
    assert "of 300 test items" in page  # the slider is about all items


def test_what_takes_items_as_independent_is_said_of_nothing_else(run: Run) -> None:
    said = "are alike: the {} take items as independent"
    certify_run(run, max_error=0.2)
    assert said.format("guarantees and intervals") in page_of(run)
    certify_run(run, max_error=0.2, one_per_group=True)
    assert said.format("intervals over all items") in page_of(run)
    add_sets(run)
    assert said.format("intervals over all items and the promise of the sets") in page_of(run)


def test_an_average_promise_is_about_such_items_too(run: Run) -> None:
    certify_run(run, max_error=0.1, method="conformal-risk-control", one_per_group=True)
    assert re.search(r"keep [\d.]+ %; at most 10 % of such items with a single most", page_of(run))


def test_the_card_and_the_command_say_what_items_they_are(run: Run) -> None:
    plain = certify_run(run, max_error=0.2)
    assert "On 300 test items it predicts" in plain.test_line
    assert "Of the 300 calibration items it predicts" in card(run)
    assert "The promise is about all predicted items together, not about each" in card(run)
    found = certify_run(run, max_error=0.2, one_per_group=True)
    assert "On 100 test items, one of each group, it predicts" in found.test_line
    assert "Of the 100 calibration items, one of each group, it predicts" in card(run)
    assert "The promise is about one item, drawn at random, of each group, over all" in card(run)


def test_one_item_a_group_that_nobody_drew_is_not_said_to_be_drawn(run: Run) -> None:
    """Gold labels on the first item of each group: chosen, by whatever rule."""
    first = run.items.unique("group", keep="first", maintain_order=True)["item"].implode()
    chosen = (pl.when(pl.col("item").is_in(first)).then(name) for name in ("truth", "wrong"))
    run.predictions.with_columns(*chosen).write_parquet(run.path / "predictions.parquet")
    found = certify_run(run, max_error=0.2)
    rule = found.rule
    assert (rule.num_groups, rule.one_per_group) == (rule.num_items, False)
    assert "drawn at random" not in rule.sentence()
    assert rule.sentence().endswith(
        f"The {rule.num_items} calibration items are one of each group ('patient'): the promise is "
        "about items that are chosen from their groups as these were."
    )
    assert "On 300 test items it predicts" in found.test_line
    assert "drawn at random, of each" not in page_of(run) + card(run)
    drawn = replace(rule, one_per_group=True)
    assert Guarantee.from_json(drawn.to_json()) == drawn


def test_the_items_are_those_that_certify_draws(run: Run) -> None:
    certify_run(run, max_error=0.2)
    every = read_rule(run)
    certify_run(run, max_error=0.2, one_per_group=True)
    rule = read_rule(run)
    assert every is not None
    assert rule is not None
    drawn = one_of_each(run, run.predictions.filter(split="test"), run.truth)
    assert drawn["group"].is_unique().all()
    assert (every.one_of_each_group, rule.one_of_each_group) == ((), tuple(drawn["item"]))


def test_the_curve_of_all_items_is_not_shaded(run: Run) -> None:
    shaded = "The shaded corner is the certified region"
    certify_run(run, max_error=0.2)
    assert shaded in page_of(run)
    certify_run(run, max_error=0.2, one_per_group=True)
    assert shaded not in page_of(run)


def test_a_random_annotator_disagrees_with_such_items_too(run: Run) -> None:
    found = certify_run(run, max_error=0.4, against="annotator", one_per_group=True)
    error = 100 * found.errors / found.judged_kept
    wanted = f"A random annotator disagrees with a label that is kept {error:.1f} % of the time."
    assert wanted in page_of(run)
