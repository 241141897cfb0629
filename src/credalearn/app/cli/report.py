"""The command ``report``."""

from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.run import Run
from credalearn.app.steps.report import ReportOptions
from credalearn.app.steps.report import report as write_report

Runs = Annotated[list[Path], typer.Argument(help="The run; others are compared with it.")]


def report(runs: Runs, options: ReportOptions) -> list[str]:
    """See ``steps.report``."""
    first, *others = (Run.load(path) for path in runs)
    return [*first.warnings, *write_report(first, options, others).lines]
