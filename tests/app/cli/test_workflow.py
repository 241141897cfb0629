"""The commands of the README, one after the other, as a team runs them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from credalearn.app.run import Run
from present import present
from team_files import Capture, Done, Team, in_process, make_team, succeed, train_arguments

Command = Callable[..., Done]
MOST_LINES = 8


@pytest.fixture
def run(capsys: Capture) -> Command:
    """A command that succeeds, and prints at most eight lines next to a table."""

    def checked(*arguments: object) -> Done:
        done = succeed(capsys, *arguments)
        lines = [line for line in done.out.splitlines() if not re.search(r" {2,}.* %$", line)]
        assert 0 < len(lines) <= MOST_LINES, done.out
        return done

    return checked


def new_items(team: Team, number: int = 40) -> Path:
    """Features of items that were not annotated, with a text and a patient."""
    rng = np.random.default_rng(7)
    names = [f"new-{row}" for row in range(number)]
    values = rng.normal(size=(number, 2))
    table = {"item": names, "size": values[:, 0], "weight": values[:, 1]}
    texts = {"text": [f"This is item {name}." for name in names]}
    patients = {"patient": [f"q{row // 2}" for row in range(number)]}
    pl.DataFrame(table | texts | patients).write_csv(team.folder / "new.csv")
    return team.folder / "new.csv"


def test_gold_labels_own_splits_and_other_names(tmp_path: Path, run: Command) -> None:
    team = make_team(tmp_path)
    votes = pl.read_csv(team.votes).rename({"item": "case", "annotator": "who", "label": "said"})
    votes.write_csv(team.votes)
    pl.read_csv(team.features).rename({"item": "case"}).write_csv(team.features)
    run(
        *train_arguments(team, "--gold", "truth", "--split", "part"),
        *("--item", "case", "--annotator", "who", "--label", "said"),
    )
    trained = Run.load(team.run)
    assert trained.truth == "gold"
    assert trained.facts.splits == {"train": 36, "calibration": 12, "test": 12}
    # The run remembers the column that names the items.
    run("predict", team.run, team.features, "-o", tmp_path / "d.csv", "--threshold", "0.5")


def test_a_crowd_benchmark_has_votes_to_train_on_and_gold_to_test_on(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path, num_items=300)
    table, votes = pl.read_csv(team.features), pl.read_csv(team.votes)
    votes.filter(pl.col("item") < "x150").write_csv(team.votes)
    gold = tmp_path / "gold.csv"
    table.select("item", gold="truth").filter(pl.col("item") >= "x150").write_csv(gold)
    arguments = train_arguments(team)
    done = succeed(capsys, *arguments, "--drop", "truth", "--gold", gold)
    assert "150 items with a gold label and no votes: for calibration and test only" in done.out
    assert "training items, out of fold, by majority" in done.out
    assert "items: 150 train, 75 calibration, 75 test" in done.out
    assert Run.load(team.run).facts.annotations.annotators == 5
    done = in_process(capsys, "certify", team.run, "--max-error", "0.2")
    assert "wrong compared with the gold labels" in done.out, done.err
    succeed(capsys, "report", team.run)
    page = (team.run / "report.html").read_text()
    assert "of all labels, compared with the gold labels" in page
    assert "compared with the class with the most votes" in page  # the rivals, out of fold


def test_wide_labels_are_reported_where_sets_are_learned(tmp_path: Path, run: Command) -> None:
    wide = ("--labels", "clopper-pearson")
    done = run(*train_arguments(make_team(tmp_path), *wide))
    assert "The labels are wide" in done.out
    assert "pass --labels relax-ties, or collect more votes" in done.out
    trained = Run.load(tmp_path / "run")
    assert "pass labels='relax-ties', or collect" in trained.facts.advice[0]
    done = run(*train_arguments(make_team(tmp_path), *wide, "--method", "softmax"))
    assert "The labels are wide" not in done.out


def test_every_command_prints_facts_as_json(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    new, trained = new_items(team), team.run

    def facts(*arguments: object) -> dict[str, Any]:
        done = succeed(capsys, *arguments, "--json")
        found: dict[str, Any] = json.loads(done.out)
        return found

    found = facts("inspect", team.votes)
    assert found["items"] == 60
    assert all(isinstance(share, float) for *_, share in found["confused"])
    demo = facts("demo", "-o", tmp_path / "demo")
    assert Run.load(demo["run"]).guarantee is not None
    found = facts(*train_arguments(team))
    assert found["run"] == str(trained)
    assert found["test_scores"] == {}  # without official test items
    assert Run.load(trained).test_scores()["items"] == 12
    assert found["splits"]["train"] == Run.load(trained).facts.splits["train"]
    found = facts("certify", trained, "--max-error", "0.9", "--set-coverage", "0.5")
    guarantee = present(Run.load(trained).guarantee)
    assert found["guarantee"]["sentence"] == guarantee.sentence()
    assert found["sets"]["coverage"] == 0.5
    decisions = facts("predict", trained, new, "-o", tmp_path / "decisions.csv")
    deferred = facts("defer", trained, new, "--to", "csv", "-o", tmp_path / "tasks.csv")
    assert decisions["items"] == deferred["items"] == 40
    assert decisions["deferred"] == deferred["deferred"]
    assert decisions["made_by"] == deferred["made_by"]
    assert decisions["made_by"] == {
        "run": str(trained),
        "created": Run.load(trained).facts.created,
        "predictions_sha256": Run.load(trained).facts.sha256["predictions"],
        "threshold": None,
        "guarantee": guarantee.sentence(),
        "kept": guarantee.coverage,
        "set_coverage": 0.5,
    }
    assert facts("report", trained)["path"] == str(trained / "report.html")


def test_quiet_prints_nothing(tmp_path: Path, capsys: Capture) -> None:
    done = in_process(capsys, "inspect", make_team(tmp_path).votes, "--quiet")
    assert (done.code, done.out) == (0, "")


def test_the_table_of_deferred_items_needs_no_truth_and_no_split(
    tmp_path: Path, capsys: Capture
) -> None:
    """What was given to defer has a text and neither gold labels nor splits."""
    team = make_team(tmp_path)
    votes, table = pl.read_csv(team.votes), pl.read_csv(team.features)
    table = table.with_columns(
        patient=pl.when(pl.col("item") == "x059").then(pl.lit("p3")).otherwise("item")
    )
    is_first = pl.col("item") < "x050"
    later, more = tmp_path / "later.csv", tmp_path / "more.csv"
    votes.filter(~is_first).write_csv(later)
    votes.filter(is_first).write_csv(team.votes)
    new = table.filter(~is_first).drop("truth", "part").with_columns(text=pl.lit("Hello"))
    new.write_csv(more)
    first = table.filter(is_first)
    in_test = pl.when(pl.col("item") == "x004").then(pl.lit("p3")).otherwise("patient")
    first.with_columns(patient=in_test).write_csv(team.features)
    named = ("--group", "patient", "--gold", "truth", "--split", "part")
    given = train_arguments(team, "--features", more, "--drop", "text", *named)
    done = succeed(capsys, *given, "--merge", later)
    run = Run.load(team.run)
    split = dict(run.items.select("item", "split").iter_rows())
    assert [split[name] for name in first["item"]] == first["part"].to_list()
    assert [split.get(name) for name in new["item"]] == ["train"] * 9 + [None]
    assert run.facts.later_items == 9
    assert "For training only: 9 items of later rounds" in done.out
    left_out = "of later exports whose patient is in calibration or test"
    assert run.facts.inputs.left_out == {left_out: 1}
    assert f"Left out: 1 item {left_out}" in done.out
    assert run.facts.inputs.later == (str(more),)
    truths = run.items.filter(pl.col("item").is_in(new["item"].to_list()))["truth"]
    assert truths.null_count() == 9
