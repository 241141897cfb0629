"""``credalearn recalibrate``: a run's model and newly annotated items into a run, not trained."""

import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from credalearn._checks import folded, nearest
from credalearn.app.annotations import Annotations, read_annotations
from credalearn.app.annotations.columns import ITEM
from credalearn.app.annotations.places import listed
from credalearn.app.items.checked import check_features
from credalearn.app.items.columns import ItemColumns
from credalearn.app.items.inputs import FeatureTable
from credalearn.app.items.known import known_items
from credalearn.app.joined.joining import Splitter, first_items, prepare
from credalearn.app.joined.options import RecalibrateOptions
from credalearn.app.joined.rounds import holds
from credalearn.app.joined.splits import HELD_OUT, check_splits, split_items
from credalearn.app.report.card_file import CARD, is_card
from credalearn.app.run import Run, write_run
from credalearn.app.staging import CHECKPOINTS, MODEL, check_place, partial_of, staged
from credalearn.app.steps.predicted import make_tables
from credalearn.app.steps.training import data_facts
from credalearn.app.tables.arrays import array_columns, is_array
from credalearn.errors import CredalError


def recalibrate_run(
    run: Run,
    output: str | Path,
    annotations: Annotations,
    inputs: FeatureTable | Path,
    options: RecalibrateOptions | None = None,
    *,
    columns: ItemColumns | None = None,
) -> Run:
    """A new run with the model of another, to be certified and tested on new items.

    Nothing is trained, and ``run`` stays as it is. Half of the items calibrate, half test. Items
    that the model was trained on are left out: by what they hold, whatever they are called, and by
    group where training kept the same groups together. The new items must be a random sample of
    those to come.

    Args:
        run: Whose model it is.
        output: Folder of the new run.
        annotations: What people said of the new items, read with the classes of ``run``.
        inputs: Their features, by the names of training, or the folder of their images.
        options: How they are read and split.
        columns: Groups, splits and true classes of images; features have their own.

    Raises:
        CredalError: If the output holds a run or is inside ``run``, items, classes or features do
            not fit the model, none is left, or the new run cannot be written.

    """
    output, options = Path(output), options or RecalibrateOptions()
    check_new_place(run, output)
    _check_classes(run, annotations)
    inputs = _model_inputs(run, inputs)
    as_trained = options.for_images_of(run.facts.inputs.image_size)
    splitter = _splitter(run, annotations, options)
    prepared = prepare(annotations, inputs, as_trained, columns=columns, splitter=splitter)
    with staged(output) as folder:
        _copy_model(run, folder)
        # Their digests tell ``predict`` what was trained on; their votes are the other run's.
        trained = _trained(run).select("item", "split", "group", "digest")
        tables = make_tables(annotations, prepared, run.load_model(), trained=trained)
        facts = data_facts(annotations, inputs, prepared, as_trained, columns=columns)
        facts |= {
            name: getattr(run.facts, name)
            for name in ("options", "label_diameter", "loss_curve", "seconds")
        }
        facts["recalibrated_from"] = run.training
        write_run(folder, facts, model_sha256=run.facts.sha256.model, **tables)
    return Run.load(output)


def check_new_place(run: Run, output: Path) -> None:
    """Refuse a place that would change a run.

    Raises:
        CredalError: If it holds a run or the start of one, or lies in this one.
    """
    if output.resolve().is_relative_to(run.path.resolve()):
        what = "is" if output.resolve() == run.path.resolve() else "lies in"
        raise CredalError(f"{output} {what} the run {run.path}. To fix: name a folder beside it.")
    if (output / "run.json").exists():
        raise CredalError(f"{output} holds a finished run. To fix: name a new folder.")
    if any(partial_of(output).glob(CHECKPOINTS)):
        raise CredalError(
            f"a training that was stopped waits at {output} to go on. To fix: name a new folder."
        )
    check_place(output)


