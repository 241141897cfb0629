"""Items are told apart by what they hold, not by their names: from training to deferring."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credalearn.app.cli import app
from credalearn.app.run import Run
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
