"""Files as people have them, through the command in a process of its own."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from annotation_exports import EXPORTS, Write, to_json
from credalearn.app.run import Run
from team_files import in_new_process, make_team, train_arguments


@pytest.mark.parametrize("name", ["nested", "argilla-nested"])
def test_inspects_nested_exports(write: Write, name: str) -> None:
    done = in_new_process("inspect", write(EXPORTS[name].write(), "export.json"))
    assert done.code == 0, done.err
    assert "8 items, " in done.out
    assert "3 classes: cat, dog, owl" in done.out


def test_refuses_codes_for_no_answer_until_they_are_named(write: Write) -> None:
    rows = np.random.default_rng(0).choice([-1, 0, 1, 2], size=(50, 3), p=[0.4, 0.2, 0.2, 0.2])
    lines = [f"t{number},{','.join(map(str, row))}" for number, row in enumerate(rows)]
    path = write("id,ann,bo,cy\n" + "\n".join(lines) + "\n")
    done = in_new_process("inspect", path)
    assert done.code == 2
    assert "pass --missing=-1" in done.err
    done = in_new_process("inspect", path, "--missing", "-1")
    assert f"{(rows >= 0).sum()} votes, 3 classes: 0, 1, 2" in done.out


def lewidi(start: str, number: int) -> bytes:
    """A split as LeWiDi publishes it: the keys begin at 1 in each file."""
    rng = np.random.default_rng(number)
    return to_json(
        {
            str(key): {
                "text": {"prev_agent": "Hello", "user": f"{start} {key}"},
                "annotators": "Ann1,Ann2,Ann3",
                "annotations": ",".join(rng.choice(["0", "1"], 3)),
                "number of annotations": 3,
            }
            for key in range(1, number + 1)
        }
    )


def test_repeated_ids_of_different_splits_are_not_merged(write: Write) -> None:
    first, later = write(lewidi("train", 40), "train.json"), write(lewidi("dev", 20), "dev.json")
    for more in ((), ("--merge-conflicts", "newest")):
        done = in_new_process("inspect", first, "--merge", later, *more)
        assert done.code == 2
        assert f"20 items of {later} have the name of a different item of {first}" in done.err
        assert "--merge-conflicts" not in done.err
    again = json.loads(first.read_text())
    votes = {key: record | {"annotators": "Dee,Eve,Fay"} for key, record in again.items()}
    done = in_new_process("inspect", first, "--merge", write(to_json(votes), "again.json"))
    assert "40 items, 6 annotators, 240 votes" in done.out, done.err


def test_a_crowd_benchmark_has_votes_to_train_on_and_gold_to_test_on(tmp_path: Path) -> None:
    team = make_team(tmp_path, num_items=300)
    table, votes = pl.read_csv(team.features), pl.read_csv(team.votes)
    votes.filter(pl.col("item") < "x150").write_csv(team.votes)
    gold = tmp_path / "gold.csv"
    table.select("item", gold="truth").filter(pl.col("item") >= "x150").write_csv(gold)
    arguments = train_arguments(team)
    done = in_new_process(*arguments, "--drop", "truth", "--gold", gold)
    assert done.code == 0, done.err
    assert "150 items with a gold label and no votes: for calibration and test only" in done.out
    assert "training items, out of fold, by majority" in done.out
    assert "items: 150 train, 75 calibration, 75 test" in done.out
    assert Run.load(team.run).facts.annotations.annotators == 5
    done = in_new_process("certify", team.run, "--max-error", "0.2")
    assert "wrong compared with the gold labels" in done.out, done.err
    assert in_new_process("report", team.run).code == 0
    page = (team.run / "report.html").read_text()
    assert "of all labels, compared with the gold labels" in page
    assert "compared with the class with the most votes" in page  # the rivals, out of fold


def test_a_class_without_training_votes_can_be_left_out(tmp_path: Path) -> None:
    team = make_team(tmp_path, num_items=100)
    table, votes = pl.read_csv(team.features), pl.read_csv(team.votes)
    tested = table.filter(part="test")["item"][0]
    rare = pl.when(item=tested).then(pl.lit("eel")).otherwise("label").alias("label")
    votes.with_columns(rare).write_csv(team.votes)
    arguments = train_arguments(team, "--split", "part")
    done = in_new_process(*arguments)
    assert "has a vote for 'eel'. To fix: leave out its votes with --missing=eel" in done.err
    done = in_new_process(*arguments, "--missing", "eel", "--skip-missing")
    assert done.code == 0, done.err
    assert "3 classes: 'cat', 'dog', 'owl'" in done.out
