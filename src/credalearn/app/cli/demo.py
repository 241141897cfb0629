"""The command ``demo``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.demo import run_demo

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")]


def demo(output: Output = Path("demo-output")) -> Iterator[str]:
    """See ``app.demo``."""
    try:
        yield from run_demo(output)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"finished files are in {output}") from None
