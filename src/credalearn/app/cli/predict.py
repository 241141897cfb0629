"""The command ``predict``."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from credalearn.app.cli._command import Data, RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.predict import PredictOptions
from credalearn.app.steps.predict import predict as predict_items

Output = Annotated[
    Path, typer.Option("--output", "-o", help="A .csv, .tsv, .parquet or .jsonl file.")
]


def predict(
    run: RunFolder, data: Data, output: Output, options: PredictOptions
) -> Iterator[str | dict[str, Any]]:
    """See ``steps.predict``."""
    loaded = Run.load(run)
    found = predict_items(loaded, data, output, options)
    yield from [*loaded.warnings, *found.lines]
    facts = asdict(found)
    del facts["table"]  # it is in the file
    yield {"warnings": loaded.warnings, **facts}
    if found.deferred:
        yield f"Next: credalearn defer {run} {data} -o tasks.json{_same_items(options)}"


def _same_items(options: PredictOptions) -> str:
    """What makes ``defer`` choose the items that ``predict`` deferred."""
    words = "" if options.item is None else f" --item {quote(options.item)}"
    return words if options.threshold is None else f"{words} --threshold {options.threshold}"
