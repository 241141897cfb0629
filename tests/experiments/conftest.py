"""The command of the experiments, in this process."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from credalearn_experiments.cli import main
from team_files import Capture, Done, in_process
from tiny_data import write_tiny_data


@pytest.fixture
def experiments(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> Callable[..., Done]:
    """``credalearn-experiments …`` in an empty folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDALEARN_DATA", raising=False)
    capsys.readouterr()
    return partial(in_process, capsys, program=main)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny version of every data set."""
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=12)
    return folder
