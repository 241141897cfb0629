"""The log of a run: a line of JSON an epoch."""

import json
import time
from pathlib import Path

from credalearn.train import Listener


class EpochLog:
    """A line of JSON an epoch, appended to a run's log.

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
        if path.exists() and not path.read_bytes().endswith(b"\n"):  # half a line, of one killed
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Append a line."""
        seconds = round(self.share * (time.monotonic() - self.started), 3)
        line = json.dumps({"epoch": number, "of": of, "loss": loss, "seconds": seconds})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        if self.then is not None:
            self.then.epoch(number, of=of, loss=loss, items=items)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Pass it on: the log has those epochs already."""
        if self.then is not None:
            self.then.resumed(done, of=of, source=source)
