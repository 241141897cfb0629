"""The command ``inspect``."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from credalearn.app.cli._command import Export
from credalearn.app.readers import read_rounds
from credalearn.app.readers.options import RoundOptions
from credalearn.app.steps.inspect import consensus
from credalearn.app.steps.inspect import inspect as inspect_annotations
from credalearn.app.table_writer import check_output, refuse_overwriting, write_frames

Rules = Annotated[bool, typer.Option("--rules", help="Compare label rules on held-out votes.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Table of consensus labels, or of rules with --rules."),
]


def inspect(
    export: Export, options: RoundOptions, rules: Rules = False, output: Output = None
) -> Iterator[str | dict[str, Any]]:
    """See ``steps.inspect`` and ``steps.rules``."""
    if output is not None:  # before the work
        refuse_overwriting(check_output(output), export)
    found = read_rounds(export, options)
    inspected = inspect_annotations(found)
    yield from inspected.lines()[: 1 if rules else None]
    facts = asdict(inspected)
    yield {**facts.pop("facts"), **facts}
    table = None
    if rules:
        from credalearn.app.steps.rules import compare_rules  # imports torch

        compared = compare_rules(found)
        yield from compared.lines()
        table = compared.table()
        yield {"rules": table.to_dicts()}
    if output is not None:
        table = consensus(found) if table is None else table
        schema = {name: type(kind) for name, kind in table.schema.items()}
        write_frames(output, iter([table]), schema)
        yield f"Wrote {output}."
        yield {"output": output}
