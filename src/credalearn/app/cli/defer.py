"""The command ``defer``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from credalearn.app.cli._command import Data, RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.defer import DeferOptions
from credalearn.app.steps.defer import defer as defer_items

Output = Annotated[Path, typer.Option("--output", "-o", help="File of tasks, .json or .csv.")]


def defer(
    run: RunFolder, data: Data, output: Output, options: DeferOptions
) -> list[str | dict[str, Any]]:
    """See ``steps.defer``."""
    loaded = Run.load(run)
    found = defer_items(loaded, data, output, options)
    facts = {"warnings": loaded.warnings, **asdict(found)}
    return [*loaded.warnings, *found.lines, facts]
