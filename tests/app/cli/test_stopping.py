"""Ctrl-C as a terminal sends it, to every process at once: one line, exit code 130, work kept."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from team_files import in_process
from tiny_bench import holders, start, wait_until

SETTING = "lidc-votes-3-relax"
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


def bench_run(store: Path, *, epochs: int = 40, workers: int = 1) -> list[str]:
    """Two trainings on data that are in the package."""
    narrowed = ("--method", "softmax", "--seeds", "2", "--epochs", str(epochs), "--device", "cpu")
    where = ("--store", str(store), "--workers", str(workers))
    return ["bench", "run", SETTING, *narrowed, *where]


def stopped(process: subprocess.Popen[str]) -> str:
    """What it says on standard error when its user stops it."""
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)  # the pipes are closed when all processes have ended
    assert process.returncode == 130, said
    assert "Traceback" not in said
    return said


def test_a_stopped_bench_says_that_it_goes_on_and_does(
    started: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = bench_run(tmp_path)
    process = started(*words)
    first = tmp_path / SETTING / "softmax" / "seed-1"
    wait_until(lambda: (first / "resume.safetensors").exists() or process.poll() is not None)
    *progress, last = stopped(process).splitlines()
    left = "what is done is kept, and the same command goes on where it stopped"
    assert last == f"credalearn: stopped; {left}"
    assert all(line.startswith(SETTING) for line in progress), progress
    done = in_process(capsys, *words)
    assert done.code == 0, done.err
    assert "2 of 2 runs are done" in done.out
    logged = [json.loads(line)["epoch"] for line in (first / "log.jsonl").read_text().splitlines()]
    assert logged == sorted(set(logged))  # none was trained twice
    assert logged[-1] == 40


def test_workers_leave_ctrl_c_to_the_process_that_started_them(
    started: Start, tmp_path: Path
) -> None:
    process = started(*bench_run(tmp_path, epochs=4000, workers=2))
    locks = [
        tmp_path / SETTING / "softmax" / f"seed-{random_state}" / ".lock" for random_state in (1, 2)
    ]
    wait_until(lambda: all(map(holders, locks)) or process.poll() is not None)
    workers = {pid for lock in locks for pid in holders(lock)}
    for pid in workers:
        os.kill(pid, signal.SIGINT)
    wait_until(lambda: (locks[0].parent / "resume.safetensors").exists())
    assert {pid for lock in locks for pid in holders(lock)} == workers
    assert "credalearn: stopped; what is done is kept" in stopped(process)


def test_a_stopped_demo_says_what_is_left(started: Start, tmp_path: Path) -> None:
    output = tmp_path / "demo"
    process = started("demo", "--epochs", "4000", "-o", str(output))
    wait_until(lambda: output.exists() or process.poll() is not None)
    left = "finished files stay in the output folder, and the same command makes them all anew"
    assert stopped(process) == f"credalearn: stopped; {left}\n"