def known_item(run: Run, path: str | Path) -> str | None:
    """The column or field that named the items of a run's export, where another has it too.

    None for names that are found anyway: another export may have an ``id`` of its own beside a
    better one.

    Args:
        run: The run.
        path: The other export.

    """
    name: str | None = run.facts.annotations.item
    if name is None or not holds(path, name):
        return None
    return None if folded(name) in (*ITEM, "text") else name


def arrays_beside(run: Run, features: Sequence[Path], asked: Sequence[str]) -> tuple[str, ...]:
    """Arrays of npz files that training was told of and that nobody asks for now."""
    held = {name for path in features if is_array(path) for name in array_columns(path)}
    return tuple(name for name in run.columns_beside if name in held and name not in asked)


def read_new(run: Run, path: str | Path, asked: dict[str, Any]) -> Annotations:
    """Annotations of new items, with the classes of a run.

    Args:
        run: Whose classes hold.
        path: The export.
        asked: Options of :func:`~credalearn.app.annotations.read_annotations`, without classes.

    Raises:
        CredalError: If it cannot be read, or has a class that the run does not know.
    """
    try:
        return read_annotations(path, **{**asked, "classes": run.classes})
    except CredalError:
        found = None
        with suppress(CredalError):  # which says less than the first
            found = read_annotations(path, **{**asked, "classes": None})
        if found is not None:
            _refuse_unknown(run, found)
            _refuse_missing(run, found)
        raise


def check_kind(run: Run, path: Path, kind: str) -> None:
    """Refuse images for a model of features, and features for one of images.

    Raises:
        CredalError: If ``kind``, what the path is to hold, is not what the model takes.
    """
    takes = run.facts.inputs.kind
    if takes != kind:
        raise CredalError(
            f"the model of {run.path} takes {takes}, and {path} is given as {kind}. To fix: give "
            f"--{takes}."
        )


def doubts(run: Run, new: Run, options: RecalibrateOptions) -> list[str]:
    """Lines about trained items that nothing could tell among the new ones.

    Args:
        run: Whose model it is.
        new: The run on the new items.
        options: How they were read.
    """
    together = run.training.splits.group
    lines = lost_group(new)
    if together is None and options.group is not None:
        lines.append(f"the model was trained without groups: which {options.group} it has seen is")
        lines[-1] += " not known"
    if known_items(run, ["train"]).alike:
        lines.append(
            f"many items of {run.path} have the features of another: only items with the name and "
            "the features of one that the model was trained on are left out"
        )
    trained = set(_trained(run)["item"])
    named = sum(name in trained for name in new.predictions["item"])
    if named:
        lines.append(
            f"{named:,} items are called like items that the model was trained on, but hold "
            "something else: they are taken for new ones"
        )
    return lines


def lost_group(run: Run) -> list[str]:
    """A line about groups that training kept together and the calibration does not know."""
    together = run.training.splits.group
    if together in (None, run.group):
        return []
    return [
        f"the model was trained with --group {together} and calibrated again without it: nothing "
        "tells which of the new items are of groups that it has seen"
    ]


def _check_classes(run: Run, annotations: Annotations) -> None:
    _refuse_unknown(run, annotations)
    if annotations.classes != run.classes:
        raise CredalError(
            f"{annotations.source.path} was read with the classes {listed(annotations.classes)}; "
            f"those of {run.path} are {listed(run.classes)}. To fix: read it with these."
        )


def _refuse_unknown(run: Run, annotations: Annotations) -> None:
    unknown = [name for name in annotations.classes if name not in run.classes]
    if unknown:
        near = nearest(unknown[0], run.classes)
        fix = f"write {near!r}" if near else "train again with it"
        raise CredalError(
            f"{annotations.source.path} has the class {listed(unknown, 3)}, which the model of "
            f"{run.path} does not know; it knows {listed(run.classes)}. To fix: {fix}; or, if it "
            "means that people do not know, name it with --unsure."
        )


