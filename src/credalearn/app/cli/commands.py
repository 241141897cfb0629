"""The commands: each parses options and calls the verb of the same name.

What a command needs is imported when it is called, so that ``--help`` answers at once; options are
named by where they are stated.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credalearn.app.cli._command import Output

if TYPE_CHECKING:
    from credalearn.app.run import Run

Export = Annotated[Path, typer.Argument(help="Export of the annotation tool, or a table of votes.")]
Votes = Annotated[
    Path | None, typer.Argument(help="Export of the annotation tool, or votes; or pass --gold.")
]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.")]
Data = Annotated[Path, typer.Argument(help="Table or array of features, or a folder of images.")]
NewRun = Annotated[Path, typer.Option("--output", "-o", help="Folder of the new run.")]


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "demo-output"
    ),
) -> Iterator[str | dict[str, Any]]:
    """Run all steps on radiologists' votes about lung nodules; offline, under a minute."""
    from credalearn.app.demo import run_demo

    try:
        yield from run_demo(output)
        yield {"run": output / "run", "decisions": output / "decisions.csv"}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"finished files are in {output}") from None


def inspect(
    export: Export,
    reading: Annotated[Any, "readers.options.RoundOptions"],
    options: Annotated[Any, "steps.inspect.InspectOptions"],
) -> Output:
    """Show what an export contains and where annotators disagree."""
    from credalearn.app.readers import read_annotations

    found = read_annotations(export, **asdict(reading)).inspect(**asdict(options))
    return [*found.lines, found.facts]


def train(
    export: Export,
    output: NewRun,
    rounds: Annotated[Any, "readers.options.RoundOptions"],
    inputs: Annotated[Any, "dataset.DatasetOptions"],
    options: Annotated[Any, "steps.train.TrainOptions"],
) -> Iterator[str | dict[str, Any]]:
    """Train a model on annotated items; run again after a stop, it resumes."""
    from credalearn._formats import listed, many
    from credalearn.app.dataset import Dataset
    from credalearn.app.readers import read_annotations
    from credalearn.app.run import Run
    from credalearn.app.staging import CHECKPOINTS, check_place, sibling
    from credalearn.app.steps.train import trained_lines

    check_place(output, overwrite=options.overwrite)  # before a large export is read
    used = (*inputs.columns, *inputs.text)
    votes = read_annotations(export, **asdict(rounds) | {"elsewhere": used})
    data = Dataset(votes, **asdict(inputs))
    classes = f"{many(len(votes.classes), 'class', 'classes')}: {listed(votes.classes)}"
    yield f"{export}: {votes.source.words}; {many(len(votes.items), 'item')}, {classes}"
    yield from votes.inspect().remarks
    yield from data.lines
    try:
        run = Run.train(data, output, **asdict(options) | {"verbose": True})
    except KeyboardInterrupt:
        if any(sibling(output, "partial").glob(CHECKPOINTS)):
            raise KeyboardInterrupt("the same command continues where it stopped") from None
        raise KeyboardInterrupt("nothing was written") from None
    facts, scores = run.facts, {} if inputs.test is None else run.test_scores()
    yield from trained_lines(run, scores, known=data.inputs.left_out)
    yield {"run": output, **asdict(facts), "advice": facts.advice, "test_scores": scores}


def import_(
    predictions: Annotated[
        Path, typer.Argument(help="Table with a column of items and the probability of each class.")
    ],
    output: NewRun,
    options: Annotated[Any, "steps.import_predictions.ImportOptions"],
    reading: Annotated[Any, "readers.options.ReaderOptions"],
    votes: Annotated[
        Path | None, typer.Option(help="Export of the annotation tool, or votes.")
    ] = None,
) -> Output:
    """Take another model's probabilities, to certify, defer and report them."""
    from credalearn.app.run import Run
    from credalearn.app.steps.import_predictions import imported_lines

    given = asdict(reading) | asdict(options)
    run = Run.from_predictions(predictions, votes, output, **given)
    names = ("classes", "imported", "truth", "splits")
    return [*imported_lines(run), {name: asdict(run.facts)[name] for name in names}]


def certify(
    run: RunFolder, options: Annotated[Any, "steps.certify_options.CertifyOptions"]
) -> Output:
    """Choose the threshold above which items are deferred, with a guarantee."""
    found = _load(run).certify(**asdict(options))
    more = found.assumptions if options.explain else []
    return [*found.lines, *more, {"warnings": found.run.warnings, **found.facts}]


def predict(
    run: RunFolder,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .tsv, .parquet or .jsonl file.")
    ],
    options: Annotated[Any, "steps.predict.PredictOptions"],
) -> Output:
    """Label items and decide which ones to defer to people."""
    loaded = _load(run)
    found = loaded.predict(data, output, **asdict(options))
    # What makes ``defer`` choose the items that ``predict`` deferred.
    same = "" if options.item is None else f" --item {quote(options.item)}"
    same += "" if options.threshold is None else f" --threshold {options.threshold}"
    next_step = f"Next: credalearn defer {run} {data} -o tasks.json{same}"
    return [*_printed(loaded, found), *([next_step] if found.deferred else [])]


def defer(
    run: RunFolder,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="File of tasks, .json or .csv.")],
    options: Annotated[Any, "steps.defer.DeferOptions"],
) -> Output:
    """Write the deferred items, least certain first, for annotators."""
    loaded = _load(run)
    return _printed(loaded, loaded.defer(data, output, **asdict(options)))


def report(
    runs: Annotated[list[Path], typer.Argument(help="The run; others are compared with it.")],
    options: Annotated[Any, "steps.report.ReportOptions"],
) -> Output:
    """Write a one-page HTML report about a run."""
    first, *others = map(_load, runs)
    return _printed(first, first.report(*others, **asdict(options)))


def export(run: RunFolder, options: Annotated[Any, "steps.export.ExportOptions"]) -> Output:
    """Write the model as ONNX, with its model card."""
    loaded = _load(run)
    return _printed(loaded, loaded.export(**asdict(options)))


def recalibrate(
    run: RunFolder,
    output: NewRun,
    reading: Annotated[Any, "readers.options.ReaderOptions"],
    options: Annotated[Any, "steps.recalibrate.RecalibrateOptions"],
    export: Votes = None,
) -> Output:
    """Check a model on newly annotated items and calibrate it on them."""
    given = asdict(reading) | asdict(options)
    found = _load(run).recalibrate(export, output, **given)
    return [*found.lines, found.facts]


def _load(folder: Path) -> "Run":
    from credalearn.app.run import Run

    return Run.load(folder)


def _printed(run: "Run", found: Any) -> list[str | dict[str, Any]]:
    """What a run must say first, what was found, and the same as facts; tables are in files."""
    facts = {each.name: getattr(found, each.name) for each in fields(found) if each.name != "table"}
    facts["warnings"] = [*run.warnings, *facts.get("warnings", ())]
    return [*run.warnings, *found.lines, facts]


COMMANDS: dict[str, Callable[..., Output]] = {  # in the order in which a team needs them
    "demo": demo,
    "inspect": inspect,
    "train": train,
    "import": import_,
    "certify": certify,
    "predict": predict,
    "defer": defer,
    "report": report,
    "export": export,
    "recalibrate": recalibrate,
}
