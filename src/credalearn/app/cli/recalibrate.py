"""The command ``recalibrate``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from credalearn._options import keywords
from credalearn.app.cli._command import NewRun, RunFolder
from credalearn.app.readers import read_annotations
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.run import Run
from credalearn.app.steps.recalibrate import RecalibrateOptions
from credalearn.app.steps.recalibrate import recalibrate as recalibrate_run

Votes = Annotated[
    Path | None, typer.Argument(help="Export of the annotation tool, or votes; or pass --gold.")
]


def recalibrate(
    run: RunFolder,
    output: NewRun,
    reading: ReaderOptions,
    options: RecalibrateOptions,
    export: Votes = None,
) -> list[str | dict[str, Any]]:
    """See ``steps.recalibrate``."""
    old = Run.load(run)
    reading = replace(reading, classes=reading.classes or old.classes)
    votes = None if export is None else read_annotations(export, **keywords(reading))
    found = recalibrate_run(old, votes, output, options)
    return [*found.lines, found.facts]
