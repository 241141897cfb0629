"""The commands from an annotation export to certified decisions, as a team runs them."""

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from credalearn.annotations import read_annotations
from credalearn.annotations.readers import READERS
from credalearn.bench.data.lidc import CLASSES, load_nodules
from credalearn.cli import app
from credalearn.cli.options import Form, Method
from credalearn.errors import CredalError
from credalearn.methods import METHODS
from credalearn.workflow.card import card
from credalearn.workflow.folder import RunFolder
from fake_run import fake_run
from team_files import (
    Team,
    command,
    full_disk,
    in_process,
    make_images,
    make_team,
    snapshot,
    train_arguments,
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A team with a finished run of five hundred items; do not change it."""
    team = make_team(tmp_path_factory.mktemp("trained"), num_items=500)
    app([str(each) for each in train_arguments(team, "--epochs", "20")], standalone_mode=False)
    return team


# The whole way


def write_lidc(folder: Path) -> tuple[Path, Path]:
    """The radiologists' ratings as a long table of votes, and the features beside the patients."""
    nodules = load_nodules()
    names = [f"nodule-{number:04d}" for number in range(len(nodules.votes))]
    rows = []
    for name, counts in zip(names, nodules.votes, strict=True):
        said = [label for label, n in zip(CLASSES, counts, strict=True) for _ in range(n)]
        rows += [(name, f"reader-{number}", label) for number, label in enumerate(said)]
    votes, features = folder / "votes.csv", folder / "features.csv"
    pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row").write_csv(votes)
    columns = {n: nodules.features[:, k] for k, n in enumerate(nodules.feature_names)}
    pl.DataFrame({"item": names, "patient": nodules.patients, **columns}).write_csv(features)
    return votes, features


def test_lidc_in_one_sitting(tmp_path: Path, capsys: Capture) -> None:
    """Training and predicting in processes of their own, as on two days."""
    votes, features = write_lidc(tmp_path)
    run = tmp_path / "run"
    seen = in_process(capsys, "inspect", votes)
    assert seen.code == 0, seen.err
    for said in (
        "item 'task', annotator 'worker', label 'label'",
        "1,395 items, 4 annotators, 5,095 votes; classes benign, indeterminate, malignant",
        "20.1 % are unanimous and 16.1 % tie; Krippendorff's alpha 0.198",
        "benign and indeterminate (43",
    ):
        assert said in seen.out
    assert not seen.err

    done = command(
        *("train", votes, "--features", features, "--group", "patient", "-o", run),
        *("--epochs", "15"),
    )
    assert done.code == 0, done.err
    assert "837 train, 279 calibration, 279 test" in done.out
    assert "epoch 15/15" in done.err
    items = RunFolder(run).items
    splits = items.group_by("group").agg(pl.col("split").n_unique())
    assert splits["split"].max() == 1
    assert len(splits) == 695

    done = in_process(capsys, "certify", run, "--max-error", "0.25")
    assert done.code == 0, done.err
    assert "With 95 % confidence, at most 25 % of the items it predicts are wrong" in done.out
    assert "calibration items, their votes tie" in done.out
    rule = json.loads((run / "rule.json").read_text())

    decisions = tmp_path / "decisions.csv"
    done = command("predict", run, features, "-o", decisions)
    assert done.code == 0, done.err
    with decisions.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1395
    for row in rows:
        keeps = float(row["score"]) <= rule["threshold"]
        assert row["decision"] == ("predict" if keeps else "defer")
        assert float(row["score"]) == pytest.approx(1 - float(row["lower"]), abs=1e-6)
        assert float(row["lower"]) <= float(row["probability"]) <= float(row["upper"])
        assert row["label"] in CLASSES
    table = RunFolder(run).predictions
    by_item = {row["item"]: row for row in rows}
    for item, label, score in table.select("item", "label", "score").rows():
        assert by_item[item]["label"] == label
        assert float(by_item[item]["score"]) == pytest.approx(score, abs=1e-6)

    tasks = tmp_path / "tasks.json"
    done = in_process(capsys, "defer", run, decisions, "-o", tasks)
    assert done.code == 0, done.err
    deferred = [row for row in rows if row["decision"] == "defer"]
    assert len(json.loads(tasks.read_text())) == len(deferred)

    done = in_process(capsys, "export", run, "--onnx", tmp_path / "model.onnx")
    assert done.code == 0, done.err
    assert (tmp_path / "model.onnx").stat().st_size > 1_000
    assert len(done.out.splitlines()) == 3

    done = in_process(capsys, "report", run)
    assert done.code == 0, done.err
    page = (run / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert len(page) < 3_000_000


def test_images_from_training_to_prediction(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=130)
    names = [f"x{number:03d}" for number in range(130)]
    images = make_images(tmp_path / "images", names)
    (images / "x007.png").write_bytes(b"\x89PNG, or not")
    run = ["train", team.votes, "--images", images, "-o", team.run]
    done = in_process(capsys, *run, "--image-size", "8", "--epochs", "1")
    assert done.code == 0, done.err
    assert f"cannot be read: x007, {images / 'x007.png'}" in done.out
    assert "left out: 1 items with an unreadable image" in done.out
    done = in_process(capsys, "certify", team.run, "--capacity", "0.5")
    assert done.code == 0, done.err
    done = in_process(capsys, "predict", team.run, images, "-o", tmp_path / "d.jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == [name for name in names if name != "x007"]
    done = in_process(capsys, "report", team.run)
    assert done.code == 0, done.err


def test_embeddings_train_and_predict(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    table = pl.read_csv(team.features)
    values = table.select("size", "weight").to_numpy().astype(np.float32)
    np.savez(tmp_path / "e.npz", embeddings=values, items=table["item"].to_list())
    given = ["train", team.votes, "--features", tmp_path / "e.npz", "-o", team.run]
    done = in_process(capsys, *given, "--epochs", "2", "--labels", "idm", "--method", "softmax")
    assert done.code == 0, done.err
    done = in_process(
        capsys,
        "predict",
        team.run,
        tmp_path / "e.npz",
        "-o",
        tmp_path / "d.parquet",
        "--no-decision",
    )
    assert done.code == 0, done.err
    assert len(pl.read_parquet(tmp_path / "d.parquet")) == 60


def test_gold_labels_own_splits_and_columns_of_other_names(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    team.change("votes.csv", "item,annotator,label", "who,what,which")
    team.change("features.csv", "item,", "which,")
    text = [line.split(",") for line in team.votes.read_text().splitlines()[1:]]
    lines = ["who,what,which", *(f"{a},{b},{c}" for c, a, b in text)]
    team.votes.write_text("\n".join(lines) + "\n")
    named = ("--item", "which", "--annotator", "who", "--label", "what")
    done = in_process(capsys, "inspect", team.votes, *named)
    assert "60 items, 5 annotators, 300 votes" in done.out
    more = ("--gold", "truth", "--split", "part", *named)
    done = in_process(capsys, *train_arguments(team, *more))
    assert done.code == 0, done.err
    table = RunFolder(team.run).predictions
    features = pl.read_csv(team.features)
    wanted = features.filter(pl.col("part") != "train")
    assert table["item"].to_list() == wanted["which"].to_list()
    assert table["truth"].to_list() == wanted["truth"].to_list()
    done = in_process(capsys, "certify", team.run, "--capacity", "0.2")
    assert "wrong against the gold labels" in done.out


def test_row_numbers_by_pandas_are_no_feature(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    pl.read_csv(team.features).with_row_index("").write_csv(team.features)
    done = in_process(capsys, *train_arguments(team))
    assert done.code == 0, done.err
    assert RunFolder(team.run).facts["inputs"]["features"] == ["size", "weight"]
    assert f"left out: the column without a name of {team.features}, as pandas" in done.out


def test_a_second_round_is_merged(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    later = tmp_path / "later.csv"
    later.write_text("item,annotator,label\nx000,finn,cat\nx001,finn,dog\n")
    seen = in_process(capsys, "inspect", team.votes, "--merge", later)
    assert "60 items, 6 annotators, 302 votes" in seen.out
    done = in_process(capsys, *train_arguments(team, "--merge", later))
    assert done.code == 0, done.err
    assert done.out.startswith(seen.out)
    for path in (team.votes, later):
        again = ("predict", team.run, team.features, "--no-decision", "-o", path)
        assert f"{path} is what {team.run} was trained on" in in_process(capsys, *again).err


@pytest.mark.parametrize("grouped", [False, True])
def test_items_of_later_rounds_are_only_trained_on(
    tmp_path: Path, capsys: Capture, grouped: bool
) -> None:
    """Two rounds: what the first calibrates and tests on, the second does too."""
    team = make_team(tmp_path, num_items=90)
    votes = pl.read_csv(team.votes)
    is_first = pl.col("item") < "x072"
    later = tmp_path / "later.csv"
    votes.filter(~is_first | (pl.col("item") == "x003")).write_csv(later)
    votes.filter(is_first).write_csv(team.votes)
    # x070 to x074 are one patient, whom the seed puts into test: three of the new items.
    more, lost = (["--group", "patient", "--seed", "4"], 3) if grouped else ([], 0)
    first, second = tmp_path / "first", tmp_path / "second"
    done = in_process(capsys, *train_arguments(team, *more, "--skip-missing", "-o", first))
    assert done.code == 0, done.err
    assert "later exports" not in done.out
    done = in_process(capsys, *train_arguments(team, *more, "--merge", later, "-o", second))
    assert done.code == 0, done.err
    before, after = RunFolder(first), RunFolder(second)
    merged = after.items.select("item", "split", "group")
    assert before.items.select("item", "split", "group").equals(merged[:72])
    new = merged[72:]
    assert set(new["split"]) == {"train"}
    held_out = set(merged.filter(pl.col("split") != "train")["group"].drop_nulls())
    assert len(new) == 18 - lost
    assert not held_out & set(new["group"])
    told = f"{len(new)} items of later exports are only trained on: who defers chooses hard ones"
    assert told in done.out
    assert (f"left out: {lost} items of later exports whose patient" in done.out) == (lost > 0)
    assert before.facts["later_items"] == 0
    assert after.facts["later_items"] == len(new)
    assert f"| items of later exports, only trained on | {len(new)} |" in card(after)
    own = in_process(
        capsys, *train_arguments(team, "--split", "part", "--merge", later, "-o", second)
    )
    assert own.code == 0, own.err
    assert "later exports" not in own.out
    assert RunFolder(second).facts["splits"]["test"] == 18


def test_the_features_of_deferred_items_stand_in_a_file_of_their_own(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path)
    votes, table = pl.read_csv(team.votes), pl.read_csv(team.features)
    is_first = pl.col("item") < "x050"
    later, more = tmp_path / "later.csv", tmp_path / "more.csv"
    votes.filter(~is_first).write_csv(later)
    votes.filter(is_first).write_csv(team.votes)
    table.filter(~is_first).write_csv(more)
    table.filter(is_first).write_csv(team.features)
    given = train_arguments(team, "--merge", later)
    done = in_process(capsys, *given)
    assert done.code == 2
    said = f"10 of 60 items have no features in {team.features}: 'x050', 'x051', 'x052' and 7 more."
    fix = "To fix: add them from the table that was given to defer, with a second --features, or"
    assert f"{said} {fix}" in done.err
    done = in_process(capsys, *given, "--features", more)
    assert done.code == 0, done.err
    run = RunFolder(team.run)
    assert run.items["item"].to_list() == table["item"].to_list()
    assert run.facts["inputs"]["later"] == [str(more)]
    again = ("predict", team.run, team.features, "--no-decision", "-o", more)
    assert f"{more} is what {team.run} was trained on" in in_process(capsys, *again).err


def test_features_are_named_and_leaks_asked_about(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    done = in_process(capsys, *train_arguments(team))
    assert "features: size, weight\n" in done.out
    assert "a leak?" not in done.out
    table = pl.read_csv(team.features)
    named = {name: pl.lit(1.0) for name in ("Label", "Patient", "OWL", "a", "b", "c", "d")}
    table.with_columns(**named).write_csv(team.features)
    done = in_process(capsys, *train_arguments(team, "--group", "patient"))
    assert "features: size, weight, Label, Patient, OWL, a and 3 more\n" in done.out
    assert (
        "a leak? called like votes, annotators or classes: 'Label', 'Patient', 'OWL'." in done.out
    )


def test_what_a_merge_would_give_can_be_inspected(tmp_path: Path, capsys: Capture) -> None:
    first, later = tmp_path / "first.csv", tmp_path / "later.csv"
    first.write_text("item,annotator,label\nx,ann,cat\ny,ann,dog\n")
    later.write_text("thing,annotator,label\na/x.png,bo,cat\na/y.png,ann,cat\n")
    images = make_images(tmp_path / "images" / "a", ["x", "y"]).parent
    given = ("inspect", first, "--merge", later, "--merge-item", "thing")
    assert "4 items, 2 annotators, 4 votes" in in_process(capsys, *given).out
    done = in_process(capsys, *given, "--images", images)
    assert done.code == 2
    assert "item 'y' has the vote 'dog' by 'ann'" in done.err
    done = in_process(capsys, *given, "--images", images, "--merge-conflicts", "newest")
    assert "2 items, 2 annotators, 3 votes" in done.out


@pytest.mark.parametrize("command", ["inspect", "labels", "train"])
def test_the_reader_is_given_what_was_asked_for(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    names = ("item", "annotator", "label", "weight", "question", "format", "encoding", "delimiter")
    asked: dict[str, object] = {name: f"the {name}" for name in names}
    asked |= {"classes": ["cat", "dog"], "unsure": ["perhaps"], "repeats": "last"}
    seen: list[dict[str, object]] = []

    def read(path: Path, **given: object) -> None:
        seen.append(given)
        raise CredalError(f"{path} is not read here.")

    for module in ("credalearn.annotations", "credalearn.workflow.rounds"):
        monkeypatch.setattr(f"{module}.read_annotations", read)
    team = make_team(tmp_path)
    given = train_arguments(team) if command == "train" else [command, team.votes]
    for name, value in asked.items():
        for each in value if isinstance(value, list) else [value]:
            given += [f"--{name}", each]
    assert "is not read here" in in_process(capsys, *given).err
    assert seen == [asked]


def test_the_format_holds_for_every_round(tmp_path: Path, capsys: Capture) -> None:
    first, later = tmp_path / "first.csv", tmp_path / "later.csv"
    first.write_text("item,cat,dog\nx,1,0\ny,1,1\n")
    later.write_text("item,cat,dog\nx,0,2\nz,1,0\n")  # annotators' labels, or counts
    given = ("inspect", first, "--format", "counts", "--merge", later)
    added = in_process(capsys, *given, "--merge-conflicts", "add")
    assert added.code == 0, added.err
    assert "3 items, 6 votes; classes cat, dog" in added.out
    later.write_text("item,annotator,label\nx,ann,dog\n")  # votes are no counts
    done = in_process(capsys, *given)
    assert "2 items, 4 votes; classes cat, dog" in done.out
    later.write_text("item,annotator,label\nx,ann,dgo\n")
    done = in_process(capsys, *given)
    assert done.code == 2
    assert "no columns of classes" in done.err
    assert "Read without --format counts: " in done.err
    assert "'dgo'" in done.err
    # Damaged counts could be probabilities.
    later.write_text("item,cat,dog\nx,0,1\nz,0.5,0.5\n")
    assert read_annotations(later, classes=["cat", "dog"]).source.format == "probabilities"
    done = in_process(capsys, *given)
    assert done.code == 2
    assert "counts must be whole numbers; 'cat' is 0.5" in done.err
    assert "Read without" not in done.err


def test_a_second_round_may_name_images_columns_and_formulas_its_own_way(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path)
    text = team.votes.read_text().replace("item,annotator,label", "file,who,what")
    team.votes.write_text(text.replace("x000", "=x000"))
    names = ["=x000", *(f"x{number:03d}" for number in range(1, 60))]
    images = make_images(tmp_path / "images" / "b", names).parent
    given = ["train", team.votes, "-o", team.run, "--epochs", "1", "--image-size", "8"]
    given += ["--images", images, "--annotator", "who", "--label", "what"]
    later = tmp_path / "later.csv"
    later.write_text("item,annotator,label\n'=x000,finn,cat\nb/x001.png,finn,dog\n")
    done = in_process(capsys, *given, "--merge", later)
    assert done.code == 0, done.err
    assert "60 items, 6 annotators, 302 votes" in done.out
    assert "images found: 60 by file name" in done.out
    result = {"type": "choices", "from_name": "label", "value": {"choices": ["cat"]}}
    votes = [{"completed_by": 7, "result": [result]}]
    task = {"id": 1, "data": {"image": "/data/local-files/?d=b/x002.png"}, "annotations": votes}
    export = tmp_path / "export.json"
    export.write_text(json.dumps([task]))
    done = in_process(capsys, *given, "--merge", later, "--merge", export)
    assert done.code == 0, done.err
    assert "60 items, 7 annotators, 303 votes" in done.out
    # A file that has the column asked for is not read by another.
    later.write_text("item,who,what,label\nx001,finn,?,dog\n")
    done = in_process(capsys, *given, "--merge", later)
    assert done.code == 2
    assert "'?'" in done.err


def test_two_items_of_a_round_never_become_one(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    images = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    later = tmp_path / "later.csv"
    later.write_text("item,annotator,label\na/x001.png,finn,cat\nb/x001.png,finn,dog\n")
    more = ("--images", images, "--image-size", "8", "--merge", later)
    done = in_process(capsys, *train_arguments(team, *more))
    assert done.code == 2
    assert "the items 'x001' and 'b/x001.png'" in done.err
    assert "have the same image" in done.err


def test_rounds_that_differ_are_refused_or_the_newest_holds(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path)
    first = team.votes.read_text().splitlines()[1].rpartition(",")
    later = tmp_path / "later.csv"
    other = "dog" if first[2] == "cat" else "cat"
    later.write_text(f"item,annotator,label\n{first[0]},{other}\n")
    arguments = train_arguments(team, "--merge", later)
    done = in_process(capsys, *arguments)
    assert done.code == 2
    assert "let the newest hold with --merge-conflicts newest" in done.err
    done = in_process(capsys, *arguments, "--merge-conflicts", "newest")
    assert done.code == 0, done.err
    assert "60 items, 5 annotators, 300 votes" in done.out


def test_votes_are_added_to_counts_and_to_votes_without_a_name(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path)
    later = tmp_path / "later.csv"
    later.write_text("item,label\nx000,cat\n")
    counts = read_annotations(team.votes).counts()
    pl.read_csv(team.votes).drop("annotator").write_csv(team.votes)
    done = in_process(capsys, *train_arguments(team, "--merge", later, "--merge", later))
    assert done.code == 0, done.err
    assert "302 votes" in done.out
    names = [f"x{number:03d}" for number in range(60)]
    columns = {name: counts[:, k] for k, name in enumerate(("cat", "dog", "owl"))}
    pl.DataFrame({"item": names, **columns}).write_csv(team.votes)
    done = in_process(capsys, *train_arguments(team, "--format", "counts", "--merge", later))
    assert done.code == 0, done.err
    assert RunFolder(team.run).items["n:cat"][0] == counts[0, 0] + 1


def test_images_stay_with_their_patient(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    images = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    beside = pl.read_csv(team.features).select("item", "patient", "part")
    pl.read_csv(team.votes).join(beside, on="item").write_csv(team.votes)
    shown = ("--images", images, "--image-size", "8", "--epochs", "1", "--group", "patient")
    for more in ((), ("--table", team.features)):
        done = in_process(capsys, *train_arguments(team, *shown, *more))
        assert done.code == 0, done.err
        splits = RunFolder(team.run).items.group_by("group").agg(pl.col("split").n_unique())
        assert splits["split"].to_list() == [1] * 12
    done = in_process(capsys, "predict", team.run, images, "-o", team.features, "--no-decision")
    assert f"{team.features} is what {team.run} was trained on" in done.err
    done = in_process(capsys, *train_arguments(team, *shown, "--split", "part"))
    assert done.code == 2
    assert f"{team.votes}, line 17: 'p0' is in two splits: 'train' (item 'x000')" in done.err


def test_what_defer_can_be_told(trained: Team, tmp_path: Path, capsys: Capture) -> None:
    given = ["defer", trained.run, trained.features, "-o", tmp_path / "t.json"]
    more = ["--threshold", "0.2", "--limit", "3", "--no-predictions"]
    done = in_process(capsys, *given, *more)
    assert done.code == 0, done.err
    tasks = json.loads((tmp_path / "t.json").read_text())
    assert [set(task) for task in tasks] == [{"data"}] * 3
    features = {row["item"]: row for row in pl.read_csv(trained.features).iter_rows(named=True)}
    for task in tasks:
        assert task["data"]["row"]["size"] == features[task["data"]["item"]]["size"]


def test_deferred_images_are_found_in_their_folder(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    images = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    shown = ("--images", images, "--image-size", "8", "--epochs", "1")
    assert in_process(capsys, *train_arguments(team, *shown)).code == 0
    decided = tmp_path / "d.csv"
    given = ["predict", team.run, images, "-o", decided, "--threshold", "0"]
    assert in_process(capsys, *given).code == 0
    given = ["defer", team.run, decided, "-o", tmp_path / "t.json"]
    done = in_process(capsys, *given)
    assert done.code == 2
    assert "with --images" in done.err
    done = in_process(capsys, *given, "--images", images, "--image-prefix", "https://x.org/")
    assert done.code == 0, done.err
    task = json.loads((tmp_path / "t.json").read_text())[0]["data"]
    assert task["image"] == f"https://x.org/{task['item']}.png"


def test_one_vote_an_item_trains_and_is_said(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    votes = pl.read_csv(team.votes).unique("item", keep="first", maintain_order=True)
    votes.write_csv(team.votes)
    for arguments in (["inspect", str(team.votes)], train_arguments(team)):
        done = in_process(capsys, *arguments)
        assert done.code == 0, done.err
        assert "one vote an item: labels collapse to hard ones" in done.out


@pytest.mark.parametrize("method", ["pocc", "pocc-center", "softmax", "decalibration"])
def test_sets_that_leave_nearly_everything_open_are_said_to_who_learns_from_them(
    tmp_path: Path, capsys: Capture, method: str
) -> None:
    team = make_team(tmp_path)
    arguments = train_arguments(team, "--labels", "clopper-pearson", "--method", method)
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    assert RunFolder(team.run).facts["label_diameter"] > 0.6
    warned = "the labels leave much open" in done.out
    assert warned == method.startswith("pocc")  # the others learn the shares of the votes


@pytest.mark.parametrize(
    ("bounds", "labels", "fix"),
    [
        (True, "relax-ties", "of 1): little can be learnt from them. To fix: state larger bounds"),
        (False, "clopper-pearson", "To fix: give --labels relax-ties, or collect more votes"),
    ],
)
def test_what_to_do_about_open_labels_fits_what_was_said(
    tmp_path: Path, capsys: Capture, bounds: bool, labels: str, fix: str
) -> None:
    team = make_team(tmp_path)
    if bounds:
        as_bounds(team, *(f"x{n:03d},{('cat', 'dog', 'owl')[n % 3]},0.1" for n in range(60)))
    done = in_process(capsys, *train_arguments(team, "--labels", labels))
    assert done.code == 0, done.err
    assert fix in done.out


def test_a_typo_is_seen_by_inspect_and_taken_where_classes_are_named(
    tmp_path: Path, capsys: Capture
) -> None:
    team = make_team(tmp_path)
    text = team.votes.read_text().replace("owl", "horse").replace("dog", "zebra")
    team.votes.write_text(text.replace("horse", "hrose", 1))
    done = in_process(capsys, "inspect", team.votes)
    assert done.code == 0
    assert "a typo? 'hrose' is seen once and looks like 'horse'" in done.out
    classes = [each for name in ("cat", "zebra", "horse", "hrose") for each in ("--classes", name)]
    for seed in range(9):  # the one vote must fall into training
        done = in_process(capsys, *train_arguments(team, *classes, "--seed", str(seed)))
        if done.code == 0:
            break
    assert done.code == 0, done.err
    assert RunFolder(team.run).classes == ("cat", "zebra", "horse", "hrose")


def test_weights_are_read(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    votes = pl.read_csv(team.votes)
    trust = pl.when(pl.col("annotator") == "ann").then(0.25).otherwise(1.0).alias("trust")
    votes.with_columns(trust).write_csv(team.votes)
    done = in_process(capsys, *train_arguments(team, "--weight", "trust"))
    assert done.code == 0, done.err
    counts = RunFolder(team.run).items.select("^n:.*$").to_numpy()
    np.testing.assert_allclose(counts.sum(1), 4.25)
    done = in_process(capsys, *train_arguments(team, "--weight", "trust", "--labels", "idm"))
    assert done.code == 2
    assert "'idm' counts votes" in done.err


# What cannot be certified


def test_a_target_out_of_reach_is_one_message_and_exit_code_2(
    trained: Team, capsys: Capture
) -> None:
    (trained.run / "rule.json").unlink(missing_ok=True)
    before = snapshot(trained.folder)
    both = ("--max-error", "0.001", "--set-coverage", "0.9")  # the sets alone could be
    for asked in (both[:2], both):
        done = in_process(capsys, "certify", trained.run, *asked)
        assert done.code == 2
        assert not done.out
        assert len(done.err.strip().splitlines()) == 1
        assert "0.1 % with 95 % confidence cannot be certified, and nothing was wr" in done.err
        assert "calibration items like these would do by SGR" in done.err
        assert snapshot(trained.folder) == before


def test_one_item_a_group_is_of_no_use_to_sets(trained: Team, capsys: Capture) -> None:
    before = snapshot(trained.folder)
    given = ("certify", trained.run, "--one-a-group", "--set-coverage", "0.5")
    done = in_process(capsys, *given)
    assert (done.code, snapshot(trained.folder)) == (2, before)
    assert "give one of --max-error and --capacity" in done.err
    done = in_process(capsys, *given, "--max-error", "0.5")
    assert "--one-a-group: the items of" in done.err


def test_as_many_are_deferred_as_a_team_can_review(
    trained: Team, tmp_path: Path, capsys: Capture
) -> None:
    (trained.run / "rule.json").unlink(missing_ok=True)  # it takes none
    output = tmp_path / "d.csv"
    given = ("predict", trained.run, trained.features, "-o", output)
    done = in_process(capsys, *given, "--defer", "37")
    assert done.code == 0, done.err
    assert "predict 463 and defer 37 of 500 items" in done.out
    table = pl.read_csv(output)
    score, deferred = table["score"], table["decision"] == "defer"
    assert deferred.sum() == 37
    assert score.filter(deferred).min() >= score.filter(~deferred).max()  # type: ignore[operator]
    assert table["item"].to_list() == pl.read_csv(trained.features)["item"].to_list()
    for count, wanted in ((0, "defer 0 of 500"), (1000, "predict 0 and defer 500")):
        done = in_process(capsys, *given, "--defer", str(count))
        assert wanted in done.out
        fewer = f"--defer {count}: all are deferred, as there are no more items"
        assert (fewer in done.out) == (count == 1000)
    for other in (("--threshold", "0.5"), ("--no-decision",)):
        done = in_process(capsys, *given, "--defer", "3", *other)
        assert done.code == 2
        assert f"so does {other[0]}. To fix: leave one of them out" in done.err


def test_certify_prints_what_it_promises(trained: Team, capsys: Capture) -> None:
    done = in_process(capsys, "certify", trained.run, "--max-error", "0.3", "--confidence", "0.9")
    assert done.code == 0, done.out
    assert "With 90 % confidence, at most 30 %" in done.out
    assert " %" in done.out
    assert "%" not in done.out.replace(" %", "")
    done = in_process(
        capsys, "certify", trained.run, "--max-error", "0.5", "--against", "annotator"
    )
    assert "wrong against a random annotator" in done.out
    method = ("--method", "conformal-risk-control")
    done = in_process(capsys, "certify", trained.run, "--max-error", "0.3", *method)
    assert "both predicted and wrong" in done.out
    done = in_process(capsys, "certify", trained.run, "--capacity", "0.25")
    assert done.code == 0
    assert "keep 7" in done.out


# Bad input


@dataclass(frozen=True)
class Bad:
    """A team's files, damaged, and what the train command says.

    Args:
        damage: Changes the files.
        says: Texts of the message.
        more: Arguments.
    """

    damage: Callable[[Team], object]
    says: tuple[str, ...]
    more: tuple[str, ...] = field(default=())


def as_shares(team: Team, change: str = "") -> None:
    """Votes as probabilities, with the first row changed."""
    counts = read_annotations(team.votes).counts() / 5
    names = [f"x{number:03d}" for number in range(len(counts))]
    columns = {name: counts[:, k] for k, name in enumerate(("cat", "dog", "owl"))}
    pl.DataFrame({"item": names, **columns}).write_csv(team.votes)
    lines = team.votes.read_text().splitlines()
    team.votes.write_text("\n".join([lines[0], f"x000,{change}", *lines[2:], ""]))


def as_bounds(team: Team, *rows: str) -> None:
    team.votes.write_text("\n".join(["item,label,at_least", *rows, ""]))


def one_class(team: Team) -> None:
    team.votes.write_text(team.votes.read_text().replace("dog", "cat").replace("owl", "cat"))


def owls_tested_only(team: Team) -> None:
    votes = pl.read_csv(team.votes)
    owls = votes.filter(pl.col("label") == "owl")["item"].unique().to_list()
    features = pl.read_csv(team.features)
    test = pl.when(pl.col("item").is_in(owls)).then(pl.lit("test")).otherwise(pl.col("part"))
    features.with_columns(part=test).write_csv(team.features)


def colours(team: Team) -> None:
    pl.read_csv(team.features).with_columns(colour=pl.lit("red")).write_csv(team.features)


def broken_images(team: Team) -> None:
    images = make_images(team.folder / "images", [f"x{number:03d}" for number in range(60)])
    for name in ("x003", "x005"):
        (images / f"{name}.png").write_text("no image")


def missing_image(team: Team) -> None:
    make_images(team.folder / "images", [f"x{number:03d}" for number in range(59)])


def binary(name: str) -> Callable[[Team], object]:
    content = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 20
    return lambda team: (team.folder / name).write_bytes(content)


def truncated_json(team: Team) -> None:
    tasks = [
        {
            "id": number,
            "data": {"image": f"x{number:03d}"},
            "annotations": [
                {
                    "completed_by": 1,
                    "result": [
                        {"type": "choices", "from_name": "c", "value": {"choices": ["cat"]}}
                    ],
                }
            ],
        }
        for number in range(60)
    ]
    team.votes.write_text(json.dumps(tasks)[:-100])


IMAGES = ("--images", "{folder}/images", "--image-size", "8")

BAD = {
    "no such export": Bad(lambda t: t.votes.unlink(), ("votes.csv", "no such file")),
    "no such features": Bad(lambda t: t.features.unlink(), ("there is no file", "features.csv")),
    "a missing column": Bad(
        lambda t: None, ("votes.csv", "'labell'", "'label'"), ("--label", "labell")
    ),
    "a missing group": Bad(
        lambda t: None, ("features.csv", "no column 'pateint'", "did you mean 'patient'"),
        ("--group", "pateint"),
    ),
    "a typo": Bad(
        lambda t: t.votes.write_text(
            t.votes.read_text().replace("owl", "horse").replace("horse", "hrose", 1)
        ),
        ("votes.csv, item 'x", "'hrose' is seen once", "write 'horse'"),
    ),
    "twice and differently": Bad(
        lambda t: t.add("votes.csv", "x000,zoe,cat", "x000,zoe,dog"),
        ("votes.csv, line 303", "'zoe' votes twice on item 'x000' and differently", "line 302"),
    ),
    "an item without features": Bad(
        lambda t: t.add("votes.csv", "x999,ann,cat"),
        ("1 of 61 items have no features in", "features.csv: 'x999'", "--skip-missing"),
    ),
    "an item without image": Bad(
        missing_image, ("1 of 60 items have no image in", "'x059'", "--skip-missing"), IMAGES
    ),
    "features without votes": Bad(
        lambda t: t.add("features.csv", "x999,p,cat,test,1,1"),
        ("1 of 61 items have no annotations in", "votes.csv: 'x999'", "--skip-missing"),
    ),
    "probabilities that sum to 1.1": Bad(
        lambda t: as_shares(t, "0.5,0.5,0.1"), ("votes.csv, line 2", "must sum to 1", "1.1"),
        ("--format", "probabilities"),
    ),
    "negative probabilities": Bad(
        lambda t: as_shares(t, "-0.5,1,0.5"), ("votes.csv, line 2", "0 or more", "-0.5"),
        ("--format", "probabilities"),
    ),
    "probabilities that are NaN": Bad(
        lambda t: as_shares(t, "NaN,0.5,0.5"), ("votes.csv, line 2", "'cat'"),
        ("--format", "probabilities"),
    ),
    "a bound above 1": Bad(
        lambda t: as_bounds(t, "x000,cat,0.2", "x001,dog,70"),
        ("votes.csv, line 3", "must lie in [0, 1]; this is 70", "write 0.70"),
    ),
    "contradictory bounds": Bad(
        lambda t: as_bounds(t, "x000,cat,0.7", "x000,dog,0.6"),
        ("votes.csv, line 3", "item 'x000' contradict each other", "1.3"),
    ),
    "one class only": Bad(one_class, ("votes.csv", "every vote is for one class, 'cat'")),
    "a class missing from training": Bad(
        owls_tested_only, ("no item of the training split was called 'owl'",), ("--split", "part")
    ),
    "unreadable images": Bad(
        broken_images, ("2 of 60 images cannot be read", "x003.png"), IMAGES
    ),
    "a text column": Bad(
        colours,
        ("features.csv, line 2", "must be numbers; column 'colour' holds 'red' for item 'x000'",
         "--drop colour"),
    ),
    "an empty feature": Bad(
        lambda t: t.add("features.csv", "x999,p,cat,test,,1"),
        ("features.csv, line 62", "column 'size' is empty", "'x999'"),
    ),
    "a patient in two splits": Bad(
        lambda t: None,
        ("features.csv, line 5: 'p0' is in two splits: 'train' (item 'x000') and 'calibration'",),
        ("--group", "patient", "--split", "part"),
    ),
    "calibration that overlaps training": Bad(
        lambda t: t.add("features.csv", "x000,p0,cat,calibration,1,1"),
        ("features.csv, line 62", "'x000' comes a second time, first in line 2"),
        ("--split", "part"),
    ),
    "a split of another name": Bad(
        lambda t: t.change("features.csv", "calibration", "calibraton"),
        ("features.csv, line 5: a split must", "item 'x003' has 'calibraton'",
         "write 'calibration'"),
        ("--split", "part"),
    ),
    "an item without its group": Bad(
        lambda t: t.change("features.csv", "x001,p0", "x001,"),
        ("features.csv, line 3: item 'x001' has no 'patient'",), ("--group", "patient"),
    ),
    "no gold label": Bad(
        lambda t: pl.read_csv(t.features).with_columns(truth=None).write_csv(t.features),
        ("features.csv, column 'truth': no item has a gold label",), ("--gold", "truth"),
    ),
    "a gold label nobody gave": Bad(
        lambda t: t.features.write_text(t.features.read_text().replace("owl", "ow1")),
        ("features.csv, line ", ": the gold label of item", "'ow1'", "write 'owl'"),
        ("--gold", "truth"),
    ),
    "an empty export": Bad(lambda t: t.votes.write_text(""), ("votes.csv", "the file is empty")),
    "empty features": Bad(lambda t: t.features.write_text(""), ("features.csv is empty",)),
    "a truncated JSON": Bad(truncated_json, ("votes.csv", "JSON")),
    "a binary export": Bad(binary("votes.csv"), ("votes.csv: this file is an image",)),
    "binary features": Bad(binary("features.csv"), ("features.csv",)),
    "a file where the run should be": Bad(
        lambda t: t.run.write_text("mine"), ("run is a file", "--output")
    ),
    "a file where its parent should be": Bad(
        lambda t: None, ("votes.csv is no folder", "--output"), ("-o", "{folder}/votes.csv/run")
    ),
    "a folder of other things": Bad(
        lambda t: None, ("folder of other things", "--output"), ("-o", "{folder}")
    ),
    "an unknown method": Bad(lambda t: None, ("method must be one of",), ("--method", "poc")),
    "an unknown backbone": Bad(lambda t: None, ("backbone must be one of",), ("--backbone", "m")),
    "an unknown format": Bad(lambda t: None, ("no format 'lng'", "'long'"), ("--format", "lng")),
    "an unknown encoding": Bad(lambda t: None, ("votes.csv",), ("--encoding", "utf-99")),
    "columns beside images": Bad(
        lambda t: make_images(t.folder / "images", ["x000"]), ("with --images there are none",),
        (*IMAGES, "--drop", "patient"),
    ),
    "a group that images have not": Bad(
        lambda t: make_images(t.folder / "images", ["x000"]),
        ("votes.csv has no column 'patient' but 'item', 'annotator', 'label'",),
        (*IMAGES, "--group", "patient"),
    ),
    "a table beside features": Bad(
        lambda t: None, ("--table goes with --images",), ("--table", "{folder}/features.csv")
    ),
    "a network of numbers for images": Bad(
        lambda t: make_images(t.folder / "images", ["x000"]),
        ("the backbone 'mlp' takes numbers", "--backbone resnet18"), (*IMAGES, "--backbone", "mlp"),
    ),
    "classes in one word": Bad(
        lambda t: None, ("got 'cat,dog, owl'", "--classes cat --classes dog --classes owl"),
        ("--classes", "cat,dog, owl"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message_exit_code_2_and_nothing_written(
    case: str, tmp_path: Path, capsys: Capture
) -> None:
    bad, team = BAD[case], make_team(tmp_path / "team")
    bad.damage(team)
    more = [each.format(folder=team.folder) for each in bad.more]
    before = snapshot(tmp_path)
    done = in_process(capsys, *train_arguments(team, *more))
    assert done.code == 2, (done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert done.err.startswith("credalearn: ")
    for said in bad.says:
        assert said in done.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{new}/d.csv"],
         "lacks 1 of the model's 2 features: 'weight'"),
        (["predict", "{run}", "{folder}/fewer.npy", "-o", "{new}/d.csv"],
         "holds 1 features an item; this model takes 2"),
        (["predict", "{run}", "{folder}/none.csv", "-o", "{new}/d.csv"], "none.csv"),
        (["predict", "{run}", "{features}", "-o", "{new}/d.txt"], "must end in one of .csv"),
        (["predict", "{run}", "{features}", "-o", "{votes}/d.csv"], "votes.csv/d.csv"),
        (["predict", "{folder}", "{features}", "-o", "{new}/d.csv"], "run.json is missing"),
        (["predict", "{new}", "{features}", "-o", "{new}/d.csv"], "there is no finished run at"),
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{votes}", "--no-decision"],
         "votes.csv is what {run} was trained on. To fix: name another output"),
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{features}"],
         "features.csv is what {run} was trained on"),
        (["predict", "{run}", "{features}", "-o", "{run}/items.parquet"],
         "items.parquet is a file of the run. To fix: name another output"),
        (["certify", "{run}"], "--max-error and --capacity"),
        (["certify", "{run}", "--max-error", "20"], "write 20 % as 0.2"),
        (["certify", "{run}", "--capacity", "20"], "write 20 % as 0.2"),
        (["certify", "{votes}", "--max-error", "0.1"], "there is no finished run at"),
        (["defer", "{run}", "{folder}/none.csv", "-o", "{new}/t.json"], "none.csv"),
        (["defer", "{run}", "{features}", "-o", "{votes}", "--to", "csv"],
         "votes.csv is what {run} was trained on"),
        (["defer", "{run}", "{folder}/fewer.csv", "-o", "{folder}/fewer.csv", "--to", "csv"],
         "fewer.csv is the data itself"),
        (["defer", "{run}", "{features}", "-o", "{run}/run.json"],
         "run.json is a file of the run"),
        (["export", "{run}", "--onnx", "{new}/model.bin"], "must end in .onnx"),
        (["export", "{run}", "--onnx", "."], "must end in .onnx; got ."),
        (["report", "{run}", "-o", "."], "must end in .html or .htm; got ."),
        (["report", "{run}", "-o", "{votes}"], "must end in .html or .htm; got {votes}"),
        (["report", "{new}"], "there is no finished run at"),
        (["report", "{run}", "-o", "{votes}/page.html"], "page.html cannot be written"),
        (["inspect", "{folder}"], "this is a folder"),
    ],
)  # fmt: skip
def test_bad_input_of_later_steps(
    arguments: list[str], says: str, trained: Team, tmp_path: Path, capsys: Capture
) -> None:
    assert in_process(capsys, "certify", trained.run, "--capacity", "0.2").code == 0
    pl.read_csv(trained.features).drop("weight").write_csv(trained.folder / "fewer.csv")
    np.save(trained.folder / "fewer.npy", np.zeros((3, 1)))
    before = snapshot(trained.folder), snapshot(tmp_path)
    places = {
        "run": trained.run,
        "folder": trained.folder,
        "features": trained.features,
        "votes": trained.votes,
        "new": tmp_path / "new",
    }
    done = in_process(capsys, *(each.format(**places) for each in arguments))
    assert done.code == 2, (done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert says.format(**places) in done.err
    assert not done.out
    assert (snapshot(trained.folder), snapshot(tmp_path)) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "{votes}", "--features", "{features}", "-o", "{run}", "--epochs", "2",
         "--drop", "patient", "--drop", "truth", "--drop", "part"],
        ["certify", "{run}", "--capacity", "0.3"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.csv"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.parquet"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.jsonl"],
        ["defer", "{run}", "{features}", "-o", "{folder}/t.json"],
        ["defer", "{run}", "{features}", "-o", "{folder}/t.csv", "--to", "csv"],
        ["export", "{run}", "--onnx", "{folder}/m.onnx"],
        ["report", "{run}"],
    ],
    ids=lambda arguments: " ".join([arguments[0], arguments[-1].rpartition("/")[2]]),
)  # fmt: skip
def test_a_full_disk_is_one_message_and_changes_nothing(
    arguments: list[str], trained: Team, capsys: Capture
) -> None:
    assert in_process(capsys, "certify", trained.run, "--capacity", "0.2").code == 0
    places = {
        "run": trained.run,
        "folder": trained.folder,
        "features": trained.features,
        "votes": trained.votes,
    }
    before = snapshot(trained.folder)
    # Enough for predict's list of names, which stands in another folder, and not for its output.
    with full_disk(10_000 if arguments[0] == "predict" else 200):
        done = in_process(capsys, *(each.format(**places) for each in arguments))
    assert done.code == 2, (done.out, done.err)
    assert "too large" in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert snapshot(trained.folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path / "team")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    done = in_process(capsys, *train_arguments(team, "-o", closed / "run"))
    assert done.code == 2
    assert "may not be written to" in done.err


def test_a_folder_that_may_not_be_written_to(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = make_team(tmp_path / "team")
    closed = tmp_path / "closed"
    closed.mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and may(path, mode))
    done = in_process(capsys, *train_arguments(team, "-o", closed / "run"))
    assert done.code == 2
    assert f"{closed} may not be written to. To fix: name another folder" in done.err
    assert not list(closed.iterdir())


# Reports of several runs, and what spreadsheets would run


def test_runs_are_compared_in_one_page(tmp_path: Path, capsys: Capture) -> None:
    runs = [fake_run(tmp_path / name, num_items=200, seed=0).path for name in ("one", "two")]
    done = in_process(capsys, "report", *runs, "-o", tmp_path / "page.html", "--title", "Two runs")
    assert done.code == 0, done.err
    assert done.out.strip() == str(tmp_path / "page.html")
    assert "Two runs" in (tmp_path / "page.html").read_text()


def test_formulas_are_neutral_in_decisions(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    for path in (team.votes, team.features):
        path.write_text(path.read_text().replace("x000", "=1+1").replace("owl", "@owl"))
    done = in_process(capsys, *train_arguments(team))
    assert done.code == 0, done.err
    given = ["predict", team.run, team.features, "-o", tmp_path / "d.csv", "--threshold", "0.5"]
    assert in_process(capsys, *given).code == 0
    text = (tmp_path / "d.csv").read_text()
    assert "\n'=1+1," in text
    assert ",@owl" not in text


def test_help_names_every_step(capsys: Capture) -> None:
    done = in_process(capsys, "--help")
    for step in ("inspect", "train", "certify", "predict", "defer", "export", "report", "demo"):
        assert step in done.out


@pytest.mark.parametrize(("option", "choices"), [(Form, READERS), (Method, METHODS)])
def test_help_lists_every_choice(option: Any, choices: dict[str, object]) -> None:
    said = option.__metadata__[0].help.removeprefix("Of the export: ").removesuffix(".")
    assert sorted(said.replace(" or ", ", ").split(", ")) == sorted(choices)
