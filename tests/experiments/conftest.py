"""The command of the experiments, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from credalearn_experiments.cli import main
from tiny_data import write_tiny_data


class Answer(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def experiments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Answer]:
    """``credalearn-experiments …`` in an empty folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDALEARN_DATA", raising=False)

    def run(*words: object) -> Answer:
        monkeypatch.setattr("sys.argv", ["x", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Answer(int(end.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny version of every data set."""
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=12)
    return folder
