"""Progress of a training: a line that updates in place in a terminal, else some lines."""

import sys
import time
from typing import Protocol, Self, TextIO

_SECONDS_BETWEEN_LINES = 5.0
_BAR = 20  # characters


class Listener(Protocol):
    """Receives the progress of a training run: :class:`Progress` is one, a log file another."""

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Epoch ``number`` (from 1) of ``of`` is done, with so many items."""

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """So many epochs were done before; ``source`` keeps them."""


class Progress:
    """Shows loss, speed and time left after each epoch; use as a context manager."""

    def __init__(self, label: str, *, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.in_place = self.stream.isatty()
        self.started = self.first_time = self.last_line = time.monotonic()
        self.first_epoch: int | None = None
        self.shown = False

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Show that epoch ``number`` (from 1) is done."""
        now = time.monotonic()
        if self.first_epoch is None:  # a resumed run starts late: its speed counts from here
            self.first_epoch, self.first_time = number, now
        epochs = number - self.first_epoch
        # The first epoch includes what is done only once, so the pace is that of the others.
        seconds = max((now - self.first_time) / epochs if epochs else now - self.started, 1e-9)
        left = int((of - number) * seconds)
        text = (
            f"{self.label}: epoch {number}/{of}  loss {loss:.4f}  {items / seconds:,.0f} items/s  "
            f"{left // 60}:{left % 60:02d} left"
        )
        self._show(text, always=number in (self.first_epoch, of))

    def note(self, text: str, share: float) -> None:
        """Show what is being done, and how much of the work is done, at most 1."""
        done = round(_BAR * share)
        bar = f"[{'#' * done}{'.' * (_BAR - done)}]"
        self._show(f"{self.label}: {bar} {text}", always=False)

    def _show(self, text: str, *, always: bool) -> None:
        self.shown = True
        now = time.monotonic()
        if self.in_place:
            print(f"\r{text}\033[K", end="", file=self.stream, flush=True)
        elif always or now - self.last_line >= _SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(text, file=self.stream, flush=True)

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Show how many epochs were done before."""
        print(f"{self.label}: {done} of {of} epochs are done in {source}", file=self.stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.in_place and self.shown:
            print(file=self.stream)
