"""Commands that are killed with kill -9, and given again."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from credalearn.app.run import Run

# Forked for each kill: importing torch takes longer than the work. An audit hook sees every call
# that is about to change a file below the folder; the N-th of them never happens.
SERVER = r"""
import encodings.utf_8_sig, gc, importlib, json, os, pkgutil, signal, sys, time
import PIL.ImageOps, filelock, jinja2, pydantic.fields, pydantic.type_adapter, rich.progress
import scipy.stats, sklearn.base, sklearn.discriminant_analysis, sklearn.tree, torch._dynamo
import typer._adapters
import credalearn, credalearn_experiments.cli, credalearn_experiments.executor

for module in pkgutil.walk_packages(credalearn.__path__, "credalearn."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
pages = importlib.import_module("credalearn.app.report.render").environment(html=True)
for name in pages.list_templates(["j2"]):
    pages.get_template(name)
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

def work(folder, command, fatal, number, user):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if changes(event, arguments, folder):
            seen += 1
            if seen == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
    os.chdir(folder)
    out = os.open("/dev/null", os.O_WRONLY)
    errors = os.open(f"{folder}.errors-{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1), os.dup2(errors, 2)
    if user:
        os.setgroups([]), os.setgid(user), os.setuid(user)
    sys.addaudithook(hook)
    sys.argv = ["credalearn", *command]
    code = 0
    try:
        if command[0] == "run":
            credalearn_experiments.cli.main()
        credalearn.app.cli.main()
    except SystemExit as end:
        code = end.code or 0
    report = os.fdopen(3, "w")
    report.write(str(seen)), report.close()
    os._exit(code)

for line in sys.stdin:
    children = []
    for number, (folder, command, fatal, seconds, user) in enumerate(json.loads(line)):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            os.dup2(write, 3)
            work(folder, command, fatal, number, user)
        os.close(write)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        children.append((child, read))
    answer = []
    for child, read in children:
        with os.fdopen(read) as pipe:
            seen = pipe.read()
        _, status = os.waitpid(child, 0)
        answer.append([os.waitstatus_to_exitcode(status), int(seen or 0)])
    print(json.dumps(answer), flush=True)
"""

TRAIN = ["train", "votes.csv", "--features", "items.csv", "-o", "run"]
COMMANDS = {  # each finds what those before it have left
    "train": TRAIN,
    "train again": [*TRAIN, "--random-state", "1"],
    "certify": ["certify", "run", "--max-error", "0.4", "--set-coverage", "0.8"],
    "certify again": [
        *("certify", "run", "--max-error", "0.45", "--set-coverage", "0.85", "--again")
    ],
    "predict": ["predict", "run", "new.csv", "-o", "decisions.csv"],
    "defer": ["defer", "run", "new.csv", "-o", "tasks.json", "--threshold", "0"],
    "recalibrate": ["recalibrate", "run", "later.csv", "--features", "new.csv", "-o", "run2"],
    "report": ["report", "run"],
    "export": ["export", "run", "--onnx", "model.onnx"],
    "experiments": [
        *("run", "lidc-votes-all-relax", "--method", "pocc", "--seeds", "1", "--epochs", "2"),
        *("--limit", "24", "--device", "cpu", "--store", "store"),
    ],
}
_BUSY = re.compile(
    "is busy|has been replaced|by another process|contains (a guarantee|certified sets|a run)"
)
_TIMES = re.compile(rb'\d{4}-\d\d-\d\d[T ][\d:.+Z]*|"seconds": [\d.]+|"content_sha256": "\w+"')


class Server:
    """Runs commands in processes of their own, to their end or to a kill."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe, text=True
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes the pipes, at which the server ends
            pass

    def run(
        self,
        folder: Path,
        command: list[str],
        fatal: int = 0,
        seconds: float | None = None,
        *,
        user: int = 0,
    ) -> tuple[int, int]:
        """The exit code and the number of changes; killed at a change, or after some seconds."""
        return self._ask([[str(folder), command, fatal, seconds, user]])[0]

    def run_together(self, folder: Path, *commands: list[str]) -> list[int]:
        """The exit codes of commands that are given at the same time."""
        jobs: list[list[object]] = [[str(folder), each, 0, None, 0] for each in commands]
        return [code for code, _ in self._ask(jobs)]

    def _ask(self, jobs: list[list[object]]) -> list[tuple[int, int]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(jobs), file=self._process.stdin, flush=True)
        return [(code, seen) for code, seen in json.loads(self._process.stdout.readline())]


def errors(folder: Path, number: int = 0) -> str:
    """What a command in the folder wrote to standard error."""
    return Path(f"{folder}.errors-{number}").read_text()


def run_pair(server: Server, folder: Path, first: str, second: str) -> list[int]:
    """Give two commands at the same time; their exit codes. The run is whole, nothing is left."""
    codes = server.run_together(folder, COMMANDS[first], COMMANDS[second])
    for number, code in enumerate(codes):
        said = errors(folder, number)
        assert code == 0 or (code == 2 and _BUSY.search(said)), f"{first}, {second}: {said}"
    assert 0 in codes, f"{first}, {second}"
    if any("pass --overwrite" in errors(folder, number) for number in (0, 1)):
        # Certified while it trained: the training is kept until the user has decided.
        code, _ = server.run(folder, [*COMMANDS["train again"], "--overwrite"])
        assert code == 0, errors(folder)
    Run.load(folder / "run").load_model()
    left = list(folder.rglob(".*"))
    assert not left, f"{first}, {second} left {left}"
    return codes


def make_states(server: Server, folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """The folder as it is before each command."""
    work = folder / "start"
    work.mkdir(parents=True)
    random = np.random.default_rng(0)
    for votes, items, letter in (("votes", "items", "i"), ("later", "new", "n")):
        said, seen = ["item,annotator,label"], ["item,x,z"]
        for row, value in enumerate(random.normal(size=200 if letter == "i" else 60)):
            seen.append(f"{letter}{row},{value:.4f},{random.normal():.4f}")
            for person in ("ann", "bo", "cy"):
                label = "cat" if value + 0.3 * random.normal() > 0 else "dog"
                said.append(f"{letter}{row},{person},{label}")
        (work / f"{votes}.csv").write_text("\n".join(said) + "\n")
        (work / f"{items}.csv").write_text("\n".join(seen) + "\n")
    states = {}
    for name in names:
        states[name] = shutil.copytree(work, folder / f"before {name}")
        code, _ = server.run(work, COMMANDS[name])
        assert code == 0, errors(work)
    return states


def kill_at_changes(
    server: Server, name: str, before: Path, folder: Path, *, step: int = 1, last: int = 0
) -> int:
    """Kill the command at every so many changes of a file and at the last ones; returns kills."""
    calls, _, expected = _undisturbed(server, name, before, folder)
    points = {*range(step // 2 + 1, calls + 1, step), *range(calls - last + 1, calls + 1)}
    for fatal in sorted(points):
        _kill(server, name, before, folder, expected, fatal=fatal)
    return len(points)


def kill_at_moments(server: Server, name: str, before: Path, folder: Path, *, times: int) -> int:
    """Kill the command at random moments; the number of kills."""
    _, seconds, expected = _undisturbed(server, name, before, folder)
    for moment in np.random.default_rng(0).uniform(0, seconds, size=times):
        _kill(server, name, before, folder, expected, seconds=float(moment))
    return times


def _undisturbed(
    server: Server, name: str, before: Path, folder: Path
) -> tuple[int, float, dict[str, bytes]]:
    shutil.copytree(before, folder)
    began = time.monotonic()
    code, calls = server.run(folder, COMMANDS[name])
    assert code == 0, errors(folder)
    assert calls >= 2
    return calls, time.monotonic() - began, contents(folder)


def _kill(
    server: Server,
    name: str,
    before: Path,
    folder: Path,
    expected: dict[str, bytes],
    *,
    fatal: int = 0,
    seconds: float | None = None,
) -> None:
    shutil.rmtree(folder)
    shutil.copytree(before, folder)
    code, _ = server.run(folder, COMMANDS[name], fatal, seconds)
    assert code == -9 or seconds is not None
    where = f"{name}, killed at change {fatal} or after {seconds} seconds"
    if (before / "run").exists():
        Run.load(folder / "run")  # the old one or the new one, and whole
    left = contents(folder)
    for path, content in contents(before).items():
        assert left.get(path) in (content, expected[path]), f"{where}: {path}"
    code, _ = server.run(folder, COMMANDS[name])
    finished = code == 2 and name == "recalibrate" and (folder / "run2" / "run.json").exists()
    assert code == 0 or finished, f"{where}: {errors(folder)}"
    assert contents(folder) == expected, where


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, without the times in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "log.jsonl":  # a resumed epoch may be logged twice
            content = path.read_bytes()
            if path.suffix in (".json", ".html", ".md"):
                content = _TIMES.sub(b"", content)
            found[os.fspath(path.relative_to(folder))] = content
    return found
