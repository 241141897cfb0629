"""The command ``recalibrate``."""

from dataclasses import asdict, replace
from typing import Any

from credalearn._options import keywords
from credalearn.app.cli._arguments import Export, NewRun, RunFolder
from credalearn.app.readers import read_annotations
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.run import Run
from credalearn.app.steps.recalibrate import RecalibrateOptions
from credalearn.app.steps.recalibrate import recalibrate as recalibrate_run


def recalibrate(
    run: RunFolder,
    export: Export,
    output: NewRun,
    reading: ReaderOptions,
    options: RecalibrateOptions,
) -> list[str | dict[str, Any]]:
    """See ``steps.recalibrate``."""
    old = Run.load(run)
    reading = replace(reading, classes=reading.classes or old.classes)
    votes = read_annotations(export, **keywords(reading))
    found = recalibrate_run(old, votes, output, options)
    facts = {"run": output, "drift": asdict(found.drift), "splits": asdict(found.run.facts.splits)}
    return [*found.lines, facts]
