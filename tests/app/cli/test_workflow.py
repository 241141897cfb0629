"""The commands of the README, one after the other, as a team runs them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from annotation_exports import studio_task
from credalearn.app.run import Run
from team_files import CLASSES, Done, Team, in_process, make_team, succeed, train_arguments

Capture = pytest.CaptureFixture[str]
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


def annotate(tasks: Path, output: Path) -> Path:
    """What Label Studio exports after two people annotated the tasks."""
    exported = [
        studio_task(number, task["data"], *({"label": CLASSES[(number + k) % 3]} for k in (1, 2)))
        for number, task in enumerate(json.loads(tasks.read_text()))
    ]
    output.write_text(json.dumps(exported))
    return output


def test_from_an_export_to_decisions(tmp_path: Path, run: Command) -> None:
    team = make_team(tmp_path, num_items=300)
    data, folder = new_items(team), team.folder
    assert "300 items, 5 annotators, 1,500 votes" in run("inspect", team.votes).out
    run("inspect", team.votes, "-o", folder / "consensus.csv")
    assert pl.read_csv(folder / "consensus.csv").columns == ["item", "label", "votes", "share"]

    trained = run(*train_arguments(team, "--group", "patient"))
    assert f"Next: credalearn certify {team.run}" in trained.out
    assert Run.load(team.run).facts.splits == {"train": 180, "calibration": 60, "test": 60}

    certified = run("certify", team.run, "--max-error", "0.4")
    guarantee = Run.load(team.run).guarantee
    assert guarantee is not None
    assert guarantee.sentence() in certified.out
    run("certify", team.run, "--set-coverage", "0.8")

    run("predict", team.run, data, "-o", folder / "decisions.csv")
    decisions = pl.read_csv(folder / "decisions.csv")
    assert decisions.columns[-3:] == ["decision", "set_lower", "set_upper"]
    least_certain = decisions.sort("score", descending=True, maintain_order=True)["item"][:10]
    tasks = folder / "tasks.json"
    run("defer", team.run, data, "-o", tasks, "--threshold", "0", "--limit", "10")
    written = [task["data"]["item"] for task in json.loads(tasks.read_text())]
    assert written == least_certain.to_list()
    assert "This is item new-" in tasks.read_text()
    later = annotate(tasks, folder / "round2.json")
    merged = run(
        *("train", team.votes, "--merge", later, "--features", team.features, "--features", data),
        *("--group", "patient", "--skip-missing", "--drop", "truth", "--drop", "part"),
        *("--drop", "text", "-o", folder / "run2"),
    )
    assert "For training only: 10 items of later rounds" in merged.out
    second = Run.load(folder / "run2")
    names = set(second.items.filter(split="train")["item"])
    assert {name for name in names if name.startswith("new-")} == set(written)

    run("report", team.run, folder / "run2")
    assert (team.run / "report.html").stat().st_size > 10_000
    spring = make_team(folder / "spring", num_items=100, random_state=5)
    again = folder / "run-spring"
    done = run(
        *("recalibrate", team.run, spring.votes, "--features", spring.features),
        *("--group", "patient", "-o", again, "--skip-missing"),
    )
    assert f"Next: credalearn certify {again} --max-error 0.4 --set-coverage 0.8" in done.out
    run("certify", again, "--capacity", "0.5")
    run("predict", again, data, "-o", folder / "spring.parquet")


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
    assert found["splits"]["train"] == Run.load(trained).facts.splits["train"]
    found = facts("certify", trained, "--max-error", "0.9", "--set-coverage", "0.5")
    guarantee = Run.load(trained).guarantee
    assert guarantee is not None
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
        "set_coverage": 0.5,
    }
    assert facts("report", trained)["path"] == str(trained / "report.html")


def test_quiet_prints_nothing(tmp_path: Path, capsys: Capture) -> None:
    done = in_process(capsys, "inspect", make_team(tmp_path).votes, "--quiet")
    assert (done.code, done.out) == (0, "")
