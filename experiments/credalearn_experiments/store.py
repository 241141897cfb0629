"""A store of runs: one folder per run; a run is done when its record is there.

``STORE/SETTING/METHOD/seed-S/`` contains ``config.json`` (what was asked, versions), ``log.jsonl``
(one line per epoch), ``predictions.safetensors``, ``model.safetensors`` where networks were
trained, ``resume.safetensors`` while unfinished, and ``metrics.json``, the record, written last.
"""

import json
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from credalearn import __version__
from credalearn._checks import check_choice
from credalearn._files import whole_file
from credalearn._tensors import damaged, read_tensors, write_tensors
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions
from credalearn.train import Listener
from credalearn_experiments.evaluation import Measurements
from credalearn_experiments.records import Record, read_record, write_record
from credalearn_experiments.runs import Run

State = Literal["done", "started", "new", "failed"]
PREDICTIONS, MODEL = "predictions.safetensors", "model.safetensors"
RESUME, LOG = "resume.safetensors", "log.jsonl"
# All files of a run but its lock; config.json first, so that a killed removal leaves a new run.
_FILES = ("config.json", "metrics.json", "failure.txt", RESUME, LOG, PREDICTIONS, MODEL)


@dataclass(frozen=True, slots=True)
class Store:
    """Runs kept in a folder; processes that share it claim a run by a lock that ends with them."""

    folder: Path

    def path(self, run: Run) -> Path:
        """The folder of a run."""
        return self.folder / run.name

    def checkpoint(self, run: Run) -> Path:
        """File of an unfinished training's state."""
        return self.path(run) / RESUME

    def log(self, run: Run) -> Path:
        """File with one line per epoch."""
        return self.path(run) / LOG

    def state(self, run: Run) -> State:
        """How far a run is; a ``CredalError`` if its folder has another configuration of it."""
        folder = self.path(run)
        asked = _read_asked(folder / "config.json")
        if asked is None:
            return "new"
        trained = self.checkpoint(run).exists()  # and removed when the record is written
        done = (folder / "metrics.json").exists() and not trained
        differ = _differences(asked, run.asked)
        if differ and (done or trained):
            shown = ", ".join(f"{name} ({old} there, {new} here)" for name, old, new in differ)
            edited = any(name.endswith("_plugin") for name, _, _ in differ)
            raise CredalError(
                f"{folder} contains this run with another configuration: {shown}."
                f"{' The file of --plugin has changed.' if edited else ''} To fix: pass the same "
                "options as before, pass another --store, or delete that folder."
            )
        if differ:
            return "new"
        failed = (folder / "failure.txt").exists()
        return "done" if done else "failed" if failed else "started"

    def claim(self, run: Run) -> FileLock | None:
        """The lock of a run, held; None if another process holds it."""
        self.path(run).mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path(run) / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock

    def start(self, run: Run) -> None:
        """Write down what was asked; remove what a failed or different attempt left."""
        if self.state(run) != "started":
            self._remove(run, *_FILES)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        content = {"asked": run.asked, "versions": versions(), "started": started}
        self._write(run, "config.json", json.dumps(content, indent=2))

    def _write(self, run: Run, name: str, text: str) -> None:
        with whole_file(self.path(run) / name, other=None) as partial:
            partial.write_text(f"{text}\n", encoding="utf-8")

    def restart(self, run: Run) -> None:
        """Remove the state and the log of an unfinished training."""
        self._remove(run, RESUME, LOG)

    def _remove(self, run: Run, *names: str) -> None:
        for name in names:
            (self.path(run) / name).unlink(missing_ok=True)

    def fail(self, run: Run, reason: str) -> None:
        """Write down why a run cannot be done."""
        self._write(run, "failure.txt", reason)

    def failure(self, run: Run) -> str:
        """Why a run cannot be done."""
        return (self.path(run) / "failure.txt").read_text(encoding="utf-8").strip()

    def finish(
        self,
        run: Run,
        found: Measurements,
        *,
        weights: Mapping[str, Tensor] | None,
        seconds: float,
        device: str,
    ) -> None:
        """Keep what a run found, the record last; weights of None leave their file as it is."""
        folder = self.path(run)
        if weights is not None:
            write_tensors(folder / MODEL, weights, other=None)
        write_tensors(folder / PREDICTIONS, found.predictions, other=None)
        record = Record(
            setting=run.setting.name,
            method=run.label,
            seed=run.seed,
            metrics=found.metrics,
            curves=found.curves,
            config=run.asked,
            versions={**versions(), "device": device},
            seconds=seconds,
        )
        write_record(folder / "metrics.json", record)
        self._remove(run, RESUME)

    def record(self, run: Run) -> Record:
        """The record of a finished run."""
        return read_record(self.path(run) / "metrics.json")

    def tensors(self, run: Run, name: str) -> dict[str, Tensor]:
        """The tensors in a file of a finished run."""
        folder = self.path(run)
        return read_tensors(folder / name, fix=f"delete {folder} and run it again")[0]

    def done(self, setting: str) -> int:
        """Number of finished runs of a setting."""
        return len(list((self.folder / setting).glob("*/seed-*/metrics.json")))


