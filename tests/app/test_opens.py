"""Every input file is opened once per command, and every file of a run is read once."""

import sys
from pathlib import Path

import polars as pl
import pytest

from opens import count_opens
from team_files import Team, in_process, make_team, train_arguments

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
Capture = pytest.CaptureFixture[str]
TABLES = ("annotations.parquet", "items.parquet", "predictions.parquet")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"), num_items=300)


def test_the_counter_sees_every_open(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    with count_opens(tmp_path) as opened:
        for _ in range(50):
            path.read_bytes()
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "b.parquet")
    assert opened["a.txt"] == 50
    assert opened["b.parquet"] >= 1


def test_train_opens_each_input_once(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    with count_opens(tmp_path) as opened:
        done = in_process(capsys, *train_arguments(team, "--group", "patient"))
    assert done.code == 0, done.err
    assert opened["votes.csv"] == 1
    assert opened["features.csv"] == 1
