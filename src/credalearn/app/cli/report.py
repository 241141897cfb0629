"""The command ``report``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from credalearn.app.run import Run
from credalearn.app.steps.report import ReportOptions
from credalearn.app.steps.report import report as write_report

Runs = Annotated[list[Path], typer.Argument(help="The run; others are compared with it.")]


def report(runs: Runs, options: ReportOptions) -> list[str | dict[str, Any]]:
    """See ``steps.report``."""
    first, *others = (Run.load(path) for path in runs)
    found = write_report(first, options, others)
    return [*first.warnings, *found.lines, {"warnings": first.warnings, **asdict(found)}]
