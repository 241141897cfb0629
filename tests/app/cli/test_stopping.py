"""Ctrl-C as a terminal sends it, to every process at once: one line, exit code 130, work kept."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tiny_runs import start, wait_until

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Start]:
    """The command as a user starts it; gone after the test, however that ends."""
    processes = []

    def begin(*words: str) -> subprocess.Popen[str]:
        processes.append(start([sys.executable, "-W", "error", "-m", "credalearn", *words]))
        return processes[-1]

    yield begin
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def stopped(process: subprocess.Popen[str]) -> str:
    """What it says on standard error when its user stops it."""
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)  # the pipes are closed when all processes have ended
    assert process.returncode == 130, said
    assert "Traceback" not in said
    return said


def test_a_stopped_demo_says_what_is_left(started: Start, tmp_path: Path) -> None:
    output = tmp_path / "demo"
    process = started("demo", "--epochs", "4000", "-o", str(output))
    wait_until(lambda: output.exists() or process.poll() is not None)
    left = "finished files stay in the output folder, and the same command makes them all anew"
    assert stopped(process) == f"credalearn: stopped; {left}\n"
