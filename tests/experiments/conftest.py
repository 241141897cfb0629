"""The command of the experiments, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from credalearn_experiments.cli import main


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
