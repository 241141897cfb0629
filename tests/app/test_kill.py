"""kill -9 at every call that changes a file: the same command then gives the same result."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from credalearn.app.run import Run

# Forked for each kill: importing torch takes longer than the work. An audit hook sees every call
# that is about to change a file below the folder; the N-th of them never happens.
SERVER = r"""
import gc, importlib, json, os, pkgutil, signal, sys
import PIL.ImageOps, filelock, jinja2, pydantic.type_adapter, rich.progress, scipy.stats
import sklearn.base, torch._dynamo, typer
import credalearn

for module in pkgutil.walk_packages(credalearn.__path__, "credalearn."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
gc.freeze()

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}

def changes(event, arguments, folder):
    if event == "open":
        path, mode, flags = arguments
        write = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return bool(write) and not isinstance(path, int) and inside(path, folder)
    return event in CHANGES and inside(arguments[0], folder)

def inside(path, folder):
    path = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return os.path.abspath(path).startswith(folder)

def work(folder, command, fatal):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if changes(event, arguments, folder):
            seen += 1
            if seen == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
    os.chdir(folder)
    out = os.open("/dev/null", os.O_WRONLY)
    errors = os.open(os.path.dirname(folder) + "/errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1), os.dup2(errors, 2)
    sys.addaudithook(hook)
    sys.argv = ["credalearn", *command]
    code = 0
    try:
        credalearn.app.cli.main()
    except SystemExit as end:
        code = end.code or 0
    report = os.fdopen(3, "w")
    report.write(str(seen)), report.close()
    os._exit(code)

for line in sys.stdin:
    folder, command, fatal = json.loads(line)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(write, 3)
        work(folder, command, fatal)
    os.close(write)
    with os.fdopen(read) as pipe:
        seen = pipe.read()
    _, status = os.waitpid(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), seen]), flush=True)
"""

Work = Callable[..., tuple[int, int]]
TRAIN = ["train", "votes.csv", "--features", "items.csv", "--epochs", "2", "-o", "run"]
COMMANDS = {
    "train": TRAIN,
    "train again": [*TRAIN, "--random-state", "1"],
    "certify": ["certify", "run", "--max-error", "0.4", "--set-coverage", "0.8"],
    "predict": ["predict", "run", "items.csv", "-o", "decisions.csv"],
    "report": ["report", "run"],
}


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def run(folder: Path, command: list[str], fatal: int = 0) -> tuple[int, int]:
            print(json.dumps([str(folder), command, fatal]), file=asked, flush=True)
            code, seen = json.loads(answers.readline())
            return code, int(seen or 0)

        yield run
        asked.close()


@pytest.fixture(scope="module")
def before(work: Work, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder as it is before each command."""
    folder = tmp_path_factory.mktemp("kill") / "start"
    folder.mkdir()
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    votes, items = ["item,annotator,label"], ["item,x,z"]
    for row, value in enumerate(x):
        items.append(f"i{row},{value:.4f},{random.normal():.4f}")
        for person in ("ann", "bo", "cy"):
            label = "cat" if value + 0.3 * random.normal() > 0 else "dog"
            votes.append(f"i{row},{person},{label}")
    (folder / "votes.csv").write_text("\n".join(votes) + "\n")
    (folder / "items.csv").write_text("\n".join(items) + "\n")
    states = {}
    for name, command in COMMANDS.items():
        states[name] = folder.parent / f"before-{name}"
        shutil.copytree(folder, states[name])
        code, _ = work(folder, command)
        assert code == 0, (folder.parent / "errors").read_text()
    return states


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_command_gives_the_same_result_when_repeated(
    name: str, work: Work, before: dict[str, Path], tmp_path: Path
) -> None:
    command = COMMANDS[name]
    folder = tmp_path / "work"
    shutil.copytree(before[name], folder)
    code, calls = work(folder, command)
    assert code == 0
    assert calls >= 2
    expected = contents(folder)
    for fatal in range(1, calls + 1):
        shutil.rmtree(folder)
        shutil.copytree(before[name], folder)
        code, _ = work(folder, command, fatal)
        assert code == -signal.SIGKILL
        if name != "train":
            Run.load(folder / "run")  # the old one or the new one, and whole
        code, _ = work(folder, command)
        assert code == 0, f"after a kill at call {fatal}: {(tmp_path / 'errors').read_text()}"
        assert contents(folder) == expected, f"after a kill at call {fatal}"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, without the times in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix in (".json", ".html", ".md"):
                content = re.sub(rb'\d{4}-\d\d-\d\d[T ][\d:.+Z]*|"seconds": [\d.]+', b"", content)
            if path.name == "run.json":
                content = re.sub(rb'"content_sha256": "\w+"', b"", content)
            found[os.fspath(path.relative_to(folder))] = content
    return found
