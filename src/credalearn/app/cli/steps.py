"""The commands from a trained model to decisions and a report, each a thin face of a step."""

from pathlib import Path
from typing import Annotated

import typer

from credalearn.app.cli.options import Against, Certify, Distance, Item, Run, Scale, Target


def certify(
    run: Run,
    max_error: Annotated[
        float | None, typer.Option(help="Largest error of what is predicted, such as 0.10.")
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(help="Share of items that reviewers can take, such as 0.25.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the promise.")] = 0.95,
    method: Annotated[
        Certify | None, typer.Option(help="How an error is certified.", show_default="sgr")
    ] = None,
    against: Annotated[
        Against, typer.Option(help="Wrong against the run's truth, or a random annotator.")
    ] = Against.truth,
    one_per_group: Annotated[
        bool,
        typer.Option("--one-per-group", help="Calibrate on one item of each group, independent."),
    ] = False,
    set_coverage: Annotated[
        float | None,
        typer.Option(help="Widen sets to hold the votes on this share of new items, such as 0.90."),
    ] = None,
    distance: Annotated[
        Distance,
        typer.Option(help="Of --set-coverage: votes from a set, by class (box) or as a whole."),
    ] = Distance.box,
    scale: Annotated[
        Scale,
        typer.Option(help="Of --set-coverage: sets are widened in units of it; none: all alike."),
    ] = Scale.relative_variance,
) -> None:
    """Choose the threshold above which items go to a human, with what that promises."""
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.certify import CertifyOptions
    from credalearn.app.steps.certify import certify as certify_run

    options = CertifyOptions(
        max_error=max_error,
        capacity=capacity,
        confidence=confidence,
        method=method.value if method else "sgr",
        against=against.value,
        one_per_group=one_per_group,
        set_coverage=set_coverage,
        distance=distance.value,
        scale=scale.value,
    )
    for line in certify_run(LoadedRun.load(run), options).lines:
        print(line)


def predict(
    run: Run,
    data: Annotated[Path, typer.Argument(help="Features of the items, or a folder of images.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A file: .csv, .tsv, .parquet or .jsonl.")
    ],
    item: Item = None,
    threshold: Annotated[
        float | None, typer.Option(help="Defer above this score instead of by the rule.")
    ] = None,
    no_decision: Annotated[
        bool, typer.Option("--no-decision", help="Predict without a rule; nothing is deferred.")
    ] = False,
    defer: Annotated[
        int | None,
        typer.Option(min=0, help="Defer so many, the least certain, instead of by the rule."),
    ] = None,
    all_classes: Annotated[
        bool,
        typer.Option("--all-classes", help="Also the probability and the bounds of every class."),
    ] = False,
) -> None:
    """Label every item and say which to give to a human."""
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.predicting import predict as predict_items

    summary = predict_items(
        LoadedRun.load(run),
        data,
        output,
        item=item,
        threshold=threshold,
        decide=not no_decision,
        defer=defer,
        all_classes=all_classes,
    )
    for line in summary.lines:
        print(line)


def defer(
    run: Run,
    data: Annotated[
        Path, typer.Argument(help="Features or images, or a file that `predict` wrote.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file for the annotators.")],
    to: Annotated[Target, typer.Option(help="What it is for.")] = Target.label_studio,
    threshold: Annotated[
        float | None, typer.Option(help="Defer above this score instead of by the rule.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Write at most this many.")] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="Column of DATA that annotators read.",
            show_default="text, or the only one that holds texts",
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where DATA is what `predict` wrote.")
    ] = None,
    image_prefix: Annotated[
        str, typer.Option(help="What stands before an image's path in Label Studio's tasks.")
    ] = "/data/local-files/?d=",
    no_predictions: Annotated[
        bool, typer.Option("--no-predictions", help="Hide what the model said from annotators.")
    ] = False,
    item: Item = None,
) -> None:
    """Hand the deferred items, least certain first, back to the annotators."""
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.deferring import defer as defer_items

    summary = defer_items(
        LoadedRun.load(run),
        data,
        output,
        to=to.value,
        threshold=threshold,
        limit=limit,
        item=item,
        text=text,
        images=images,
        image_prefix=image_prefix,
        predictions=not no_predictions,
    )
    for line in summary.lines:
        print(line)


def export(
    run: Run,
    onnx: Annotated[Path, typer.Option("--onnx", help="The ONNX file to write.")],
) -> None:
    """Write the model as ONNX, with both heads, bounds and score, and its model card."""
    from credalearn.app.report.card import card_places, write_card
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.exporting import check_onnx, export_onnx

    folder = LoadedRun.load(run)
    cards = card_places(folder, check_onnx(onnx))
    export_onnx(folder, onnx)
    for path in cards:
        write_card(folder, path)
    print(onnx, *cards, sep="\n")


def report(
    runs: Annotated[list[Path], typer.Argument(help="The run; others are compared with it.")],
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images.", show_default="as in training")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .html file.", show_default="RUN/report.html"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
) -> None:
    """Write one self-contained HTML page about a run."""
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.report import ReportOptions
    from credalearn.app.steps.report import report as write_report

    first, *others = (LoadedRun.load(path) for path in runs)
    options = ReportOptions(images=images, output=output, title=title)
    print(*write_report(first, options, others).lines, sep="\n")


STEPS = (certify, predict, defer, export, report)
