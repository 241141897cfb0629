"""Whether accuracy and guarantee still hold, against exact tests by SciPy."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, fisher_exact

from credalearn import Promise, Run, ScoredItems
from credalearn._formats import percent
from credalearn.app.steps.certify import certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.drift_check import _accuracy_by_group, _detectable, _verdict, drift_check
from credalearn.app.steps.recalibrate import Recalibration
from fake_run import fake_run, grouped, with_facts
from present import present


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fake_run(tmp_path_factory.mktemp("old") / "run")


def certified(run: Run, **options: Any) -> Run:
    (run.path / "requests.json").unlink(missing_ok=True)  # of other tests
    return certify(run, CertifyOptions(**options)).run


def new_run(folder: Path, *, sharpness: float = 4.0) -> Run:
    """A run on other items, none of them seen before."""
    return fake_run(folder / "new", random_state=1, sharpness=sharpness)


def test_the_lines_have_the_numbers_of_the_tables(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path)
    found = drift_check(old, new)
    note, facts = "\n".join(found.lines), found.facts
    wrong, before = new.predictions["wrong"], old.predictions.filter(split="test")["wrong"]
    for name, errors in {"accuracy": wrong, "accuracy_before": before}.items():
        mean = errors.drop_nulls().to_numpy().mean()
        assert facts[name] == 1 - mean
        low, high = facts[f"{name}_interval"]
        assert f"{percent(1 - mean)} (95 % interval {percent(low)} to {percent(high)})" in note
    kept = present(old.guarantee).keeps(new.predictions["score"].to_numpy())
    judged = kept & wrong.is_not_null().to_numpy()
    error = float(wrong.fill_null(False).to_numpy()[judged].mean())
    assert f"predicts {percent(kept.mean())} of {len(kept):,} new items" in note
    assert f"of the {judged.sum():,} predicted with a single most-voted class" in note
    assert f"{percent(error)} are wrong." in note
    assert f"This does not contradict the guaranteed 20 % ({percent(error)}); with " in note
    assert (facts["items"], facts["predicted_judged"]) == (len(kept), judged.sum())
    assert (facts["predicted"], facts["error"]) == (kept.mean(), error)
    assert facts["promises"][0]["rate"] == pytest.approx(error)
    assert found.outdated is None


def test_drift_is_reported(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path, sharpness=0.5)
    found = drift_check(old, new)
    assert "Accuracy dropped significantly (Fisher's exact test, level 5 %); " in found.lines[1]
    assert found.lines[-1].startswith("Above the guaranteed 20 % (")
    assert ", at 95 % confidence; with " in found.lines[-1]
    assert present(found.outdated).startswith("its guarantee does not hold for 600 newer items")
    marked = old.keeping(outdated=found.outdated)
    assert f"{old.path} is marked as out of date." in Recalibration(marked, new, found).lines[-2]
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


def decided(wrong: Any, groups: Any = None) -> ScoredItems:
    """Predicted items."""
    return ScoredItems(np.zeros(len(wrong)), wrong, groups=groups)


def test_a_guarantee_is_contradicted_where_the_exact_test_rejects_it() -> None:
    promise = Promise(limit=0.1)
    least = next(each for each in range(101) if binom.sf(each - 1, 100, 0.1) < 0.05)
    rate = brentq(lambda x: binom.sf(least - 1, 100, x) - 0.8, 0, 1)
    for errors in range(8, 24):
        items = decided([row < errors for row in range(100)])
        note, facts = _verdict(promise, items, by_group=False, level=0.05)
        by_chance = binom.sf(errors - 1, 100, 0.1)
        assert facts["broken"] == ("at 95 % confidence" in note) == (by_chance < 0.05)
        assert facts["rate"] == errors / 100
        assert facts["detectable_rate"] == pytest.approx(rate)
        assert ("may be chance" in note) == (by_chance >= 0.05 and errors > 10)
        assert ("does not contradict" in note) == (errors <= 10)
        assert f"100 items, an error of {percent(rate)} would be noticed in 8 of 10" in note
    note, _ = _verdict(promise, decided([True]), by_group=False, level=0.05)
    assert note.endswith("but this may be chance; too few to contradict it (1 item).")


def test_the_error_that_groups_notice_is_noticed_in_eight_of_ten_cases() -> None:
    random, groups = np.random.default_rng(1), np.repeat(np.arange(60), 3)
    note, _ = _verdict(Promise(limit=0.1), decided([False] * 180, groups), True, 0.05)
    stated = re.search(r"60 groups, an error of (\d+) % would be noticed in 8 of 10 cases", note)
    found = []
    for _ in range(300):
        wrong = (random.random(60) < int(present(stated)[1]) / 100)[groups]
        found.append(_verdict(Promise(limit=0.1), decided(wrong, groups), True, 0.05)[1]["broken"])
    assert 0.7 < np.mean(found) < 0.9


def test_promises_about_classes_are_checked(old: Run, tmp_path: Path) -> None:
    """The overall error is kept; what is promised about one class is not."""
    both = certified(old, max_error=0.4, called=("malignant=0.3",))
    new = new_run(tmp_path)
    fine = drift_check(both, new)
    assert fine.outdated is None
    assert " Called malignant: This does not contradict the guaranteed 30 %" in fine.lines[-1]
    truth = pl.when(pl.col("label") == "malignant").then(pl.lit("benign")).otherwise("truth")
    table = new.predictions.with_columns(truth=pl.when(pl.col("truth").is_not_null()).then(truth))
    table = table.with_columns(wrong=pl.col("truth") != pl.col("label"))
    found = drift_check(both, with_facts(new, predictions=table))
    assert "Called malignant: Above the guaranteed 30 %" in found.lines[-1]
    assert found.outdated is not None


def test_items_that_the_run_deferred_are_no_sample(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path, sharpness=0.5)
    hard = pl.col("score") + 1.0  # above every threshold
    chosen = replace(new, predictions=new.predictions.with_columns(hard))
    found = drift_check(old, chosen)
    assert "predicts 0 % of 600 new items" in found.lines[-1]
    assert "are no sample: add them to training (credalearn train … --merge)" in found.lines[-1]
    assert found.outdated is None
    few = replace(chosen, predictions=chosen.predictions.head(3))
    assert "are no sample" not in "".join(drift_check(old, few).lines)
    assert drift_check(old, new).outdated is not None


@pytest.mark.parametrize("number", [1, 2, 3, 12, 60])
@pytest.mark.parametrize("errors", [0, 63, 200])
def test_the_detectable_accuracy_is_where_the_exact_test_has_power(
    number: int, errors: int
) -> None:
    stated = _detectable(np.arange(241) < errors, number)
    worse = [each for each in range(number + 1) if each / number > errors / 241]
    tables = ([[each, number - each], [errors, 241 - errors]] for each in worse)
    found = [fisher_exact(table).pvalue <= 0.05 for table in tables]
    if not any(found):
        assert stated is None
        return
    least = worse[found.index(True)]
    assert all(found[found.index(True) :])
    rate = brentq(lambda x: binom.sf(least - 1, number, x) - 0.8, 0, 1)
    assert stated == pytest.approx(1 - rate)


def test_other_guarantees_are_checked_for_what_they_promise(old: Run, tmp_path: Path) -> None:
    new = new_run(tmp_path)
    assert len(drift_check(certified(old, capacity=0.3), new).lines) == 3  # promises no rate
    average = certified(old, max_error=0.3, method="conformal-risk-control")
    assert "the 30 % are an average over calibration sets" in drift_check(average, new).lines[-1]
    votes = certified(old, max_error=0.4, against="annotator")
    rows = present(votes.guarantee).keeps(new.predictions["score"].to_numpy())
    kept = new.predictions.filter(rows)
    mean = float(np.mean(kept["disagreement"].to_numpy()))
    assert f"predicted with a vote, {percent(mean)} are wrong." in drift_check(votes, new).lines[-2]


def test_runs_with_different_truths_are_not_compared(old: Run, tmp_path: Path) -> None:
    old, new = certified(old, max_error=0.2), new_run(tmp_path)
    gold = replace(new, facts=replace(new.facts, truth="gold"))
    lines = drift_check(old, gold).lines
    assert lines[1].startswith("Not comparable: the test items were compared with")
    assert lines[-1].endswith("its guarantee is about the class with the most votes.")


@pytest.mark.parametrize("sharpness", [4.0, 0.5])
def test_a_promise_about_groups_is_checked_by_groups(tmp_path: Path, sharpness: float) -> None:
    old = certified(grouped(fake_run(tmp_path / "old"), 4), max_error=0.3)
    new = grouped(new_run(tmp_path, sharpness=sharpness), 4)
    found = drift_check(old, new)
    assert " for a random item of a group" in found.lines[-1]
    assert (found.outdated is None) == (sharpness == 4)
    assert "95 % interval" not in found.lines[0]  # which takes items for independent
    assert found.facts["accuracy_interval"] == []
    assert re.search(r"150 groups, an error of \d+ % would be noticed", found.lines[-1])


def test_whole_groups_that_are_wrong_by_chance_are_no_drift() -> None:
    random = np.random.default_rng(0)

    def groups(error: float) -> pl.DataFrame:
        wrong = np.repeat(random.random(45) < error, 4)
        return pl.DataFrame({"group": np.repeat(np.arange(45), 4), "wrong": wrong})

    def dropped(error: float) -> int:
        found: list[dict[str, Any]] = [{} for _ in range(400)]
        for facts in found:
            _accuracy_by_group(groups(0.2), groups(error), facts)
        return sum(facts["accuracy_dropped"] for facts in found)

    # At level 5 %, 2.5 % of tests find a drop where there is none; an exact test of items 12 %.
    assert dropped(0.2) <= binom.ppf(0.999, 400, 0.025)
    assert dropped(0.6) > 380
