"""A store of runs: a folder a run, in which a file written last says that it is done.

``STORE/SETTING/METHOD/seed-S/`` holds ``config.json`` (what was asked, versions, commit),
``log.jsonl`` (a line an epoch), ``predictions.safetensors``, ``model.safetensors`` where networks
were trained, ``resume.safetensors`` while unfinished, and ``metrics.json``, the record, at the end.
"""

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeGuard

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from torch import Tensor

from credalearn import __version__
from credalearn._files import sha256_of, whole_file
from credalearn._tensors import read_tensors, write_tensors
from credalearn.errors import CredalError
from credalearn_experiments.records import Record, read_record, write_record
from credalearn_experiments.running.log import Logged, read_log, seconds_logged
from credalearn_experiments.running.runs import Run

State = Literal["done", "started", "new", "failed", "damaged", "unmeasured", "outdated"]
"""Unmeasured is a finished run whose weights are whole and whose predictions are not; outdated one
that was built on networks which have been trained again since, and have other weights now."""
PREDICTIONS, MODEL = "predictions.safetensors", "model.safetensors"
_PLUGIN = {"task_plugin", "method_plugin"}  # of config
# All that a run's folder may hold, but for its lock; config.json first: without it, what is left of
# a removal that was killed is nobody's.
_FILES = (
    "config.json",
    "metrics.json",
    "failure.txt",
    "resume.safetensors",
    "log.jsonl",
    PREDICTIONS,
    MODEL,
)


