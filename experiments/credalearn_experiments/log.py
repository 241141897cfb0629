"""The log of a run, one line of JSON per epoch, and the status of the runs in a store."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from credalearn.train import Listener
from credalearn_experiments.runs import Run
from credalearn_experiments.store import Store


class LogLine(NamedTuple):
    """One epoch of a log: its number, from 1, and the seconds spent on the run by its end."""

    epoch: int
    seconds: float


def read_log(path: Path) -> list[LogLine]:
    """The complete lines of a log; a killed process may leave half a line."""
    lines = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            content = json.loads(line)
            lines.append(LogLine(int(content["epoch"]), float(content["seconds"])))
        except (ValueError, KeyError, TypeError):
            continue
    return lines


def seconds_spent(path: Path) -> float:
    """Seconds of training in a log, over all processes that worked on the run."""
    lines = read_log(path)
    return lines[-1].seconds if lines else 0.0


class EpochLog:
    """Appends one line per epoch to the log of one of ``together`` models, and passes all on."""

    def __init__(self, path: Path, together: int = 1, shown: Listener | None = None) -> None:
        self.path, self.together, self.shown = path, together, shown
        self.started, self.before = time.monotonic(), seconds_spent(path)
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            self._append("")

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Append a line; a model's share of the time is that of its number."""
        seconds = round(self.before + (time.monotonic() - self.started) / self.together, 3)
        self._append(json.dumps({"epoch": number, "of": of, "loss": loss, "seconds": seconds}))
        if self.shown is not None:
            self.shown.epoch(number, of=of, loss=loss, items=items * self.together)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """The log has these epochs already."""
        if self.shown is not None:
            self.shown.resumed(done, of=of, source=source)

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def status_lines(store: Store, runs: Sequence[Run]) -> list[str]:
    """A headline with the time left, and a line for every run that is started or failed.

    The time left is the mean time of an epoch in all logs times the epochs left, for one process.
    """
    states = {run: store.state(run) for run in runs}
    lines, epochs_left, epochs_done, seconds = [], 0, 0, 0.0
    for run, state in states.items():
        epochs = run.setting.recipe.epochs
        log = read_log(store.log(run))
        done = min(max((line.epoch for line in log), default=0), epochs)
        if state == "failed":
            lines.append(f"  {run.name}: failed: {store.failure(run)}")
        elif state == "started":
            claim = store.claim(run)
            what = "running" if claim is None else "stopped; `run` resumes it"
            lines.append(f"  {run.name}: epoch {done}/{epochs}, {what}")
            if claim is not None:
                claim.release()
        epochs_done += len(log)
        seconds += log[-1].seconds if log else 0.0
        if not run.bases and state in ("new", "started"):
            epochs_left += epochs - done
    counts = Counter(states.values())
    words = {"started": counts["started"], "failed": counts["failed"], "not started": counts["new"]}
    notes = [f"{count} {word}" for word, count in words.items() if count]
    head = ", ".join([f"{counts['done']} of {len(runs)} runs done", *notes])
    if epochs_left and epochs_done:
        left = epochs_left * seconds / epochs_done
        hours = f"{left / 60:.0f} min" if left < 5400 else f"{left / 3600:.1f} h"
        head += f"; about {hours if left >= 90 else f'{left:.0f} s'} left"
    return [f"{runs[0].setting.name}: {head}", *lines]
