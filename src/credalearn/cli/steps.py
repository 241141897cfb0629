"""The commands from an annotation export to certified decisions, each a thin face of a step."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credalearn.cli.options import (
    Against,
    Annotator,
    Certify,
    Classes,
    Conflicts,
    Delimiter,
    Encoding,
    Export,
    Form,
    Item,
    Label,
    Labels,
    Question,
    Run,
    Skill,
    Target,
    Unsure,
    Weight,
)

if TYPE_CHECKING:
    from credalearn.workflow.folder import RunFolder
    from credalearn.workflow.inputs import FeatureTable

# Mean diameter of labels. POCC on Clopper–Pearson labels of CIFAR-10H's features: at .84 (three
# votes) chance, at .68 (five) 20 points below softmax, at .46 (ten) level with it.
_MUCH_OPEN = 0.6


def inspect(
    export: Export,
    item: Item = None,
    annotator: Annotator = None,
    label: Label = None,
    weight: Weight = None,
    question: Question = None,
    classes: Classes = None,
    unsure: Unsure = None,
    form: Form = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
) -> None:
    """Say what an export holds and who disagrees about what."""
    from credalearn.annotations import read_annotations
    from credalearn.workflow.inspecting import inspection

    _refuse_joined(classes)
    found = read_annotations(
        export,
        format=form,
        item=item,
        annotator=annotator,
        label=label,
        weight=weight,
        question=question,
        classes=classes,
        unsure=tuple(unsure or ()),
        encoding=encoding,
        delimiter=delimiter,
    )
    for line in inspection(found):
        print(line)


def train(
    export: Export,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")],
    features: Annotated[
        Path | None, typer.Option(help="Numbers of each item: CSV, TSV, Parquet, npy or npz.")
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder with an image of each item.")] = None,
    labels: Annotated[Labels, typer.Option(help="What votes become.")] = Labels.relax_ties,
    s: Annotated[
        float, typer.Option("--s", help="Strength of the imprecise Dirichlet model (idm).")
    ] = 1.0,
    confidence: Annotated[float, typer.Option(help="Of the label rules that promise one.")] = 0.95,
    skill: Annotated[
        Skill, typer.Option(help="Whether votes count alike, or by the annotators' skill.")
    ] = Skill.equal,
    method: Annotated[str, typer.Option(help="A method, for instance pocc or softmax.")] = "pocc",
    backbone: Annotated[
        str | None,
        typer.Option(
            help="mlp, resnet18, wrn-28-4, timm:NAME, torchvision:NAME.",
            show_default="mlp for features, resnet18 for images",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Column beside the features: its items stay in one split.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="Column beside the features with the true class.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Column beside the features: train, calibration or test.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="With --images, the table that --group, --gold and --split name columns of.",
            show_default="the export",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    image_size: Annotated[int, typer.Option(min=8, help="Pixels that images become.")] = 64,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training items.")] = 50,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of everything random.")] = 0,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Leave out items without input, inputs without votes."),
    ] = False,
    merge_item: Annotated[
        str | None,
        typer.Option(help="Column or field that names the item in them.", show_default="found"),
    ] = None,
    merge: Annotated[
        list[Path] | None, typer.Option(help="A later export to add; may be repeated.")
    ] = None,
    merge_conflicts: Annotated[
        Conflicts,
        typer.Option(help="Where two exports say different things; counts may be added."),
    ] = Conflicts.refuse,
    item: Item = None,
    annotator: Annotator = None,
    label: Label = None,
    weight: Weight = None,
    question: Question = None,
    classes: Classes = None,
    unsure: Unsure = None,
    form: Form = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
) -> None:
    """Train a model on annotated items; killed and called again, it goes on where it stopped."""
    from credalearn.annotations import read_annotations
    from credalearn.errors import CredalError
    from credalearn.workflow.inputs import read_features
    from credalearn.workflow.inspecting import inspection
    from credalearn.workflow.item_columns import read_item_columns
    from credalearn.workflow.labelling import refuse_typos
    from credalearn.workflow.merging import merge as merged
    from credalearn.workflow.options import TrainOptions
    from credalearn.workflow.rounds import read_round
    from credalearn.workflow.staging import check_place
    from credalearn.workflow.training import train_run

    if (features is None) == (images is None):
        raise CredalError("give one of --features and --images: what the model is to see.")
    options = TrainOptions(
        labels=labels.value,
        s=s,
        confidence=confidence,
        skill=skill.value,
        method=method,
        backbone=backbone,
        group=group,
        gold=gold,
        split=split,
        image_size=image_size,
        epochs=epochs,
        seed=seed,
        skip_missing=skip_missing,
    )
    if images is not None and drop:
        raise CredalError(
            "--drop names a column of --features; with --images there are none. To fix: leave it "
            "out."
        )
    if features is not None and table is not None:
        raise CredalError(
            "--table goes with --images; the columns beside features stand in --features. To fix: "
            "leave it out."
        )
    _refuse_joined(classes)
    check_place(output)  # before a large export is read
    asked: dict[str, Any] = {
        "item": item,
        "annotator": annotator,
        "label": label,
        "weight": weight,
        "question": question,
        "classes": classes,
        "unsure": tuple(unsure or ()),
        "encoding": encoding,
        "delimiter": delimiter,
    }
    found = read_annotations(export, format=form, **asked)
    for later in merge or ():
        again = read_round(later, found, asked, item=merge_item, images=images)
        found = merged(found, again, conflicts=merge_conflicts.value)
    if classes is None:
        refuse_typos(found)
    columns = None
    if features is None:
        assert images is not None
        inputs: FeatureTable | Path = images
        if options.columns:
            columns = read_item_columns(table or export, options.columns, item=item)
    else:
        column = _item_column(features, item)
        inputs = read_features(features, item=column, extra=options.columns, drop=tuple(drop or ()))
    for line in inspection(found):
        print(line)
    if features is not None:
        for line in _row_numbers(features):
            print(line)
    if (output / "run.json").exists():
        print(
            f"{output} holds a finished run: it stays until this one is done, which then replaces"
        )
        print("it with its rule and its sets; give another -o to keep both")
    run = train_run(output, found, inputs, options, columns=columns)
    for line in _trained(run):
        print(line)


def _refuse_joined(classes: list[str] | None) -> None:
    """One class with commas in it is meant to be several."""
    from credalearn.errors import CredalError

    if classes is not None and len(classes) == 1 and "," in classes[0]:
        names = [name.strip() for name in classes[0].split(",")]
        repeated = " ".join(f"--classes {name}" for name in names)
        raise CredalError(
            f"--classes takes one class; got {classes[0]!r}. To fix: repeat it: {repeated}."
        )


def _item_column(features: Path, item: str | None) -> str | None:
    """The export's name of the item's column, where the features have a column of that name."""
    from credalearn.workflow.blocks import columns_of

    if item is None or features.suffix.lower() in (".npy", ".npz"):
        return None
    return item if item in columns_of(features) else None


def _row_numbers(features: Path) -> Iterator[str]:
    """Which columns are not read, as they number the rows."""
    from credalearn.workflow.blocks import index_columns

    if features.suffix.lower() in (".npy", ".npz"):
        return
    for name in index_columns(features):
        what = f"the column {name!r}" if name else "the column without a name"
        yield f"left out: {what} of {features}, as pandas writes the numbers of the rows"


def _trained(run: "RunFolder") -> Iterator[str]:
    from credalearn.methods import METHODS

    facts = run.facts
    inputs, splits = facts["inputs"], facts["splits"]
    for name, why in list(inputs["unreadable"].items())[:5]:
        yield f"cannot be read: {name}, {why}"
    if inputs["matched"]:
        found = ", ".join(f"{count:,} by {how}" for how, count in inputs["matched"].items())
        yield f"images found: {found}"
    for reason, count in inputs["left_out"].items():
        yield f"left out: {count:,} items {reason}"
    open_sets = facts["label_diameter"] > _MUCH_OPEN
    if open_sets and METHODS[facts["method"]].learns_sets:
        under, fix = f" under {facts['label_rule']!r}", "collect more votes an item"
        if run.said == "bounds":  # as they were stated, whatever the rule
            under, fix = "", "state larger bounds"
        elif facts["label_rule"] != "relax-ties":
            fix = f"give --labels relax-ties, or {fix}"
        yield (
            f"the labels leave much open (mean diameter {facts['label_diameter']:.2f} "
            f"of 1{under}): little can be learnt from them. To fix: {fix}"
        )
    sizes = ", ".join(f"{splits[name]:,} {name}" for name in ("train", "calibration", "test"))
    yield f"{run.path}: trained {facts['method']} in {facts['seconds']:.1f} s; {sizes}"
    yield f"next: credalearn certify {run.path} --max-error 0.10"


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
    set_coverage: Annotated[
        float | None,
        typer.Option(help="Widen sets to hold the votes on this share of new items, such as 0.90."),
    ] = None,
) -> None:
    """Choose the threshold above which items go to a human, with what that promises."""
    from credalearn.errors import CredalError
    from credalearn.workflow.certifying import certify_run
    from credalearn.workflow.covering import certify_sets, keep_sets
    from credalearn.workflow.folder import RunFolder

    folder = RunFolder(run)
    sets = None if set_coverage is None else certify_sets(folder, coverage=set_coverage)
    if sets is not None and sets.inflation.vacuous:
        raise CredalError(
            f"sets cannot be widened so far, and nothing was written. {sets.inflation.statement} "
            "To fix: have more items annotated and train again, or give a smaller --set-coverage."
        )
    found = None
    if sets is None or max_error is not None or capacity is not None:
        found = certify_run(
            folder,
            max_error=max_error,
            capacity=capacity,
            confidence=confidence,
            method=method.value if method else None,
            against=against.value,
        )
    if sets is not None:  # after the rule, so that what is refused there changes nothing
        keep_sets(folder, sets.inflation)
    for line in (*(found.lines if found else ()), *(sets.lines if sets else ())):
        print(line)
    without = " --no-decision" if folder.rule is None else ""
    print(f"next: credalearn predict {run} DATA -o decisions.csv{without}; credalearn report {run}")


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
) -> None:
    """Label every item and say which to give to a human."""
    from credalearn.workflow.folder import RunFolder
    from credalearn.workflow.predicting import predict as predict_items

    summary = predict_items(
        RunFolder(run),
        data,
        output,
        item=item,
        threshold=threshold,
        decide=not no_decision,
        defer=defer,
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
    from credalearn.workflow.deferring import defer as defer_items
    from credalearn.workflow.folder import RunFolder

    summary = defer_items(
        RunFolder(run),
        data,
        output,
        to=to.value,
        threshold=threshold,
        limit=limit,
        item=item,
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
    from credalearn.workflow.card import card_places, write_card
    from credalearn.workflow.exporting import export_onnx
    from credalearn.workflow.folder import RunFolder

    folder = RunFolder(run)
    cards = card_places(folder, onnx)
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
        typer.Option("--output", "-o", help="The file.", show_default="RUN/report.html"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
) -> None:
    """Write one self-contained HTML page about a run."""
    from credalearn.workflow.folder import RunFolder
    from credalearn.workflow.reporting import write_report

    first, *others = (RunFolder(path) for path in runs)
    path = write_report(first, others=others, images=images, output=output, title=title)
    print(path)


STEPS = (inspect, train, certify, predict, defer, export, report)
