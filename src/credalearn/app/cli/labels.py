"""``credalearn labels``: which label rules held-out annotators contradict."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.cli.options import (
    Export,
    Labels,
    Skill,
)
from credalearn.app.cli.reading import Reading, reads_export

_SECONDS_BETWEEN_LINES = 5.0


@reads_export
def labels(
    export: Export,
    rule: Annotated[
        list[Labels] | None,
        typer.Option(help="A rule to try; may be repeated.", show_default="all"),
    ] = None,
    splits: Annotated[int, typer.Option(min=2, help="How often to split the votes.")] = 20,
    share: Annotated[
        float, typer.Option(help="Part of the annotators, or of the votes, that builds labels.")
    ] = 0.5,
    s: Annotated[
        float, typer.Option("--s", help="Strength of the imprecise Dirichlet model (idm).")
    ] = 1.0,
    confidence: Annotated[
        float, typer.Option(help="Wanted of the sets, and given to the rules that promise one.")
    ] = 0.95,
    skill: Annotated[
        Skill, typer.Option(help="Whether votes count alike, or by the annotators' skill.")
    ] = Skill.equal,
    random_state: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the splits.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The table: .csv, .tsv, .parquet or .jsonl."),
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Say which label rules fail: build labels from some annotators, test them on the others."""
    import torch
    from rich.console import Console

    from credalearn.app.annotations import read_annotations
    from credalearn.app.outputs import refuse_overwriting
    from credalearn.app.steps import label_words
    from credalearn.app.steps.inspecting import left_out_lines
    from credalearn.app.steps.label_study import SCHEMA, study_labels
    from credalearn.app.tables.writing import check_output, write_frames
    from credalearn.labels import VOTE_RULES

    if output is not None:  # before the work, not after it
        check_output(output)
    for path in (output,):
        if path is not None:
            refuse_overwriting(path, export)
    torch.set_num_threads(1)  # the tables are small: threads would wait for each other
    found = read_annotations(export, **reading)
    for line in (label_words.read_line(found), *left_out_lines(found)):
        print(line)
    wanted = dict.fromkeys(each.value for each in rule) if rule else VOTE_RULES
    with _progress(splits) as done:
        study = study_labels(
            found,
            rules=[name for name in VOTE_RULES if name in wanted],
            splits=splits,
            share=share,
            s=s,
            confidence=confidence,
            skill=skill.value,
            random_state=random_state,
            done=done,
        )
    if output is not None:  # first: a reader that stops early (``| head``) ends the command
        write_frames(output, iter([study.table()]), SCHEMA)
    print(label_words.split_line(study))
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(label_words.coverage_table(study))
    print(f"{label_words.LEGEND}\n\n{label_words.recommendation(study)}")
    for path in (output,):
        if path is not None:
            print(path)


@contextmanager
def _progress(splits: int) -> Iterator[Callable[[int], None]]:
    """A bar in a terminal, a line now and then elsewhere; short work says nothing."""
    from rich.console import Console
    from rich.progress import Progress

    if sys.stderr.isatty():
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("splits", total=splits)
            yield lambda number: bar.update(task, completed=number)
        return
    last = time.monotonic()

    def say(number: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"split {number}/{splits}", file=sys.stderr, flush=True)

    yield say
