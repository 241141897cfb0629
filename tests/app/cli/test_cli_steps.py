"""The commands from an annotation export to certified decisions, as a team runs them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from credalearn.app.cli.options import Form, Method

from credalearn.app.nodules import CLASSES, load_nodules
from credalearn.app.readers import READERS
from credalearn.app.run import Run
from credalearn.methods import METHODS
from fake_run import fake_run
from team_files import command, in_process, make_images, make_team, train_arguments

Capture = pytest.CaptureFixture[str]


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
    items = Run.load(run).items
    splits = items.group_by("group").agg(pl.col("split").n_unique())
    assert splits["split"].max() == 1
    assert len(splits) == 695

    done = in_process(capsys, "certify", run, "--max-error", "0.25")
    assert done.code == 0, done.err
    assert "With 95 % confidence, at most 25 % of the items it predicts are wrong" in done.out
    assert "calibration items, their votes tie" in done.out
    rule = json.loads((run / "guarantee.json").read_text())

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
    table = Run.load(run).predictions
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
    page = team.run / "report.html"
    assert in_process(capsys, "report", team.run).out == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert "Image of x" in text
    assert "Read, but not votes" not in text  # what x007 was given are votes
    said = "Items that took no part: 1 with an unreadable image. What is counted by class is"
    assert f"{said} without them." in text
    moved = images.rename(tmp_path / "moved")
    done = in_process(capsys, "report", team.run)
    assert f"{images} is not there: the page has no pictures. To fix: give --images" in done.out
    assert "Image of x" not in page.read_text(encoding="utf-8")
    assert in_process(capsys, "report", team.run, "--images", moved).out == f"{page}\n"
    assert "Image of x" in page.read_text(encoding="utf-8")


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


def test_ids_of_any_name_are_said_once(tmp_path: Path, capsys: Capture) -> None:
    """Of votes, table and npz: later steps find them, and no row is taken for another item."""
    team = make_team(tmp_path)
    team.change("votes.csv", "item,", "msg_id,")
    table = pl.read_csv(team.features).rename({"item": "msg_id"}).sample(60, shuffle=True, seed=1)
    table.write_csv(team.features)
    values = table.select("size", "weight").to_numpy()
    names, patients = table["msg_id"].to_numpy().astype(str), table["patient"].to_list()
    arrays = tmp_path / "e.npz"
    np.savez(arrays, msg_id=names, patient=patients, embeddings=values)
    given = ["train", team.votes, "--features", arrays, "--group", "patient", "-o", team.run]
    done = in_process(capsys, *given, "--epochs", "2")
    assert "no column is the item" in done.err
    done = in_process(capsys, *given, "--epochs", "2", "--item", "msg_id")
    assert done.code == 0, done.err
    run = Run.load(team.run)
    assert run.facts.inputs.item == run.facts.annotations.item == "msg_id"
    groups = dict(zip(names, patients, strict=True))
    assert all(groups[item] == group for item, group in run.items.select("item", "group").rows())
    out = tmp_path / "d.parquet"
    for data in (arrays, tmp_path / "f.csv"):
        columns = {"msg_id": names, "f0": values[:, 0], "f1": values[:, 1]}
        pl.DataFrame(columns).write_csv(tmp_path / "f.csv")
        done = in_process(capsys, "predict", team.run, data, "--no-decision", "-o", out)
        assert done.code == 0, done.err
        assert pl.read_parquet(out)["item"].to_list() == list(names)
    other = ("predict", team.run, arrays, "--no-decision", "-o", out, "--item", "msg")
    assert "has no array 'msg' with" in in_process(capsys, *other).err
    tasks = ("defer", team.run, tmp_path / "f.csv", "--to", "csv", "--threshold", "0.3")
    done = in_process(capsys, *tasks, "-o", tmp_path / "tasks.csv")
    assert done.code == 0, done.err
    assert set(pl.read_csv(tmp_path / "tasks.csv")["item"]) <= set(names)


def test_gold_labels_own_splits_and_columns_of_other_names(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
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
    table = Run.load(team.run).predictions
    features = pl.read_csv(team.features)
    wanted = features.filter(pl.col("part") != "train")
    assert table["item"].to_list() == wanted["which"].to_list()
    assert table["truth"].to_list() == wanted["truth"].to_list()
    done = in_process(capsys, "certify", team.run, "--capacity", "0.2")
    assert "wrong against the gold labels" in done.out


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


def test_runs_are_compared_in_one_page(tmp_path: Path, capsys: Capture) -> None:
    runs = [
        fake_run(tmp_path / name, num_items=200, random_state=0).path for name in ("one", "two")
    ]
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
    steps = ("inspect", "labels", "train", "certify", "predict", "defer", "export", "report")
    for step in (*steps, "recalibrate", "demo", "bench"):
        assert f"│ {step} " in done.out  # in a row of its own, not in the words about another


@pytest.mark.parametrize(("option", "choices"), [(Form, READERS), (Method, METHODS)])
def test_help_lists_every_choice(option: Any, choices: dict[str, object]) -> None:
    said = option.__metadata__[0].help.removeprefix("Of the export: ").removesuffix(".")
    assert sorted(said.replace(" or ", ", ").split(", ")) == sorted(choices)