def _refuse_missing(run: Run, annotations: Annotations) -> None:
    missing = [name for name in run.classes if name not in annotations.classes]
    if missing and annotations.kind in ("counts", "probabilities"):
        raise CredalError(
            f"{annotations.source.path} has no column of the class {listed(missing, 3)}, which the "
            f"model of {run.path} knows. To fix: add it, with 0 where nobody said so."
        )


def _model_inputs(run: Run, inputs: FeatureTable | Path) -> FeatureTable | Path:
    """What the model takes: images, or its features in its order."""
    if isinstance(inputs, Path):
        check_kind(run, inputs, "images")
        return inputs
    check_kind(run, inputs.path, "features")
    names = list(run.facts.inputs.features)
    check_features(inputs.path, inputs.names, names)
    if known_items(run, ["train"]).alike:
        for path in inputs.unnamed:
            _check_unnamed(run, path)
    order = [inputs.names.index(name) for name in names]
    return replace(inputs, names=names, values=inputs.values[:, order])


def _check_unnamed(run: Run, path: Path) -> None:
    """Rows are the same items as in training if they are of the same file alone."""
    before = Path(run.training.inputs.path)
    if not (before.exists() and before.samefile(path)):
        raise CredalError(
            f"the rows of {path} have no names, so nothing tells which of them the model was "
            "trained on. To fix: name them in an array 'items' of an npz file, or give a table."
        )


def _splitter(run: Run, annotations: Annotations, options: RecalibrateOptions) -> Splitter:
    """Halves of what the model was not trained on."""

    def split(
        items: list[str],
        digests: list[str],
        groups: list[object] | None,
        beside: ItemColumns | None,
        left_out: dict[str, int],
    ) -> list[str]:
        reasons = _left_out(run, annotations, options, items, digests, groups)
        left_out |= Counter(filter(None, reasons))
        kept = [row for row, why in enumerate(reasons) if not why]
        if not kept:
            told = ", ".join(f"{count:,} {why}" for why, count in left_out.items())
            raise CredalError(
                f"no item of {annotations.source.path} is left to calibrate on: {told}. To fix: "
                "have items annotated that the model has not seen."
            )
        some = [items[row] for row in kept]
        theirs = None if groups is None else [groups[row] for row in kept]
        alike = [digests[row] for row in kept] if theirs is None and run.takes_images else theirs
        own = None if beside is None else beside.column(options.split)
        if own is None or beside is None:
            found = split_items(
                len(some), groups=alike, random_state=options.random_state, names=HELD_OUT
            )
        else:
            place = beside.taken(kept, some).place
            named = [own[row] for row in kept]
            found = check_splits(named, some, groups=theirs, place=place, names=HELD_OUT)
        names = dict(zip(kept, found.tolist(), strict=True))
        return [names.get(row, "") for row in range(len(items))]

    return split


def _left_out(
    run: Run,
    annotations: Annotations,
    options: RecalibrateOptions,
    items: list[str],
    digests: list[str],
    groups: list[object] | None,
) -> list[str]:
    """Why each item may not be calibrated on; "" where it may."""
    table = _trained(run)
    trained = known_items(run, ["train"]).among(items, digests)
    together = run.training.splits.group
    known = set(table["group"].drop_nulls()) if together == options.group else set()
    first = first_items(annotations)
    of_group = f"whose {options.group} the model was trained on"
    found = []
    for row, item in enumerate(items):
        if trained[row]:
            found.append("that the model was trained on")
        elif groups is not None and str(groups[row]) in known:
            found.append(of_group)
        else:
            found.append("" if item in first else "of later exports, which were chosen")
    return found


def _trained(run: Run) -> pl.DataFrame:
    return run.items.filter(split="train")


def _copy_model(run: Run, folder: Path) -> None:
    """The model's files without its card, which tells of the other run's items."""

    def card(place: str, names: list[str]) -> list[str]:
        return [CARD] if CARD in names and is_card(Path(place) / CARD) else []

    shutil.copytree(run.path / MODEL, folder / MODEL, ignore=card, dirs_exist_ok=True)
