"""``certify`` on a run: the guarantee of its calibration items, checked on its test items."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from credalearn.app.run import Run
from credalearn.app.steps.certify import Certificate, CertifyOptions, certify, one_of_each
from credalearn.guarantees import CertifyMethod, Guarantee, by_capacity
from credalearn.guarantees._sample import as_sample
from credalearn.guarantees._search import selective_guaranteed_risk
from fake_run import fake_run, with_facts
from team_files import full_disk, snapshot


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 300 calibration and 300 test items, a few of them tied; do not change it."""
    return fake_run(tmp_path_factory.mktemp("runs") / "run")


def certified(run: Run, **options: Any) -> tuple[Guarantee, Certificate]:
    found = certify(run, CertifyOptions(**options))
    assert found.guarantee is not None
    return found.guarantee, found


def grouped(run: Run, size: int) -> Run:
    """The same run, as if ``size`` items in a row were of one patient."""
    groups = pl.Series("group", [f"p{row // size}" for row in range(len(run.items))])
    splits = replace(run.facts.splits, group="patient")
    return with_facts(run, items=run.items.with_columns(groups), splits=splits)


def rows_of(run: Run, split: str) -> list[dict[str, Any]]:
    return [row for row in run.predictions.iter_rows(named=True) if row["split"] == split]


@pytest.mark.parametrize("method", get_args(CertifyMethod))
def test_certifies_the_calibration_items(run: Run, method: Any) -> None:
    options = {"max_error": 0.1, "confidence": 0.9, "method": method}
    found, certificate = certified(run, **options)
    rows = rows_of(run, "calibration")
    known = [row for row in rows if row["wrong"] is not None]
    wanted = cl.certify([row["score"] for row in known], [row["wrong"] for row in known], **options)
    kept = [row for row in rows if row["score"] <= wanted.threshold]
    ties = sum(row["wrong"] is None for row in kept)
    assert len(known) < len(rows)
    assert found == replace(wanted, left_out=len(rows) - len(known), left_out_kept=ties)
    assert found.coverage == len(kept) / len(rows)
    assert Run.load(run.path).guarantee == found == certificate.run.guarantee


def test_checks_on_the_test_items(run: Run) -> None:
    found, certificate = certified(run, max_error=0.1)
    rows = rows_of(run, "test")
    kept = [row for row in rows if row["score"] <= found.threshold]
    judged = [row for row in kept if row["wrong"] is not None]
    check = certificate.check
    assert check is not None
    assert (check.items, check.kept, check.judged_kept) == (len(rows), len(kept), len(judged))
    assert check.errors == sum(row["wrong"] for row in judged)


def test_targets_ten_percent_by_default(run: Run) -> None:
    assert certified(run)[0] == certified(run, max_error=0.1)[0]
    assert CertifyOptions(capacity=0.2).target is None
    assert CertifyOptions(set_coverage=0.9).target is None


def test_against_an_annotator_errors_are_shares(run: Run) -> None:
    found, certificate = certified(run, max_error=0.3, against="annotator")
    table = run.predictions.filter(split="calibration")
    score, shares = table["score"].to_numpy(), table["disagreement"].to_numpy()
    assert found == cl.certify(score, shares, max_error=0.3)
    assert found.left_out == 0  # tied items have annotators too
    assert "compared with a random annotator" in " ".join(certificate.lines)


@pytest.mark.parametrize("kind", ["bounds", "probabilities"])
def test_compares_with_what_people_stated(tmp_path: Path, kind: Any) -> None:
    run = fake_run(tmp_path / "run")
    annotations = replace(run.facts.annotations, kind=kind, votes=None, agreement=None)
    found, certificate = certified(with_facts(run, annotations=annotations), max_error=0.2)
    assert found.against == kind
    assert "votes" not in " ".join(certificate.lines)
    gold, _ = certified(with_facts(run, truth="gold"), max_error=0.2)
    assert gold.against == "gold"


def test_a_capacity_is_a_share_of_all_items(run: Run) -> None:
    """Reviewers can take a quarter of all items, including those whose votes are tied."""
    found, _ = certified(run, capacity=0.25)
    every = run.predictions.filter(split="calibration")
    assert (every["score"] > found.threshold).sum() == len(every) // 4
    known = every.filter(pl.col("wrong").is_not_null())
    score, wrong = known["score"].to_numpy(), known["wrong"].to_numpy()
    kept = score <= found.threshold
    assert (found.kept, found.errors) == (kept.sum(), wrong[kept].sum())
    assert found.interval == by_capacity(score, wrong, defer=int((~kept).sum())).interval
    nothing, certificate = certified(run, capacity=1.0)
    assert nothing.threshold is None
    assert "It predicts none of 300 test items." in certificate.lines


