"""Progress: lines in a pipe, a bar in a terminal."""

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress

from credalearn.train import Progress


def test_plain_progress_shows_loss_speed_and_time_left() -> None:
    stream = io.StringIO()
    with Progress("pocc", stream=stream) as progress:
        for epoch in range(1, 6):
            progress.epoch(epoch, of=5, loss=1 / epoch, items=100)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2  # the first and the last: those between came too fast
    assert lines[0].startswith("pocc: epoch 1/5  loss 1.0000  ")
    assert lines[-1].startswith("pocc: epoch 5/5  loss 0.2000  ")
    assert "items/s" in lines[0]
    assert lines[-1].endswith("0:00 left")


def test_a_terminal_gets_a_bar() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Progress("pocc", stream=stream) as progress:
        progress.epoch(1, of=1, loss=0.5, items=100)
    assert "epoch 1/1" in stream.getvalue()
    assert "━" in stream.getvalue()


FIT = """
import credalearn as cl
cl.CredalClassifier(epochs=3, verbose=True).fit([[0.0], [1.0]], [0, 1])
"""


def test_a_fit_in_a_real_terminal_shows_its_bar() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", FIT], stderr=theirs) as process:
        os.close(theirs)
        pieces: list[bytes] = []
        with suppress(OSError):  # how a terminal says that nobody writes any more
            while piece := os.read(ours, 100_000):
                pieces.append(piece)
        os.close(ours)
    shown = b"".join(pieces).decode()
    assert process.returncode == 0
    assert "epoch 3/3" in shown
    assert "━" in shown
