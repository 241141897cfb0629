"""The train command: what it reads, what it says of the data, and what it asks about."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from credalearn.app.annotations.asked import Asked
from credalearn.app.cli.reading import READING

from credalearn.app.run import Run
from credalearn.errors import CredalError
from team_files import as_bounds, in_process, make_images, make_team, snapshot, train_arguments

Capture = pytest.CaptureFixture[str]


def test_row_numbers_by_pandas_are_no_feature(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    pl.read_csv(team.features).with_row_index("").write_csv(team.features)
    done = in_process(capsys, *train_arguments(team))
    assert done.code == 0, done.err
    assert Run.load(team.run).facts.inputs.features == ["size", "weight"]
    assert f"left out: the column without a name of {team.features}, as pandas" in done.out


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

    for module in ("credalearn.app.annotations", "credalearn.app.joined.rounds"):
        monkeypatch.setattr(f"{module}.read_annotations", read)
    team = make_team(tmp_path)
    given = train_arguments(team) if command == "train" else [command, team.votes]
    for name, value in asked.items():
        for each in value if isinstance(value, list) else [value]:
            given += [f"--{name}", each]
    assert "is not read here" in in_process(capsys, *given).err
    assert seen == [asked]


def test_every_field_of_a_reader_has_its_option() -> None:
    assert set(READING) == {field.name for field in fields(Asked)}


def test_images_stay_with_their_patient(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    images = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    beside = pl.read_csv(team.features).select("item", "patient", "part")
    pl.read_csv(team.votes).join(beside, on="item").write_csv(team.votes)
    shown = ("--images", images, "--image-size", "8", "--epochs", "1", "--group", "patient")
    for more in ((), ("--table", team.features)):
        done = in_process(capsys, *train_arguments(team, *shown, *more))
        assert done.code == 0, done.err
        splits = Run.load(team.run).items.group_by("group").agg(pl.col("split").n_unique())
        assert splits["split"].to_list() == [1] * 12
    done = in_process(capsys, "predict", team.run, images, "-o", team.features, "--no-decision")
    assert f"{team.features} is what {team.run} was trained on" in done.err
    done = in_process(capsys, *train_arguments(team, *shown, "--split", "part"))
    assert done.code == 2
    assert f"{team.votes}, line 17: 'p0' is in two splits: 'train' (item 'x000')" in done.err


@pytest.mark.parametrize(
    ("more", "separator", "encoding", "name"),
    [
        ((), ",", "utf-8", "patient"),
        (("--delimiter", ":"), ":", "utf-8", "patient"),
        (("--encoding", "cp1250"), ",", "cp1250", "číslo"),
    ],
)
def test_columns_of_the_export_are_read_as_the_export_is(
    tmp_path: Path,
    capsys: Capture,
    more: tuple[str, ...],
    separator: str,
    encoding: str,
    name: str,
) -> None:
    team = make_team(tmp_path)
    images = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    beside = pl.read_csv(team.features).select("item", "patient")
    columns = {
        "HITId": "hit-" + pl.col("label"),  # called like an item's name, and not the item
        "WorkerId": pl.col("annotator"),
        "Input.image": "photos/" + pl.col("item") + ".png",
        f"Input.{name}": pl.col("patient"),
        "Answer.label": pl.col("label"),
    }
    frame = pl.read_csv(team.votes).join(beside, on="item")
    text = frame.select(each.alias(key) for key, each in columns.items()).write_csv(
        separator=separator
    )
    team.votes.write_text(text, encoding=encoding)
    shown: list[str | Path] = ["--images", images, "--image-size", "8", "--epochs", "1", *more]
    group = ("--group", f"Input.{name}")
    for table in ((), ("--table", team.folder / "images" / ".." / "votes.csv")):
        done = in_process(capsys, *train_arguments(team, *shown, *group, *table))
        assert done.code == 0, done.err
        items = Run.load(team.run).items
        assert items.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
        assert items["group"].n_unique() == 12
    text = text.replace(f"photos/x001.png{separator}p0", f"photos/x001.png{separator}p1", 1)
    team.votes.write_text(text, encoding=encoding)
    done = in_process(capsys, *train_arguments(team, *shown, *group))
    told = f"{team.votes}, line 8: item 'photos/x001.png' has 'Input.{name}' 'p0', and 'p1' in line"
    assert f"{told} 7." in done.err


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
    assert Run.load(team.run).facts.label_diameter > 0.6
    warned = "the labels leave much open" in done.out
    assert warned == method.startswith("pocc")  # the others learn the shares of the votes


@pytest.mark.parametrize(
    ("bounds", "labels", "fix"),
    [
        (True, "relax-ties", "of 1): little can be learned from them. To fix: state larger bounds"),
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
    for random_state in range(9):  # the one vote must fall into training
        done = in_process(
            capsys, *train_arguments(team, *classes, "--random-state", str(random_state))
        )
        if done.code == 0:
            break
    assert done.code == 0, done.err
    assert Run.load(team.run).classes == ("cat", "zebra", "horse", "hrose")


def test_weights_are_read(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    votes = pl.read_csv(team.votes)
    trust = pl.when(pl.col("annotator") == "ann").then(0.25).otherwise(1.0).alias("trust")
    votes.with_columns(trust).write_csv(team.votes)
    done = in_process(capsys, *train_arguments(team, "--weight", "trust"))
    assert done.code == 0, done.err
    counts = Run.load(team.run).items.select("^n:.*$").to_numpy()
    np.testing.assert_allclose(counts.sum(1), 4.25)
    done = in_process(capsys, *train_arguments(team, "--weight", "trust", "--labels", "idm"))
    assert done.code == 2
    assert "'idm' counts votes" in done.err


def test_a_certified_run_is_not_trained_over(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    assert in_process(capsys, *train_arguments(team)).code == 0
    again = in_process(capsys, *train_arguments(team, "--random-state", "1"))
    assert again.code == 0, again.err
    assert "holds a finished run: it stays until this one is done" in again.out
    assert in_process(capsys, "certify", team.run, "--capacity", "0.5").code == 0
    before = snapshot(team.run)
    refused = in_process(capsys, *train_arguments(team))
    assert (refused.code, refused.out) == (2, "")  # before the export is read
    said = "run holds a rule, which a new run would replace. To fix: name another folder"
    assert said in refused.err
    assert snapshot(team.run) == before
    done = in_process(capsys, *train_arguments(team, "--overwrite"))
    assert done.code == 0, done.err
    assert not (team.run / "guarantee.json").exists()
