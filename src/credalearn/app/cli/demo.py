"""The command ``demo``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.demo import run_demo

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")]
Epochs = Annotated[int, typer.Option(help="Passes over the training items.")]


def demo(output: Output = Path("demo-output"), epochs: Epochs = 40) -> Iterator[str]:
    """See ``app.demo``."""
    try:
        yield from run_demo(output, epochs=epochs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"finished files are in {output}") from None