@dataclass(frozen=True, slots=True)
class Store:
    """Runs kept in a folder.

    Several processes may use one store at once, also on several machines that share the folder: a
    run is claimed by a lock that ends with the process that holds it.

    Args:
        folder: Where; made when the first run is.

    Example:
        >>> import tempfile
        >>> from credalearn_experiments.settings.paper import SETTINGS
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
        return self.look(run)[0]

    def damage(self, run: Run, *, thorough: bool = False) -> str | None:
        """What is wrong with a run's files, in words; None if nothing is. See :meth:`look`."""
        return self.look(run, thorough=thorough)[1]

    def look(self, run: Run, *, thorough: bool = False) -> tuple[State, str | None]:
        """How far a run is, and what is wrong with its files, in words; None if nothing is.

        Args:
            run: Which.
            thorough: Read all bytes of a finished run's files, not just their sizes.

        Raises:
            CredalError: If the store holds this run as it was asked for otherwise.
        """
        folder = self.path(run)
        finished = (folder / "metrics.json").exists()
        begun = (folder / "config.json").exists()
        asked = _read_asked(folder / "config.json") if begun else None
        if asked is None:
            damaged = f"{folder / 'config.json'} is missing or damaged"
            return ("damaged", damaged) if begun or finished else ("new", None)
        failed = (folder / "failure.txt").exists()
        differ = _differences(asked, run.asked)
        if differ and not finished and (failed or not self.checkpoint(run).exists()):
            return "new", None  # as asked for now: of the other nothing is kept
        if differ:
            raise CredalError(self._refusal(run, differ))
        if finished:
            return self._look_at_finished(run, thorough=thorough)
        return "failed" if failed else "started", None

    def _look_at_finished(self, run: Run, *, thorough: bool) -> tuple[State, str | None]:
        folder = self.path(run)
        try:
            record = read_record(folder / "metrics.json")
        except (CredalError, OSError) as error:
            reason = str(error).partition(" To fix: ")[0].rstrip(".")
            return "damaged", f"{folder / 'metrics.json'} is damaged ({reason})"
        files = record.config.get("files")
        same = (record.setting, record.method, record.seed) == (
            run.setting.name,
            run.method,
            run.seed,
        )
        needed = {PREDICTIONS} if run.bases else {PREDICTIONS, MODEL}
        if not same or not _are_files(files) or not needed <= files.keys():
            return "damaged", f"{folder / 'metrics.json'} is not what this run wrote"
        other = self._other_networks(run, record)
        if other is not None:
            return "outdated", f"{other.name} has been trained again, to another network"
        # Predictions last: where they alone are wrong, networks need not be trained again.
        for name in sorted(files, key=lambda name: name == PREDICTIONS):
            wrong = _wrong(folder / name, files[name], thorough=thorough)
            if wrong is not None:
                return "unmeasured" if name == PREDICTIONS else "damaged", wrong
        return "done", None

    def _other_networks(self, run: Run, record: Record) -> Run | None:
        """The first of the runs that this one was built on whose network is another one now.

        By digests in records, no weights are read. One that is not done now is not compared, and
        nothing is in the records of older versions.
        """
        known = record.config.get("built_on")
        if not isinstance(known, Mapping):
            return None
        now = {base: self._network_digest(base) for base in run.bases if base.name in known}
        return next((base for base, it in now.items() if it not in (None, known[base.name])), None)

    def _network_digest(self, run: Run) -> str | None:
        """The digest of a finished run's weights, by its record; None if there is none."""
        try:
            files = self.record(run).config.get("files")
        except (CredalError, OSError):
            return None
        return files[MODEL]["sha256"] if _are_files(files) and MODEL in files else None

    def configurations(self, setting: str) -> list[dict[str, Any]]:
        """What the runs of a setting were asked for with, of those that say it."""
        paths = sorted((self.folder / setting).glob("*/seed-*/config.json"))
        found = [asked for path in paths if (asked := _read_asked(path)) is not None]
        return [
            asked
            for asked in found
            if isinstance(asked.get("epochs"), int) and isinstance(asked.get("limit"), int | None)
        ]

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
        if self.state(run) != "started":
            self.forget(run)
        content = {
            "asked": run.asked,
            "versions": versions(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with whole_file(self.path(run) / "config.json", other=None) as partial:
            partial.write_text(f"{json.dumps(content, indent=2)}\n", encoding="utf-8")

    def forget(self, run: Run) -> None:
        """Remove all that is kept of a run, which is new then; the caller has claimed it."""
        for name in _FILES:
            (self.path(run) / name).unlink(missing_ok=True)

    def forget_predictions(self, run: Run) -> None:
        """Remove what a finished, claimed run predicted, which is unmeasured then."""
        (self.path(run) / PREDICTIONS).unlink(missing_ok=True)

    def checkpoint(self, run: Run) -> Path:
        """File of an unfinished training's state."""
        return self.path(run) / "resume.safetensors"

    def restart(self, run: Run) -> None:
        """Remove the state and the log of an unfinished training, which then starts anew."""
        for path in (self.checkpoint(run), self.path(run) / "log.jsonl"):
            path.unlink(missing_ok=True)

    def finish(
        self,
        run: Run,
        *,
        metrics: Mapping[str, float],
        curves: Mapping[str, tuple[float, ...]],
        predictions: Mapping[str, Tensor],
        weights: Mapping[str, Tensor] | None,
        seconds: float,
        device: str,
    ) -> None:
        """Keep what a run found; the record last, then the unfinished state goes.

        Weights of None are those that the run has kept already, which stay as they are: one killed
        between predictions and record is then unmeasured, and not damaged.
        """
        folder = self.path(run)
        files: dict[str, dict[str, object]] = {}
        if weights is None:
            files |= self.record(run).config["files"]
        kept = {PREDICTIONS: predictions, MODEL: weights}
        for name, tensors in kept.items():
            if not tensors:
                continue
            write_tensors(folder / name, tensors, other=None)
            files[name] = {
                "bytes": (folder / name).stat().st_size,
                "sha256": sha256_of(folder / name),
            }
        config = {**run.asked, "files": files}
        if run.bases:
            digests = {base.name: self._network_digest(base) for base in run.bases}
            config["built_on"] = {name: x for name, x in digests.items() if x is not None}
        record = Record(
            setting=run.setting.name,
            method=run.method,
            seed=run.seed,
            metrics=metrics,
            curves=curves,
            config=config,
            versions={**versions(), "device": device},
            seconds=seconds,
        )
        write_record(folder / "metrics.json", record)
        (folder / "resume.safetensors").unlink(missing_ok=True)

    def record(self, run: Run) -> Record:
        """What a finished run found."""
        return read_record(self.path(run) / "metrics.json")

    def failure(self, run: Run) -> str:
        """Why a run stopped for good."""
        path = self.path(run) / "failure.txt"
        return path.read_text(encoding="utf-8", errors="replace").strip()

    def fail(self, run: Run, reason: str) -> None:
        """Say why a run stopped for good."""
        with whole_file(self.path(run) / "failure.txt", other=None) as partial:
            partial.write_text(f"{reason}\n", encoding="utf-8")

    def tensors(self, run: Run, name: str) -> dict[str, Tensor]:
        """The tensors of a finished run's file.

        Raises:
            CredalError: If the file is damaged or missing.
        """
        folder = self.path(run)
        return read_tensors(folder / name, fix=f"delete {folder}; it is done again")[0]

    def epochs_done(self, run: Run) -> int:
        """Epochs that the log of a run knows of."""
        return max((line.epoch for line in self._log(run)), default=0)

    def epochs_kept(self, run: Run) -> int:
        """Epochs that the checkpoint of a run holds; on a GPU the log may be minutes ahead."""
        try:
            with safe_open(self.checkpoint(run), framework="pt") as file:
                return int(file.get_tensor("losses").numel())
        except (SafetensorError, OSError):  # a training that begins says what is wrong with it
            return 0

    def seconds_spent(self, run: Run) -> float:
        """Seconds that the log of a run knows of, over all processes that worked on it."""
        return seconds_logged(self.path(run) / "log.jsonl")

    def pace(self, run: Run) -> float | None:
        """Seconds an epoch, by the log of a run; None without any."""
        lines = self._log(run)
        return self.seconds_spent(run) / len(lines) if lines else None

    def _log(self, run: Run) -> list[Logged]:
        return read_log(self.path(run) / "log.jsonl")

    def _refusal(self, run: Run, differ: Mapping[str, tuple[object, object]]) -> str:
        """Runs that were asked for in different ways are not mixed."""
        told = ", ".join(f"{name} ({old} there, {new} here)" for name, (old, new) in differ.items())
        edited = " The file of --plugin is another one now." if differ.keys() & _PLUGIN else ""
        return (
            f"{self.path(run)} holds this run with another configuration: {told}.{edited} To fix: "
            "give the same options as then, name another --store, or delete that folder."
        )


def versions() -> dict[str, str]:
    """Versions that a run was made with, and the commit of the source where it is known."""
    found = {
        "credalearn": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    commit = _commit()
    return found | ({"commit": commit} if commit else {})


def _read_asked(path: Path) -> dict[str, Any] | None:
    """What was asked for, by a ``config.json``; None if it is missing or damaged."""
    try:
        asked = json.loads(path.read_text(encoding="utf-8"))["asked"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return asked if isinstance(asked, dict) else None


def _are_files(files: object) -> TypeGuard[Mapping[str, Mapping[str, Any]]]:
    """Whether this is what a record says of a run's files: by name, how many bytes and which."""
    return isinstance(files, Mapping) and all(
        isinstance(known, Mapping)
        and isinstance(known.get("bytes"), int)
        and isinstance(known.get("sha256"), str)
        for known in files.values()
    )


def _wrong(path: Path, known: Mapping[str, Any], *, thorough: bool) -> str | None:
    if not path.is_file():
        return f"{path} is missing"
    if path.stat().st_size != known["bytes"]:
        return f"{path} has {path.stat().st_size} bytes instead of {known['bytes']}"
    if thorough and sha256_of(path) != known["sha256"]:
        return f"{path} is not what was written"
    return None


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """By name, the two values of all that was asked for otherwise."""
    old, new = _flat(there), _flat(json.loads(json.dumps(here)))
    names = sorted(old.keys() | new.keys())
    return {x: (old.get(x), new.get(x)) for x in names if old.get(x) != new.get(x)}


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Tables within a table as one, so that a message names the one value that differs."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= (
            _flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
        )
    return flat


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
