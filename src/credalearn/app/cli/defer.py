"""The command ``defer``."""

from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.cli._arguments import Data, RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.defer import DeferOptions
from credalearn.app.steps.defer import defer as defer_items

Output = Annotated[Path, typer.Option("--output", "-o", help="File of tasks, .json or .csv.")]


def defer(run: RunFolder, data: Data, output: Output, options: DeferOptions) -> list[str]:
    """See ``steps.defer``."""
    loaded = Run.load(run)
    return [*loaded.warnings, *defer_items(loaded, data, output, options).lines]
