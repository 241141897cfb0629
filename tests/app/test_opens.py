"""Every input file is opened once per command, and every file of a run is read once."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from opens import count_opens
from team_files import Capture, Team, in_process, make_images, make_team, train_arguments

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
TABLES = ("run.json", "annotations.parquet", "items.parquet", "predictions.parquet")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    team = make_team(tmp_path_factory.mktemp("team"), num_items=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["credalearn", *train_arguments(team)])
        from credalearn.app.cli import main

        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code
    return team


def opens(capsys: Capture, team: Team, *arguments: object) -> Counter[str]:
    """How often a command opens each file of the team and of its run."""
    folders = [path for path in (team.folder, team.run, team.run / "model") if path.is_dir()]
    with count_opens(*folders) as opened:
        done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    return opened


def test_the_counter_sees_every_open(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    with count_opens(tmp_path) as opened:
        for _ in range(50):
            path.read_bytes()
        (tmp_path / "b.txt").write_text("new")
    assert opened == {"a.txt": 50, "b.txt": 1}


def test_inspect_opens_the_export_once(trained: Team, capsys: Capture) -> None:
    assert opens(capsys, trained, "inspect", trained.votes)["votes.csv"] == 1


def test_train_opens_each_input_once(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    opened = opens(capsys, team, *train_arguments(team, "--group", "patient"))
    assert (opened["votes.csv"], opened["features.csv"]) == (1, 1)


def test_train_opens_each_image_once(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    folder = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    arguments = train_arguments(team, "--images", folder, "--image-size", "8", "--epochs", "1")
    with count_opens(folder) as opened:
        done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    assert set(opened.values()) == {1}
    assert len(opened) == 60


@pytest.mark.parametrize(
    ("command", "more", "model"),
    [
        ("certify", ("--max-error", "0.5", "--set-coverage", "0.9"), 0),
        ("predict", ("{features}", "-o", "{folder}/decisions.csv", "--threshold", "0.5"), 1),
        ("report", (), 0),
    ],
)
def test_commands_read_each_table_once_and_the_model_where_it_is_needed(
    trained: Team, capsys: Capture, command: str, more: tuple[str, ...], model: int
) -> None:
    more = tuple(each.format(features=trained.features, folder=trained.folder) for each in more)
    opened = opens(capsys, trained, command, trained.run, *more)
    assert [opened[name] for name in TABLES] == [1, 1, 1, 1]
    assert (opened["model.safetensors"], opened["features.csv"]) == (model, model)
