"""Progress: some lines in a pipe, one line that updates in place in a terminal."""

import io

from credalearn.train import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO) -> str:
    with Progress("pocc", stream=stream) as progress:
        progress.resumed(1, of=5, source="resume.safetensors")
        for epoch in range(2, 6):
            progress.epoch(epoch, of=5, loss=1 / epoch, items=100)
    return stream.getvalue()


def test_a_pipe_gets_the_first_and_the_last_line() -> None:
    done, first, last = shown(io.StringIO()).splitlines()  # those between came too fast
    assert done.startswith("pocc: 1 of 5 epochs")
    assert first.startswith("pocc: epoch 2/5  loss 0.5000  ")
    assert last.startswith("pocc: epoch 5/5  loss 0.2000  ")


def test_a_terminal_gets_one_line_that_updates() -> None:
    lines = shown(Terminal()).splitlines(keepends=False)
    assert [part[:15] for part in lines if "epoch " in part] == [
        f"pocc: epoch {n}/5" for n in range(2, 6)
    ]
    assert shown(Terminal()).count("\n") <= 2


def test_selection_shows_a_progress_bar() -> None:
    stream = Terminal()
    Progress("auto", stream=stream).note("linear model", 0.25)
    assert "auto: [#####...............] linear model" in stream.getvalue()