def test_a_target_out_of_reach_says_what_it_takes_and_changes_nothing(tmp_path: Path) -> None:
    run = certified(fake_run(tmp_path / "run", num_items=200), capacity=0.2)[1].run
    before = snapshot(run.path)
    known = run.predictions.filter(pl.col("wrong").is_not_null() & (pl.col("split") != "test"))
    short = cl.certify(known["score"], known["wrong"], max_error=0.01).shortfall
    with pytest.raises(cl.CredalError, match="1 % with 95 % confidence cannot be") as raised:
        certify(run, CertifyOptions(max_error=0.01, set_coverage=0.8))
    assert f"nothing was changed. {short} To fix: " in str(raised.value)
    assert str(raised.value).endswith("annotate more items and recalibrate, or raise max_error.")
    assert snapshot(run.path) == before
    with pytest.raises(cl.CredalError, match=r"annotate items of more groups \(patient\)"):
        certify(grouped(run, 2), CertifyOptions(max_error=0.01))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0.1, "capacity": 0.1}, "max_error and capacity exclude each other"),
        ({"capacity": 25}, "capacity must be 0 or more and at most 1; got 25. To fix: write 25 %"),
        ({"max_error": 10}, "max_error must be above 0 and below 1; got 10. To fix: write 10 %"),
        ({"max_error": float("nan")}, "max_error must be a number"),
        ({"scale": "width"}, "scale must be one of"),
        ({"set_coverage": 0.9, "one_per_group": True}, "one_per_group needs max_error"),
    ],
)
def test_rejects_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        CertifyOptions(**options)


def test_rejects_a_run_without_a_truth(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    nothing = {"wrong": pl.lit(None, pl.Boolean), "disagreement": pl.lit(float("nan"))}
    run = with_facts(run, predictions=run.predictions.with_columns(**nothing))
    with pytest.raises(cl.CredalError, match=r"votes are tied.*--gold COLUMN.* --against annot"):
        certify(run, CertifyOptions())
    with pytest.raises(cl.CredalError, match=r"they have no votes.* --against truth"):
        certify(run, CertifyOptions(against="annotator"))


def test_a_full_disk_leaves_the_older_guarantee(tmp_path: Path) -> None:
    run = certified(fake_run(tmp_path / "run", num_items=400), max_error=0.2)[1].run
    before = snapshot(run.path)
    with full_disk(100), pytest.raises(cl.CredalError, match=r"guarantee.json cannot be written"):
        certify(run, CertifyOptions(capacity=0.5))
    assert snapshot(run.path) == before


def test_is_a_verb_of_the_run(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    found = run.certify(max_error=0.2, set_coverage=0.8)
    assert run.guarantee == found.guarantee is not None
    assert found.sets is not None
    assert run.sets == found.sets.inflation
    again = Run.load(run.path)
    assert (again.guarantee, again.sets) == (run.guarantee, run.sets)


# Groups


def test_calibrates_on_one_item_per_group(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run"), 3)
    found, certificate = certified(run, max_error=0.2, one_per_group=True)
    assert found.num_items + found.left_out == 100
    assert (found.num_groups, found.one_per_group) == (found.num_items, True)
    assert "of 100 test items (one per group); " in " ".join(certificate.lines)
    assert "--one-per-group" not in " ".join(certificate.lines)
    assert certified(run, max_error=0.2, one_per_group=True)[0] == found
    alone = fake_run(tmp_path / "alone", num_items=60)
    with pytest.raises(cl.CredalError, match=r"items of .*alone have no groups.*--group COLUMN"):
        certify(alone, CertifyOptions(max_error=0.2, one_per_group=True))


def test_draws_from_a_group_an_item_with_a_truth(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run"), 3)
    table = run.predictions.with_row_index()
    one_left = pl.when(pl.col("index") % 3 == 0).then(pl.col("wrong"))
    run = with_facts(run, predictions=table.with_columns(wrong=one_left).drop("index"))
    found, _ = certified(run, max_error=0.3, one_per_group=True)
    assert found.num_items > 0.9 * 100
    assert found.left_out < 0.1 * 100


def test_one_item_per_group_keeps_the_promise_that_whole_groups_break(tmp_path: Path) -> None:
    """Whole groups are wrong together, 16 % of them; an error of 15 % is certified falsely."""
    run = grouped(fake_run(tmp_path / "run", num_items=3200), 10)
    table = run.held_out("calibration")
    noise = np.random.default_rng(0)
    broken = {"all": 0, "one": 0}
    for _ in range(400):
        wrong = np.repeat(noise.random(80) < 0.16, 10)
        drawn = table.with_columns(score=noise.random(800), wrong=wrong)
        for name, rows in (("all", drawn), ("one", one_of_each(drawn, "majority"))):
            sample = as_sample(rows["score"].to_numpy(), rows["wrong"].to_numpy())
            broken[name] += selective_guaranteed_risk(sample, 0.15, 0.05) is not None
    assert broken["all"] > 0.05 * 400
    assert broken["one"] <= 0.05 * 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 0.25, "method": "learn-then-test"}, "a capacity certifies no error"),
        ({"distance": "total-variation"}, "pass set_coverage=0.90 too"),
        ({"scale": "none", "max_error": 0.1}, "pass set_coverage=0.90 too"),
    ],
)
def test_rejects_options_without_effect(options: Any, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        CertifyOptions(**options)
