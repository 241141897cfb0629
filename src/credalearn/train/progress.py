"""Progress of long work: a live bar in a terminal, plain lines elsewhere."""

import sys
import time
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

_SECONDS_BETWEEN_LINES = 5.0


class Listener(Protocol):
    """What is told of a training run: :class:`Progress` is one, a log file another.

    Example:
        >>> class Losses(list):
        ...     def epoch(self, number, *, of, loss, items):
        ...         self.append(loss)
        ...     def resumed(self, done, *, of, source):
        ...         pass
        >>> listener: Listener = Losses()
        >>> listener.epoch(1, of=2, loss=0.5, items=100)
        >>> listener
        [0.5]
    """

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Epoch ``number`` (from 1) of so many is done, of so many items."""

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """So many epochs were done before, and this is where that was kept."""


class Progress:
    """Loss, speed and time left after each epoch; use as a context manager.

    Args:
        label: What is being trained.
        stream: Where to; standard error unless given. A terminal gets a bar that updates in place,
            anything else a line now and then, and always the first and the last.

    Example:
        >>> with Progress("pocc", stream=sys.stdout) as progress:  # doctest: +ELLIPSIS
        ...     progress.epoch(1, of=1, loss=0.5, items=1000)
        pocc: epoch 1/1  loss 0.5000  ... items/s  0:00 left
    """

    def __init__(self, label: str, *, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.started = self.first_time = self.last_line = time.monotonic()
        self.first_epoch: int | None = None
        self.bar = self._bar() if self.stream.isatty() else None

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Say that epoch ``number`` (from 1) of so many is done, each of so many items."""
        now = time.monotonic()
        if self.first_epoch is None:  # a resumed run starts late: its speed counts from here
            self.first_epoch, self.first_time = number, now
        epochs = number - self.first_epoch
        # The first epoch holds what is done only once, so the pace is that of the others.
        seconds = (now - self.first_time) / epochs if epochs else now - self.started
        seconds = max(seconds, 1e-9)
        left = int((of - number) * seconds)
        text = (
            f"{self.label}: epoch {number}/{of}  loss {loss:.4f}  {items / seconds:,.0f} items/s  "
            f"{left // 60}:{left % 60:02d} left"
        )
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=number, total=of, description=text)
            return
        first_or_last = number in (self.first_epoch, of)
        if first_or_last or now - self.last_line >= _SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(text, file=self.stream, flush=True)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Say that so many epochs were done before, and where that is kept."""
        print(f"{self.label}: {done} of {of} epochs are done in {source}", file=self.stream)

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def _bar(self) -> Bar:
        columns = (BarColumn(bar_width=24), TextColumn("{task.description}"))
        bar = Bar(*columns, console=Console(file=self.stream))
        bar.add_task(f"{self.label}: starting", total=None)
        return bar
