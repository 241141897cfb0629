"""A store of runs: a folder a run, in which a file written last says that it is done.

``STORE/SETTING/METHOD/seed-S/`` holds ``config.json`` (what was asked, versions, commit),
``log.jsonl`` (a line an epoch), ``predictions.safetensors``, ``model.safetensors`` where networks
were trained, ``resume.safetensors`` while unfinished, and ``metrics.json``, the record, at the end.
"""

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from credalearn import __version__
from credalearn.bench.records import Record, read_record, write_record
from credalearn.bench.runs import Run
from credalearn.errors import CredalError
from credalearn.files import whole_file

State = Literal["done", "started", "new", "failed", "damaged"]


@dataclass(frozen=True, slots=True)
class Store:
    """Runs kept in a folder.

    Several processes may use one store at once, also on several machines that share the folder: a
    run is claimed by a lock that ends with the process that holds it.

    Args:
        folder: Where; made when the first run is.

    Example:
        >>> import tempfile
        >>> from credalearn.bench.settings import SETTINGS
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> store.state(Run(SETTINGS["cifar10h"], "pocc", 1))
        'new'
    """

    folder: Path

    def path(self, run: Run) -> Path:
        """The folder of a run."""
        return self.folder / run.name

    def state(self, run: Run) -> State:
        """How far a run is, by the files that are there; none is read whole.

        Raises:
            CredalError: If the store holds this run as it was asked for otherwise.
        """
        folder = self.path(run)
        if not (folder / "config.json").exists():
            return "new"
        try:
            there = json.loads((folder / "config.json").read_text(encoding="utf-8"))["asked"]
        except (ValueError, KeyError, TypeError):
            return "damaged"
        self._check_same(run, there)
        if (folder / "metrics.json").exists():
            return "done" if self.damage(run) is None else "damaged"
        return "failed" if (folder / "failure.txt").exists() else "started"

    def damage(self, run: Run, *, thorough: bool = False) -> str | None:
        """What is wrong with a finished run, in words; None if nothing is.

        Args:
            run: One whose record is there.
            thorough: Read all bytes of its files, not just their heads and sizes.
        """
        folder = self.path(run)
        try:
            record = read_record(folder / "metrics.json")
        except (CredalError, OSError) as error:
            return f"{folder / 'metrics.json'} is damaged: {error}"
        config = record.config or {}
        for name, known in config.get("files", {}).items():
            path = folder / name
            if not path.exists():
                return f"{path} is missing"
            if path.stat().st_size != known["bytes"]:
                return f"{path} has {path.stat().st_size} bytes instead of {known['bytes']}"
            if thorough and _sha256(path) != known["sha256"]:
                return f"{path} is not what was written"
        return None

    def claim(self, run: Run) -> FileLock | None:
        """The lock of a run, held; None if another process has it. Ends with the process."""
        self.path(run).mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path(run) / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock

    def start(self, run: Run) -> None:
        """Say what was asked for; what an earlier, damaged or failed try left is removed."""
        folder = self.path(run)
        state = self.state(run)
        if state in ("damaged", "failed"):
            for name in ("config.json", "metrics.json", "failure.txt", "resume.safetensors"):
                (folder / name).unlink(missing_ok=True)
        if state != "started":
            (folder / "log.jsonl").unlink(missing_ok=True)
        content = {
            "asked": run.asked,
            "versions": versions(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with whole_file(folder / "config.json") as partial:
            partial.write_text(f"{json.dumps(content, indent=2)}\n", encoding="utf-8")

    def finish(
        self,
        run: Run,
        *,
        metrics: Mapping[str, float],
        curves: Mapping[str, tuple[float, ...]],
        predictions: Mapping[str, Tensor],
        weights: Mapping[str, Tensor],
        seconds: float,
        device: str,
    ) -> None:
        """Keep what a run found; the record last, then the unfinished state goes."""
        folder = self.path(run)
        files: dict[str, dict[str, object]] = {}
        kept = {"predictions.safetensors": predictions, "model.safetensors": weights}
        for name, tensors in kept.items():
            if not tensors:
                continue
            copies = {key: x.detach().cpu().clone().contiguous() for key, x in tensors.items()}
            with whole_file(folder / name) as partial:
                save_file(copies, partial)
            files[name] = {
                "bytes": (folder / name).stat().st_size,
                "sha256": _sha256(folder / name),
            }
        record = Record(
            setting=run.setting.name,
            method=run.method,
            seed=run.seed,
            metrics=metrics,
            curves=curves,
            config={**run.asked, "files": files},
            versions={**versions(), "device": device},
            seconds=seconds,
        )
        write_record(folder / "metrics.json", record)
        (folder / "resume.safetensors").unlink(missing_ok=True)

    def fail(self, run: Run, reason: str) -> None:
        """Say why a run stopped for good."""
        with whole_file(self.path(run) / "failure.txt") as partial:
            partial.write_text(f"{reason}\n", encoding="utf-8")

    def tensors(self, run: Run, name: str) -> dict[str, Tensor]:
        """The tensors of a finished run's file.

        Raises:
            CredalError: If the file is damaged or missing.
        """
        path = self.path(run) / name
        try:
            with safe_open(path, framework="pt") as file:
                return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise CredalError(
                f"{path} cannot be read ({error}). To fix: delete {path.parent}; it is done again."
            ) from error

    def epochs_done(self, run: Run) -> int:
        """Epochs that the log of a run knows of."""
        path = self.path(run) / "log.jsonl"
        done = 0
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    done = max(done, int(json.loads(line)["epoch"]))
                except (ValueError, KeyError, TypeError):
                    continue  # the last line of a killed process
        return done

    def _check_same(self, run: Run, there: dict[str, Any]) -> None:
        """Refuse to mix runs that were asked for in different ways."""
        here = json.loads(json.dumps(run.asked))
        differ = {
            name: (there.get(name), here.get(name))
            for name in sorted(there.keys() | here.keys())
            if there.get(name) != here.get(name)
        }
        if differ:
            told = ", ".join(
                f"{name} ({old} there, {new} here)" for name, (old, new) in differ.items()
            )
            raise CredalError(
                f"{self.path(run)} holds this run with another configuration: {told}. To fix: name "
                "another --store, or delete that folder."
            )


class EpochLog:
    """A line of JSON an epoch, appended to a run's log.

    Args:
        path: The file.
        then: Told the same.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> EpochLog(path).epoch(1, of=2, loss=0.5, items=100)
        >>> json.loads(path.read_text())["loss"]
        0.5
    """

    def __init__(self, path: Path, then: Any = None) -> None:
        self.path, self.then, self.started = path, then, time.monotonic()

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Append a line."""
        seconds = round(time.monotonic() - self.started, 2)
        line = json.dumps({"epoch": number, "of": of, "loss": loss, "seconds": seconds})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        if self.then is not None:
            self.then.epoch(number, of=of, loss=loss, items=items)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Pass it on: the log has those epochs already."""
        if self.then is not None:
            self.then.resumed(done, of=of, source=source)


def versions() -> dict[str, str]:
    """Versions that a run was made with, and the commit of the source where it is known."""
    found = {
        "credalearn": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    commit = _commit()
    return found | ({"commit": commit} if commit else {})


def _commit() -> str | None:
    """The commit of the checkout that this file is tracked in; None where it is installed."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD", f"HEAD:./{Path(__file__).name}"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout[:12]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
