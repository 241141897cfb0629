"""The model card: the facts of a run, and the promises in the words of their author."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from credalearn import CredalError, Run, metrics
from credalearn._formats import number, percent
from credalearn.app.report.card import card, write_card
from credalearn.app.steps.export import OUTPUTS
from fake_run import add_rule, add_sets, fake_run, training_options, with_facts


def row(text: str, name: str) -> str:
    """The value of the first table row with this name."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return line[:-2].split("| ", 2)[2]


def test_the_card_has_the_facts_of_the_run(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    text = card(run, OUTPUTS)
    assert row(text, "classes") == "benign, indeterminate, malignant"
    assert row(text, "input") == "2 features: size, texture"
    assert row(text, "labels") == "votes, rule relax"
    assert (row(text, "training items"), row(text, "test items")) == ("600", "300")
    assert row(text, "left out") == "12 skipped, 3 cancelled"
    assert row(text, "torch") == run.facts.versions["torch"]
    assert "`features`, float64 of shape (N, 2)" in text
    assert "| `score` | (N,) |" in text
    known = run.predictions.filter(split="test").drop_nulls("truth")
    probs = known.select(f"p:{name}" for name in run.classes).to_numpy()
    y = [run.classes.index(name) for name in known["truth"]]
    assert row(text, "accuracy") == percent(metrics.accuracy(probs, y))
    assert "initial weights" not in text
    many = (*(f"pixel_{number}" for number in range(512)), "age")
    found = replace(run.facts.annotations, items=1201, several=1100, unvoted=1)
    inputs = replace(run.facts.inputs, features=many)
    text = card(with_facts(run, inputs=inputs, annotations=found), OUTPUTS)
    assert row(text, "input") == r"513 features: pixel\_0 to pixel\_511, age"
    assert row(text, "items") == "1,201, 1 without a vote"
    assert row(text, "unanimous items").endswith(" % of the 1,100 items with two votes or more")
    weights = training_options(weights="start.pt", weights_sha256="abc", augment="crop-flip")
    text = card(with_facts(run, options=weights), OUTPUTS)
    assert row(text, "initial weights") == "start.pt (SHA-256 abc)"
    assert row(text, "augmentation") == "crop-flip"


def test_the_card_of_images_says_how_they_are_prepared(tmp_path: Path) -> None:
    text = card(fake_run(tmp_path / "run", num_items=100, images=True), OUTPUTS)
    assert row(text, "input") == "RGB images of 64 × 64 pixels"
    assert "`images`, float32 of shape (N, 3, 64, 64)" in text
    places = [text.index(step) for step in ("upright", "16-bit", "to RGB", "bilinear")]
    assert places == sorted(places)


def test_promises_are_worded_in_one_place(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    assert "nothing is guaranteed about the predictions" in card(run, OUTPUTS)
    assert "Widened sets" not in card(run, OUTPUTS)
    run = add_sets(add_rule(run))
    assert run.guarantee is not None
    assert run.sets is not None
    text = card(run, OUTPUTS)
    assert f"\n\n{run.guarantee.sentence()}\n\n" in text
    assert f"\n\n{run.sets.sentence()}\n\n" in text
    assert f"is at most {number(run.guarantee.threshold or 0)}; defer" in text
    assert f"keeps {percent(run.guarantee.coverage)} of the calibration items." in text


def test_a_recalibrated_run_has_two_sources_of_data(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    facts = run.facts
    training = replace(
        facts,
        created="2025-12-24",
        annotations=replace(facts.annotations, path="old.csv"),
        group="patient",
        later_items=7,
    )
    run = with_facts(run, recalibrated_from=training, trained_in="first")
    text = card(run, OUTPUTS)
    before, after = text.split("## Training data")[1].split("## Calibration data")
    assert row(before, "run") == "first"
    assert row(before, "annotations") == "old.csv"
    assert row(before, "items of later exports, used for training only") == "7"
    assert "calibration items" not in before
    assert row(after, "annotations") == "readings.csv"
    assert row(text, "trained") == "2025-12-24"
    assert "The model was trained with groups (patient)" in text.split("## Limits")[1]


def test_test_items_without_a_truth_have_no_quality(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=100)
    nothing = run.predictions.with_columns(
        truth=pl.lit(None, pl.String), wrong=pl.lit(None, pl.Boolean)
    )
    assert "No test item has a truth" in card(with_facts(run, predictions=nothing), OUTPUTS)


def test_only_our_own_card_is_replaced(tmp_path: Path) -> None:
    run: Run = fake_run(tmp_path / "run", num_items=100)
    path = tmp_path / "model.md"
    for _ in range(2):
        write_card(run, path, OUTPUTS)
        assert path.read_text(encoding="utf-8") == card(run, OUTPUTS)
    path.write_text("# My notes")
    with pytest.raises(CredalError, match=r"model\.md exists and is not a model card"):
        write_card(run, path, OUTPUTS)
    assert path.read_text() == "# My notes"
