"""The command ``import``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from credalearn.app.cli._command import NewRun
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.steps.import_predictions import (
    ImportOptions,
    import_predictions,
    imported_lines,
)

Predictions = Annotated[
    Path, typer.Argument(help="Table with a column of items and the probability of each class.")
]
Votes = Annotated[Path | None, typer.Option(help="Export of the annotation tool, or votes.")]


def import_(
    predictions: Predictions,
    output: NewRun,
    options: ImportOptions,
    reading: ReaderOptions,
    votes: Votes = None,
) -> list[str | dict[str, Any]]:
    """See ``steps.import_predictions``."""
    run = import_predictions(predictions, votes, output, options, reading)
    names = ("classes", "imported", "truth", "splits")
    return [*imported_lines(run), {name: asdict(run.facts)[name] for name in names}]
