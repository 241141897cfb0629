"""The log of a run: a line of JSON an epoch, written and read."""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

from credalearn.train import Listener


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of a log.

    Args:
        epoch: Which, from 1.
        seconds: Spent on the run by its end.
    """

    epoch: int
    seconds: float


def read_log(path: Path) -> list[Logged]:
    r"""The lines of a log that can be read; none if there is no file.

    Lines that cannot are left out: the last of a killed process is half a line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> _ = path.write_text('{"epoch": 1, "seconds": 2.5}\n{"epo')
        >>> read_log(path)
        [Logged(epoch=1, seconds=2.5)]
    """
    lines = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found = json.loads(line)
            logged = Logged(int(found["epoch"]), float(found["seconds"]))
        except (ValueError, KeyError, TypeError, OverflowError):  # ValueError: of UTF-8 too
            continue
        if math.isfinite(logged.seconds):
            lines.append(logged)
    return lines


def seconds_logged(path: Path) -> float:
    """Seconds that a log knows of, over all processes that worked on the run.

    Example:
        >>> seconds_logged(Path("nowhere/log.jsonl"))
        0.0
    """
    lines = read_log(path)
    return lines[-1].seconds if lines else 0.0


class EpochLog:
    """A line of JSON an epoch, appended to a run's log; its clock goes on where the log stops.

    Args:
        path: The file.
        then: Told the same.
        share: Of the time that passes, this model's; less than 1 where several are trained at once.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> EpochLog(path).epoch(1, of=2, loss=0.5, items=100)
        >>> json.loads(path.read_text())["loss"]
        0.5
    """

    def __init__(self, path: Path, then: Listener | None = None, *, share: float = 1.0) -> None:
        self.path, self.then, self.share, self.started = path, then, share, time.monotonic()
        self.before: float | None = None  # read with the first epoch: a restart removes the log
        if path.exists() and not path.read_bytes().endswith(b"\n"):  # half a line, of one killed
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Append a line."""
        if self.before is None:
            self.before = seconds_logged(self.path)
        seconds = round(self.before + self.share * (time.monotonic() - self.started), 3)
        line = json.dumps({"epoch": number, "of": of, "loss": loss, "seconds": seconds})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        if self.then is not None:
            self.then.epoch(number, of=of, loss=loss, items=items)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Pass it on: the log has those epochs already."""
        if self.then is not None:
            self.then.resumed(done, of=of, source=source)