def read_predictions(
    folder: str | Path, setting: str, method: str, seed: int, *, part: str = "test"
) -> CredalPredictions:
    """Predictions of a finished run, for a part: ``"test"``, ``"voted"`` or a foreign set."""
    path = Path(folder) / setting / method / f"seed-{seed}" / PREDICTIONS
    again = "run it again with `credalearn-experiments run`"
    tensors, _ = read_tensors(path, fix=again)
    parts = dict.fromkeys(name.rpartition(".")[0] for name in tensors if "." in name)
    check_choice(part, parts, name=f"the part of {path}")
    start = f"{part}."
    fields = {x.removeprefix(start): each for x, each in tensors.items() if x.startswith(start)}
    try:
        return CredalPredictions(**fields)
    except (TypeError, ValueError) as error:
        raise damaged(path, str(error), fix=again) from error


@cache
def versions() -> dict[str, str]:
    """Versions that a run is made with, and the commit of the source where it is known."""
    python = platform.python_version()
    found = {"credalearn": __version__, "torch": torch.__version__, "python": python}
    try:
        done = subprocess.run(  # fails where this file is installed, and not in a checkout
            ["git", "rev-parse", "HEAD", f"HEAD:./{Path(__file__).name}"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return found
    return found | {"commit": done.stdout[:12]}


def _read_asked(path: Path) -> dict[str, Any] | None:
    """What was asked, from a ``config.json``; None if it is missing or damaged."""
    try:
        asked = json.loads(path.read_text(encoding="utf-8"))["asked"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return asked if isinstance(asked, dict) else None


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Name and both values of everything that was asked differently."""
    old, new = ({**each, **each.get("recipe", {})} for each in (there, here))
    old, new = (json.loads(json.dumps({**each, "recipe": None})) for each in (old, new))
    names = sorted(old.keys() | new.keys())
    return [(x, old.get(x), new.get(x)) for x in names if old.get(x) != new.get(x)]


def read_log(path: Path) -> list[tuple[int, float]]:
    """Number, from 1, and seconds spent by its end, of every epoch that a log has complete."""
    lines = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:  # a killed process may leave half a line
            content = json.loads(line)
            lines.append((int(content["epoch"]), float(content["seconds"])))
        except (ValueError, KeyError, TypeError):
            continue
    return lines


def seconds_spent(path: Path) -> float:
    """Seconds of training in a log, over all processes that worked on the run."""
    lines = read_log(path)
    return lines[-1][1] if lines else 0.0


class EpochLog:
    """Appends one line per epoch to the log of one of ``together`` models, and passes all on."""

    shown: Listener | None = None

    def __init__(self, path: Path, together: int = 1) -> None:
        self.path, self.together = path, together
        self.started, self.before = time.monotonic(), seconds_spent(path)

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Append a line; a model's share of the time is that of its number."""
        seconds = round(self.before + (time.monotonic() - self.started) / self.together, 3)
        line = json.dumps({"epoch": number, "of": of, "loss": loss, "seconds": seconds})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}")  # the last line may be half of one
        if self.shown is not None:
            self.shown.epoch(number, of=of, loss=loss, items=items * self.together)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """The log has these epochs already."""
        if self.shown is not None:
            self.shown.resumed(done, of=of, source=source)
