"""The log of a run: one line of JSON per epoch."""

import json
import time
from pathlib import Path
from typing import NamedTuple

from credalearn.train import Listener


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
