"""Bad input of the train command: one message, exit code 2 and nothing written."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from credalearn.app.readers import read_annotations
from team_files import (
    Team,
    as_bounds,
    in_process,
    make_images,
    make_team,
    snapshot,
    train_arguments,
)

Capture = pytest.CaptureFixture[str]


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
    more: tuple[str, ...] = ()


def as_shares(team: Team, change: str) -> None:
    """Votes as probabilities, with the first row changed."""
    counts = read_annotations(team.votes).counts() / 5
    names = [f"x{number:03d}" for number in range(len(counts))]
    columns = {name: counts[:, k] for k, name in enumerate(("cat", "dog", "owl"))}
    pl.DataFrame({"item": names, **columns}).write_csv(team.votes)
    lines = team.votes.read_text().splitlines()
    team.votes.write_text("\n".join([lines[0], f"x000,{change}", *lines[2:], ""]))


def one_class(team: Team) -> None:
    team.votes.write_text(team.votes.read_text().replace("dog", "cat").replace("owl", "cat"))


def owls_tested_only(team: Team) -> None:
    votes = pl.read_csv(team.votes)
    owls = votes.filter(pl.col("label") == "owl")["item"].unique().to_list()
    features = pl.read_csv(team.features)
    test = pl.when(pl.col("item").is_in(owls)).then(pl.lit("test")).otherwise(pl.col("part"))
    features.with_columns(part=test).write_csv(team.features)


def colors(team: Team) -> None:
    pl.read_csv(team.features).with_columns(color=pl.lit("red")).write_csv(team.features)


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
        colors,
        ("features.csv, line 2", "must be numbers; column 'color' holds 'red' for item 'x000'",
         "--drop color"),
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
