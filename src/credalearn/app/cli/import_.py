"""The command ``import``."""

from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.cli._arguments import NewRun
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
) -> list[str]:
    """See ``steps.import_predictions``."""
    return imported_lines(import_predictions(predictions, votes, output, options, reading))
