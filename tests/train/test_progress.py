"""Progress: some lines in a pipe, one line that updates in place in a terminal."""

import io

from credalearn.train import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *, first: int = 1) -> str:
    with Progress("pocc", stream=stream) as progress:
        if first > 1:
            progress.resumed(first - 1, of=5, source="resume.safetensors")
        for epoch in range(first, 6):
            progress.epoch(epoch, of=5, loss=1 / epoch, items=100)
    return stream.getvalue()


def test_a_pipe_gets_the_first_and_the_last_line() -> None:
    first, last = shown(io.StringIO()).splitlines()  # those between came too fast
    assert first.startswith("pocc: epoch 1/5  loss 1.0000  ")
    assert "items/s" in first
    assert last.startswith("pocc: epoch 5/5  loss 0.2000  ")
    assert last.endswith("0:00 left")


def test_a_terminal_gets_one_line_that_updates() -> None:
    text = shown(Terminal())
    assert text.count("\n") == 1
    assert text.endswith("left\033[K\n")
    assert [part[:15] for part in text.split("\r")[1:]] == [
        f"pocc: epoch {n}/5" for n in range(1, 6)
    ]


def test_a_resumed_run_reports_what_was_done() -> None:
    lines = shown(io.StringIO(), first=4).splitlines()
    assert lines[0] == "pocc: 3 of 5 epochs are done in resume.safetensors"
    assert lines[1].startswith("pocc: epoch 4/5")
