"""Items are told apart by what they hold, not by their names: from training to deferring."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credalearn.app.cli import app
from credalearn.app.items.known import KnownItems, endings, other_content
from credalearn.app.run import Run
from credalearn.app.steps.certifying import certify_run
from credalearn.app.steps.covering import certify_sets
from credalearn.app.steps.deferring import defer
from credalearn.app.steps.predicting import predict
from credalearn.app.steps.reporting import write_report
from credalearn.errors import CredalError
from team_files import Team, in_process, make_images, make_team, train_arguments

Capture = pytest.CaptureFixture[str]
FEATURES = ["size", "weight"]
NAMES = [f"x{number:03d}" for number in range(60)]
TRAINED = "items that the model was trained on"
SMALL = ("--image-size", "8", "--epochs", "1")
ALONE = ("--group", "alone")  # every item a group of its own


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Votes, features and a folder ``photos``, with a run on the latter; do not change it."""
    team = make_team(tmp_path_factory.mktemp("team"))
    photos = make_images(team.folder / "photos", NAMES)
    app(train_arguments(team, "--images", photos, *SMALL), standalone_mode=False)
    app(train_arguments(team, "-o", team.folder / "rows"), standalone_mode=False)
    return team


def photos(team: Team) -> Path:
    return team.folder / "photos"


def renamed(team: Team, output: Path, names: Sequence[str]) -> Path:
    """The team's votes, about items of other names."""
    item = pl.col("item").replace(dict(zip(NAMES, names, strict=True)))
    pl.read_csv(team.votes).with_columns(item).write_csv(output)
    return output


def of_split(run: Run, *splits: str) -> list[str]:
    return run.items.filter(pl.col("split").is_in(splits))["item"].to_list()


# What training writes


def test_items_parquet_holds_the_digest_of_each_input(team: Team) -> None:
    for item, digest in Run.load(team.run).items.select("item", "digest").iter_rows():
        content = (photos(team) / f"{item}.png").read_bytes()
        assert digest == hashlib.sha256(content).hexdigest()
    table = pl.read_csv(team.features)
    rows = table.select(FEATURES).to_numpy().astype(np.float32)
    found = dict(Run.load(team.folder / "rows").items.select("item", "digest").iter_rows())
    assert [found[item] for item in table["item"]] == [
        hashlib.sha256(row.tobytes()).hexdigest() for row in rows
    ]


def test_equal_images_are_in_one_split(team: Team, tmp_path: Path, capsys: Capture) -> None:
    copied = shutil.copytree(photos(team), tmp_path / "photos")
    for number in range(30):  # every photo of the first half again in the second
        shutil.copy(copied / f"x{number:03d}.png", copied / f"x{number + 30:03d}.png")
    given = train_arguments(team, "--images", copied, *SMALL, "-o", tmp_path / "run")
    done = in_process(capsys, *given)
    assert done.code == 0, done.err
    split = dict(Run.load(tmp_path / "run").items.select("item", "split").iter_rows())
    assert [split[name] for name in NAMES[:30]] == [split[name] for name in NAMES[30:]]

    table = tmp_path / "beside.csv"
    pl.read_csv(team.features).with_columns(alone=pl.col("item")).write_csv(table)
    beside = ("--table", table, "--split", "part")  # of which every five are one
    assert in_process(capsys, *given, *beside).code == 0
    done = in_process(capsys, *given, "--table", table, *ALONE)
    assert "have the same image as an item of another split" in done.err
    shutil.copy(copied / "x000.png", copied / "x003.png")
    shutil.copy(copied / "x000.png", copied / "x004.png")
    done = in_process(capsys, *given, *beside)
    assert done.code == 2
    told = f"2 items of {team.votes} have the same image as an item of another split, such as"
    assert f"{told} 'x003' (calibration) and 'x000' (train): what is learned of one" in done.err


