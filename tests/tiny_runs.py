"""Runs small enough for tests: lung nodules and an MLP, whose epochs take milliseconds."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from credalearn_experiments.runner import RunContext
from credalearn_experiments.runs import Run, plan
from credalearn_experiments.settings.catalog import ALL_SETTINGS

SETTING = "lidc-votes-all-relax"
LIMIT = 24


def tiny_plan(
    *methods: str, epochs: int = 2, seeds: tuple[int, ...] = (1,), name: str = SETTING
) -> list[Run]:
    setting = ALL_SETTINGS[name].narrowed(epochs=epochs, seeds=seeds, methods=methods)
    return plan([setting], limit=LIMIT)


def tiny_context(store: Path, *data: Path) -> RunContext:
    return RunContext(store=store, data=data, device="cpu")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "credalearn_experiments", *map(str, words)]


def run_command(store: Path, *words: object, epochs: int = 2) -> list[str]:
    """The command that does the same as the runs of :func:`tiny_plan`."""
    options = ("--epochs", epochs, "--limit", LIMIT, "--device", "cpu", "--store", store)
    return command("run", SETTING, *options, *words)


def start(words: list[str], **more: str) -> subprocess.Popen[str]:
    """A process in a session of its own, whose messages can be read when it has ended."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    return subprocess.Popen(
        words, env=environment, text=True, stdout=pipe, stderr=pipe, start_new_session=True
    )


def wait_until(condition: Callable[[], object], *, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def holders(path: Path) -> list[int]:
    """Processes that have this file open, from the kernel's list."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or is not ours
            for link in (folder / "fd").iterdir():
                with suppress(FileNotFoundError):  # closed by now
                    if link.readlink() == path.resolve():
                        found.append(int(folder.name))
    return found
