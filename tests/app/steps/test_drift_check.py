"""Whether accuracy and guarantee still hold, against exact tests by SciPy."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, fisher_exact

from credalearn._formats import percent
from credalearn.app.run import Run
from credalearn.app.steps.certify import certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.drift_check import _detectable, _verdict, drift_check
from fake_run import fake_run, with_facts


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fake_run(tmp_path_factory.mktemp("old") / "run")


def certified(run: Run, **options: Any) -> Run:
    return certify(run, CertifyOptions(**options)).run


def new_run(folder: Path, *, sharpness: float = 4.0) -> Run:
    """A run on other items, of which none was seen before."""
    return fake_run(folder / "new", random_state=1, sharpness=sharpness)


def test_the_lines_have_the_numbers_of_the_tables(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path)
    told = "\n".join(drift_check(old, new).lines)
    wrong, before = new.predictions["wrong"], old.predictions.filter(split="test")["wrong"]
    for errors in (wrong.drop_nulls(), before.drop_nulls()):
        mean = errors.mean()
        assert isinstance(mean, float)
        assert f"{percent(1 - mean)} (95 % interval" in told
    assert old.guarantee is not None
    kept = old.guarantee.keeps(new.predictions["score"].to_numpy())
    judged = kept & wrong.is_not_null().to_numpy()
    error = float(wrong.fill_null(False).to_numpy()[judged].mean())
    assert f"predicts {percent(kept.mean())} of {len(kept):,} new items" in told
    assert f"of the {judged.sum():,} predicted with a single most-voted class" in told
    assert f"{percent(error)} are wrong." in told
    assert "This does not contradict the guaranteed 20 %; an error of " in told
    assert drift_check(old, new).outdated is None


def test_drift_is_reported(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path, sharpness=0.5)
    found = drift_check(old, new)
    assert (
        "Accuracy dropped significantly (Fisher's exact test, level 5 %); with " in found.lines[1]
    )
    assert found.lines[-1].startswith("Above the guaranteed 20 %: with 95 % confidence the error")
    assert found.outdated is not None
    assert found.outdated.startswith("its guarantee does not hold for the 600 newer items")
    marked = old.mark_outdated(found.outdated)
    assert Run.load(old.path).warnings == marked.warnings == [f"Out of date: {found.outdated}"]
    (old.path / "drift.json").unlink()


def test_items_that_the_run_already_had_are_left_out(old: Run, tmp_path: Path) -> None:
    assert drift_check(old, old).lines == [
        f"All items are calibration or test items of {old.path}: nothing to compare."
    ]
    new = new_run(tmp_path)
    renamed = pl.col("item").str.replace("item", "known")
    some = old.predictions.head(50)
    items = old.items.filter(pl.col("item").is_in(some["item"]))
    both = replace(
        new,
        predictions=pl.concat([new.predictions, some.with_columns(renamed)]),
        items=pl.concat([new.items, items.with_columns(renamed)]),
    )
    assert drift_check(old, both) == drift_check(old, new)


def test_a_guarantee_is_contradicted_where_the_exact_test_rejects_it() -> None:
    for errors in range(8, 24):
        told, broken = _verdict(0.1, errors, 100, binary=True)
        assert broken == ("with 95 % confidence" in told)
        by_chance = binom.sf(errors - 1, 100, 0.1)
        assert ("with 95 % confidence" in told) == (by_chance < 0.05)
        assert ("may be chance" in told) == (by_chance >= 0.05 and errors > 10)
        assert ("does not contradict" in told) == (errors <= 10)


@pytest.mark.parametrize("number", [1, 2, 3, 12, 60])
@pytest.mark.parametrize("errors", [0, 63, 200])
def test_the_detectable_accuracy_is_where_the_exact_test_has_power(
    number: int, errors: int
) -> None:
    told = _detectable(np.arange(241) < errors, number)
    worse = [each for each in range(number + 1) if each / number > errors / 241]
    tables = ([[each, number - each], [errors, 241 - errors]] for each in worse)
    found = [fisher_exact(table).pvalue <= 0.05 for table in tables]
    if not any(found):
        assert told == "too few items to detect a difference"
        return
    least = worse[found.index(True)]
    assert all(found[found.index(True) :])
    rate = brentq(lambda x: binom.sf(least - 1, number, x) - 0.8, 0, 1)
    assert f"a drop to {percent(1 - rate)} would be noticed in 8 of 10 cases" in told


def test_other_guarantees_are_checked_for_what_they_promise(old: Run, tmp_path: Path) -> None:
    new = new_run(tmp_path)
    assert (
        len(drift_check(certified(old, capacity=0.3), new).lines) == 3
    )  # no error rate is promised
    average = certified(old, max_error=0.3, method="conformal-risk-control")
    assert "the 30 % are an average over calibration sets" in drift_check(average, new).lines[-1]
    votes = certified(old, max_error=0.4, against="annotator")
    assert votes.guarantee is not None
    kept = new.predictions.filter(votes.guarantee.keeps(new.predictions["score"].to_numpy()))
    mean = float(np.mean(kept["disagreement"].to_numpy()))
    assert f"predicted with a vote, {percent(mean)} are wrong." in drift_check(votes, new).lines[-2]


def test_different_truths_are_not_compared(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path)
    gold = replace(new, facts=replace(new.facts, truth="gold"))
    lines = drift_check(old, gold).lines
    assert lines[1].startswith("Not comparable: the test items were compared with")
    assert lines[-1].endswith("its guarantee is about the class with the most votes.")


def in_groups(run: Run) -> Run:
    groups = pl.Series("group", [f"p{row // 4}" for row in range(len(run.items))])
    splits = replace(run.facts.splits, group="patient")
    return with_facts(run, items=run.items.with_columns(groups), splits=splits)


@pytest.mark.parametrize("sharpness", [4.0, 0.5])
def test_a_promise_about_groups_is_checked_by_groups(tmp_path: Path, sharpness: float) -> None:
    old = certified(in_groups(fake_run(tmp_path / "old")), max_error=0.3)
    new = in_groups(new_run(tmp_path, sharpness=sharpness))
    found = drift_check(old, new)
    assert " for a random item of a group" in found.lines[-1]
    assert (found.outdated is None) == (sharpness == 4)
    if sharpness == 4:
        assert "with 150 groups, an error of" in found.lines[-1]