def test_a_later_image_that_is_tested_on_is_not_trained_on(
    team: Team, tmp_path: Path, capsys: Capture
) -> None:
    tested = of_split(Run.load(team.run), "test")[0]
    copied = shutil.copytree(photos(team), tmp_path / "photos")
    shutil.copy(copied / f"{tested}.png", copied / "again.png")
    (tmp_path / "later.csv").write_text("item,annotator,label\nagain,ann,cat\n")
    given = ("--images", copied, *SMALL, "--merge", tmp_path / "later.csv", "-o", tmp_path / "run")
    done = in_process(capsys, *train_arguments(team, *given))
    assert done.code == 0, done.err
    assert "left out: 1 items of later exports whose image is in calibration or test" in done.out


# Calibrating again


def test_moved_and_renamed_images_are_known_and_reused_names_are_not(
    team: Team, tmp_path: Path, capsys: Capture
) -> None:
    run = Run.load(team.run)
    number, held_out = len(of_split(run, "train")), len(of_split(run, "calibration", "test"))
    moved, others = tmp_path / "moved", [f"y{row:03d}" for row in range(60)]
    moved.mkdir()
    for name, other in zip(NAMES, others, strict=True):
        shutil.copy(photos(team) / f"{name}.png", moved / f"{other}.png")
    votes = renamed(team, tmp_path / "votes.csv", others)
    shutil.copytree(team.run, tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    facts.inputs.path = "photos"  # relative, and not here
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    given = ["recalibrate", tmp_path / "run", votes, "--images", moved, "-o", tmp_path / "new"]
    done = in_process(capsys, *given)
    assert done.code == 0, done.err
    assert f"left out: {number} {TRAINED}" in done.out
    assert f"{held_out} of the {held_out} items are calibration or test items of" in done.out
    assert "are called like" not in done.out

    new = make_images(tmp_path / "new-photos", NAMES, random_state=1)
    given = ["recalibrate", team.run, team.votes, "--images", new, "-o", tmp_path / "reused"]
    done = in_process(capsys, *given)
    assert done.code == 0, done.err
    assert TRAINED not in done.out.split("images found")[1].split("are called")[0]
    assert f"{number} items are called like {TRAINED}, but hold something else" in done.out
    assert "items are calibration or test items of" not in done.out
    # Trained items and new ones of the same names do not get in each other's way.
    again = Run.load(tmp_path / "reused")
    assert len(again.items) == 60 + number
    assert again.items["n:cat"].sum() == (pl.read_csv(team.votes)["label"] == "cat").sum()
    certify_run(again, capacity=0.5)
    certify_sets(again, coverage=0.5)
    assert "30 calibration, 30 test" in write_report(again).read_text()


def test_rows_are_known_by_their_features(team: Team, tmp_path: Path, capsys: Capture) -> None:
    run = Run.load(team.folder / "rows")
    number, held_out = len(of_split(run, "train")), len(of_split(run, "calibration", "test"))
    votes = renamed(team, tmp_path / "votes.csv", range(60))  # type: ignore[arg-type]
    table = pl.read_csv(team.features).with_columns(item=pl.int_range(60))
    table.write_csv(tmp_path / "features.csv")
    np.save(tmp_path / "rows.npy", table.select(FEATURES).to_numpy())
    for name in ("features.csv", "rows.npy"):
        output = tmp_path / f"of-{name}"
        given = ["recalibrate", run.path, votes, "--features", tmp_path / name, "-o", output]
        done = in_process(capsys, *given)
        assert done.code == 0, done.err
        assert f"left out: {number} {TRAINED}" in done.out
        assert f"{held_out} of the {held_out} items are calibration or test items" in done.out
        assert predict(run, tmp_path / name, tmp_path / "d.csv", decide=False).trained == number
    table = pl.read_csv(team.features).with_columns(size=pl.col("size") + 1)
    table.write_csv(tmp_path / "features.csv")
    output = tmp_path / "reused"
    given = ["recalibrate", run.path, team.votes, "--features", tmp_path / "features.csv"]
    done = in_process(capsys, *given, "-o", output)
    assert f"{number} items are called like {TRAINED}, but hold something else" in done.out
    assert len(Run.load(output).predictions) == 60
    data = tmp_path / "features.csv"
    assert predict(run, data, tmp_path / "d.csv", decide=False).trained == 0


def test_rows_that_are_equal_by_chance_stay(team: Team, tmp_path: Path, capsys: Capture) -> None:
    """Of two features of three values there are nine rows: everybody has been seen."""
    own = Team(tmp_path)
    table = pl.read_csv(team.features).with_columns(pl.col(FEATURES).round(0).clip(-1, 1))
    table.write_csv(own.features)
    own.votes.write_bytes(team.votes.read_bytes())
    assert in_process(capsys, *train_arguments(own)).code == 0
    number = len(of_split(Run.load(own.run), "train"))
    given = ["recalibrate", own.run, own.votes, "--features", own.features, "-o", tmp_path / "a"]
    done = in_process(capsys, *given)
    assert f"left out: {number} {TRAINED}" in done.out
    told = "have the features of another: only items with the name and the features of one"
    assert told in done.out
    votes = renamed(team, tmp_path / "v.csv", [f"y{name}" for name in NAMES])
    table.with_columns(item="y" + pl.col("item")).write_csv(tmp_path / "f.csv")
    given = ["recalibrate", own.run, votes, "--features", tmp_path / "f.csv", "-o", tmp_path / "b"]
    done = in_process(capsys, *given)
    assert done.code == 0, done.err
    assert "left out:" not in done.out
    run = Run.load(own.run)
    assert predict(run, tmp_path / "f.csv", tmp_path / "d.csv", decide=False).trained == 0


# Weights of an earlier run


def test_weights_that_have_seen_calibration_or_test_items_are_refused(
    team: Team, tmp_path: Path, capsys: Capture
) -> None:
    table = pl.read_csv(team.features)  # other names and other splits
    table.select("part", "size", "weight", "truth", "patient", "item").with_columns(
        item=pl.col("item").replace(NAMES, [f"y{name}" for name in NAMES])
    ).write_csv(tmp_path / "features.csv")
    own = Team(tmp_path)
    renamed(team, own.votes, [f"y{name}" for name in NAMES])
    weights = team.folder / "rows" / "model" / "model.safetensors"
    done = in_process(capsys, *train_arguments(own, "--weights", weights, "--random-state", "1"))
    assert done.code == 2
    before = set(of_split(Run.load(team.folder / "rows"), "train"))
    app(train_arguments(own, "--random-state", "1", "-o", tmp_path / "free"), standalone_mode=False)
    held_out = of_split(Run.load(tmp_path / "free"), "calibration", "test")
    leaking = [name for name in held_out if name[1:] in before]
    told = f"{len(leaking)} items of calibration or test were trained on for the weights in"
    assert f"{told} {weights}, such as '{leaking[0]}'" in done.err
    assert "To fix: name splits with --split that put such items into train" in done.err
    assert not own.run.exists()
    done = in_process(capsys, *train_arguments(own, "--weights", weights))
    assert done.code == 0, done.err
    assert "nothing tells what" not in done.out

    loose = shutil.copy(weights, tmp_path / "loose.safetensors")
    done = in_process(capsys, *train_arguments(own, "--weights", loose, "--random-state", "1"))
    assert done.code == 0, done.err
    assert f"nothing tells what {loose} was trained on: if items of calibration or" in done.out


def test_weights_are_for_features_in_one_order(team: Team, tmp_path: Path, capsys: Capture) -> None:
    weights = team.folder / "rows" / "model" / "model.safetensors"
    new = make_team(tmp_path, random_state=1)
    table = pl.read_csv(new.features)
    table.select("item", "weight", "size", "patient", "truth", "part").write_csv(new.features)
    done = in_process(capsys, *train_arguments(new, "--weights", weights))
    assert done.code == 2
    told = "holds weights for these features in another order: 'size' where here is 'weight'."
    assert f"{weights} {told} To fix: put the columns into the same order" in done.err
    table.rename({"size": "height"}).write_csv(new.features)
    done = in_process(capsys, *train_arguments(new, "--weights", weights))
    assert "for other features: 'size' where here is 'height'. To fix: start without" in done.err


def test_groups_that_the_weights_have_seen_are_not_calibrated_on(
    team: Team, tmp_path: Path, capsys: Capture
) -> None:
    by_patient = ("--group", "patient")
    app(train_arguments(team, *by_patient, "-o", tmp_path / "first"), standalone_mode=False)
    weights = tmp_path / "first" / "model" / "model.safetensors"
    new = make_team(tmp_path / "new", random_state=1)  # other items of the same patients
    given = ("--weights", weights, "--random-state", "1")
    done = in_process(capsys, *train_arguments(new, *by_patient, *given))
    assert done.code == 2
    assert "items of calibration or test are of a 'patient' that was trained on for the" in done.err
    done = in_process(capsys, *train_arguments(new, *given))  # without groups nothing tells
    assert done.code == 0, done.err
    assert f"{weights} was trained with --group patient: nothing tells which items of" in done.out

    other = pl.col("patient").str.replace("p", "q")
    pl.read_csv(new.features).with_columns(other).write_csv(new.features)
    done = in_process(capsys, *train_arguments(new, *by_patient, *given))
    assert done.code == 0, done.err
    assert "nothing tells" not in done.out
    first = Run.load(tmp_path / "first").items.filter(pl.col("split") == "train")
    assert set(first["group"]) < set(Run.load(new.run).items["group"])  # known ever after


def test_a_name_that_only_the_weights_have_seen_is_free(team: Team, tmp_path: Path) -> None:
    run = Run.load(shutil.copytree(team.run, tmp_path / "run"))
    assert other_content(run, ["x000"], ["0"]) == ["x000"]
    votes = pl.when(pl.col("item") != "x000").then(pl.col("^n:.*$"))
    run.items.with_columns(votes).write_parquet(run.path / "items.parquet")
    assert other_content(run, ["x000"], ["0"]) == []


def test_rows_without_names_are_to_be_named(team: Team, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.save(tmp_path / "a.npy", rows)
    renamed(team, tmp_path / "votes.csv", [str(number) for number in range(60)])
    given = ["--features", tmp_path / "a.npy", "-o", tmp_path / "run", "--epochs", "1"]
    app(["train", *map(str, [tmp_path / "votes.csv", *given])], standalone_mode=False)
    np.save(tmp_path / "b.npy", rows + 1)
    with pytest.raises(CredalError, match=r"To fix: give them names, in an npz file or a table"):
        defer(Run.load(tmp_path / "run"), tmp_path / "b.npy", tmp_path / "t.json", threshold=0)


def test_what_the_weights_have_seen_is_known_ever_after(
    team: Team, tmp_path: Path, capsys: Capture
) -> None:
    weights, new = team.run / "model" / "model.safetensors", make_team(tmp_path, random_state=1)
    images = make_images(tmp_path / "photos", NAMES, random_state=1)
    given = ("--images", images, "--weights", weights, *SMALL)
    done = in_process(capsys, *train_arguments(new, *given))
    assert done.code == 0, done.err
    run, number = Run.load(new.run), len(of_split(Run.load(team.run), "train"))
    assert run.facts.splits.train == 60 - len(run.predictions)
    assert predict(run, photos(team), tmp_path / "d.csv", decide=False).trained == number
    weights = new.run / "model" / "model.safetensors"
    again = ("--images", photos(team), "--weights", weights, *SMALL, "--random-state", "1")
    done = in_process(capsys, *train_arguments(team, *again, "-o", tmp_path / "third"))
    assert "items of calibration or test were trained on for the weights in" in done.err
    # Once more from its own weights, on its own items: nothing is there twice.
    given = ("--images", images, "--weights", weights, *SMALL)
    done = in_process(capsys, *train_arguments(new, *given, "-o", tmp_path / "fourth"))
    assert done.code == 0, done.err
    assert sorted(Run.load(tmp_path / "fourth").items["digest"]) == sorted(run.items["digest"])


# Predicting and deferring


def test_predict_counts_what_was_trained_on(team: Team, tmp_path: Path) -> None:
    run, output = Run.load(team.run), tmp_path / "d.csv"
    number = len(of_split(run, "train"))
    elsewhere = tmp_path / "elsewhere" / "deep"
    shutil.copytree(photos(team), elsewhere)
    for file in elsewhere.iterdir():
        file.rename(file.with_stem(f"1a2b3c4d-{file.stem}"))
    for rows in (None, 7):
        found = predict(run, elsewhere.parent, output, decide=False, batch_rows=rows)
        assert found.trained == number
    new = make_images(tmp_path / "new", NAMES, random_state=1)
    assert predict(run, new, output, decide=False).trained == 0
    assert "sha256" not in output.read_text()


def test_items_that_reuse_a_name_are_not_deferred(team: Team, tmp_path: Path) -> None:
    run, output = Run.load(team.run), tmp_path / "tasks.json"
    new = make_images(tmp_path / "april", NAMES[:2], random_state=1)
    shutil.copy(photos(team) / "x002.png", new)
    with pytest.raises(CredalError, match=r"2 of the deferred items in .*april have the name .*'x"):
        defer(run, new, output, threshold=0)
    assert not output.exists()
    decisions = tmp_path / "d.csv"
    predict(run, new, decisions, threshold=0)
    with pytest.raises(CredalError, match=r"rename them; or move their folder into that of the"):
        defer(run, decisions, output, images=new)
    found = defer(run, decisions, tmp_path / "d2.csv", to="csv")
    assert found.same_names == 3
    assert "3 of them are called like items of the run: if they are not those" in found.lines[-1]
    found = defer(run, new.parent, output, threshold=0)  # april/x000
    assert "sha256" not in output.read_text()
    assert (found.written, found.same_names) == (3, 0)

    run = Run.load(team.folder / "rows")
    table = pl.read_csv(team.features)
    table[:4].write_csv(decisions)
    found = defer(run, decisions, tmp_path / "t.csv", to="csv", threshold=0)
    assert (found.written, found.same_names) == (4, 0)
    assert "sha256" not in (tmp_path / "t.csv").read_text()
    table[:4].with_columns(size=pl.col("size") + 1).write_csv(decisions)
    with pytest.raises(CredalError, match=r"4 of the deferred .*, such as 'x00.*To fix: rename"):
        defer(run, decisions, tmp_path / "t.csv", to="csv", threshold=0)


def test_names_of_images_that_mean_the_same_file(team: Team, tmp_path: Path) -> None:
    run = shutil.copytree(team.run, tmp_path / "run") / "items.parquet"
    items = pl.DataFrame(
        {"item": ["/data/local-files/?d=p/a/1.png", "/u/3/1a2b3c4d-2.png"], "digest": ["1", "2"]}
    )
    others = {"split": pl.lit("train"), "group": pl.lit(None), "truth": pl.lit(None)}
    items.with_columns(pl.lit(1).alias("n:cat"), **others).write_parquet(run)
    names = ["1.png", "a/1.png", "b/1.png", "1", "2.png", "2.png", "3.png", "1.2"]
    found = other_content(Run.load(run.parent), names, ["9", "9", "9", "1", "9", "2", "9", "9"])
    assert found == ["1.png", "a/1.png", "2.png"]
    assert endings("a\\scan.001") == ["a/scan.001", "scan.001"]


def test_known_items_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    for images in (False, True):
        for kinds in (5, 10**12):
            table = pl.DataFrame(
                {
                    "item": rng.permutation(60).astype(str),
                    "digest": rng.integers(kinds, size=60).astype(str),
                    "split": rng.choice(["train", "test"], 60),
                }
            )
            other = rng.permutation(90).astype(str)[:50]
            digests = rng.choice(table["digest"], 50)
            known = KnownItems(table, ["train"], images=images)
            alike = not images and table["digest"].n_unique() < 60
            assert known.alike == alike
            rows = [row for row in table.iter_rows() if row[2] == "train"]
            wanted = [
                any(digest == row[1] and (name == row[0] or not alike) for row in rows)
                for name, digest in zip(other, digests, strict=True)
            ]
            assert known.among(other, digests) == wanted
