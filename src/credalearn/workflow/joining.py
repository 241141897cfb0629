"""Annotations and inputs brought together, item by item.

Shapes: N items, K classes.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from credalearn.annotations import Annotations
from credalearn.annotations.dawid_skene import dawid_skene
from credalearn.annotations.places import listed, shown
from credalearn.credal import CredalSet
from credalearn.errors import CredalError
from credalearn.workflow.inputs import FeatureTable, find_images, read_images
from credalearn.workflow.labelling import gold_classes, majority, make_labels
from credalearn.workflow.options import TrainOptions
from credalearn.workflow.splits import check_splits, split_items


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Items that have both annotation and input, in one order.

    Args:
        items: Names, N.
        X: Inputs, shape (N, ...).
        labels: One credal set an item; after Dawid and Skene's model those of training items
            alone, whose votes it may see, and the set of all distributions for the others.
        counts: Votes or shares by class, shape (N, K).
        truth: Index of the true class, −1 where there is none, shape (N,).
        groups: What each item belongs to, or None.
        split: A split of the user's own, or the one that the labels needed, or None.
        left_out: How many items were left out, by reason.
        broken: Why images could not be read, by item.
    """

    items: list[str]
    X: np.ndarray
    labels: CredalSet
    counts: np.ndarray
    truth: np.ndarray
    groups: list[object] | None
    split: list[object] | None
    left_out: dict[str, int]
    broken: dict[str, str]


def prepare(
    annotations: Annotations, inputs: FeatureTable | Path, options: TrainOptions
) -> Prepared:
    """Join annotations and inputs by item, and make labels and truths.

    Args:
        annotations: What people said.
        inputs: Features, or the folder of images.
        options: How labels are made, what the columns beside the features are, and whether items
            that lack something are left out.

    Raises:
        CredalError: If an item lacks annotation or input and is not to be left out.
    """
    left_out: dict[str, int] = {}
    broken: dict[str, str] = {}
    columns: dict[str, list[object]] = {}
    if isinstance(inputs, Path):
        items, X, broken = _images(annotations, inputs, options, left_out)
    else:
        items, X, columns = _features(annotations, inputs, options, left_out)
    values = dict(zip(annotations.items, annotations.counts(), strict=True))
    counts = np.stack([values[item] for item in items])
    gold = columns.get(options.gold or "")
    groups = columns.get(options.group or "")
    if groups is not None:
        _check_groups(items, groups, str(options.group))
    split = columns.get(options.split or "")
    if options.skill == "equal":
        labels = make_labels(
            annotations, counts, options.labels, s=options.s, confidence=options.confidence
        )
    else:
        split = _split(items, groups, split, options)
        labels = _skilled(annotations, items, counts, split, options)
    return Prepared(
        items=items,
        X=X,
        labels=labels,
        counts=counts,
        truth=majority(counts) if gold is None else gold_classes(gold, annotations.classes, items),
        groups=groups,
        split=split,
        left_out=left_out,
        broken=broken,
    )


def _split(
    items: list[str],
    groups: list[object] | None,
    split: list[object] | None,
    options: TrainOptions,
) -> list[object]:
    """The split, made before the labels where these must not see the votes of other splits."""
    if split is not None:
        found = check_splits(split, items, groups=groups)
    else:
        found = split_items(len(items), groups=groups, seed=options.seed)
    names: list[object] = found.tolist()
    return names


def _skilled(
    annotations: Annotations,
    items: list[str],
    counts: np.ndarray,
    split: list[object],
    options: TrainOptions,
) -> CredalSet:
    """Labels after a model of the annotators that knows the votes about training items alone.

    With the others' votes in it, the labels would tell of the items that the model is calibrated
    and tested on.
    """
    training = np.array([name == "train" for name in split])
    learnt_from = {item for item, used in zip(items, training, strict=True) if used}
    among = np.array([item in learnt_from for item in annotations.items])
    found = dict(zip(annotations.items, dawid_skene(annotations, among=among), strict=True))
    posterior = np.stack([found[item] for item in items])
    return make_labels(
        annotations,
        counts * training[:, None],
        options.labels,
        s=options.s,
        confidence=options.confidence,
        posterior=posterior,
    )


def _features(
    annotations: Annotations, table: FeatureTable, options: TrainOptions, left_out: dict[str, int]
) -> tuple[list[str], np.ndarray, dict[str, list[object]]]:
    """Items that have features, those features, and the columns beside them."""
    place = {item: row for row, item in enumerate(table.items)}
    items = [item for item in annotations.items if item in place]
    if not items:
        raise CredalError(
            f"no item of {annotations.source.path} has features in {table.path}: they are called "
            f"{listed(annotations.items, 2)} there and {listed(table.items, 2)} here. To fix: name "
            "the column of the items with --item, with the same names in both files."
        )
    skip = options.skip_missing
    for names, there, path, what in (
        (annotations.items, place, table.path, "features"),
        (table.items, set(annotations.items), annotations.source.path, "annotations"),
    ):
        _lacking(names, there, what, path, skip=skip, left_out=left_out)
    rows = [place[item] for item in items]
    extra = table.extra[rows] if table.extra.width else pl.DataFrame()
    return items, table.values[rows], {name: extra[name].to_list() for name in extra.columns}


def _images(
    annotations: Annotations, folder: Path, options: TrainOptions, left_out: dict[str, int]
) -> tuple[list[str], np.ndarray, dict[str, str]]:
    """Items whose image could be read, their pixels as float32, and why others could not."""
    files = find_images(folder, annotations.items)
    if not files:
        raise CredalError(
            f"no item of {annotations.source.path} has an image in {folder}: they are called "
            f"{listed(annotations.items, 2)}. To fix: name the files like the items, or give the "
            "column of the file's name with --item."
        )
    skip = options.skip_missing
    _lacking(annotations.items, files, "image", folder, skip=skip, left_out=left_out)
    owner: dict[Path, str] = {}
    for item, file in files.items():
        if owner.setdefault(file, item) != item:
            raise CredalError(
                f"the items {shown(owner[file])} and {shown(item)} of {annotations.source.path} "
                f"have the same image, {file}: it would be trained and tested on. To fix: give "
                "one of them its own image, or both one name."
            )
    pixels, items, broken = read_images(files, options.image_size)
    if broken:
        left_out["with an unreadable image"] = len(broken)
    return items, pixels.astype(np.float32), broken


def _lacking(
    items: Sequence[str],
    there: Container[str],
    what: str,
    path: Path,
    *,
    skip: bool,
    left_out: dict[str, int],
) -> None:
    """Count the items that lack something, or refuse to go on without them."""
    missing = [item for item in items if item not in there]
    if not missing:
        return
    if not skip:
        raise CredalError(
            f"{len(missing):,} of {len(items):,} items have no {what} in {path}: "
            f"{listed(missing, 3)}. To fix: add them, or give --skip-missing to leave them out."
        )
    left_out[f"without {what}"] = len(missing)


def _check_groups(items: list[str], groups: list[object], column: str) -> None:
    for item, group in zip(items, groups, strict=True):
        if group is None or group == "":
            raise CredalError(
                f"item {shown(item)} has no {column!r}, so nothing says what it belongs with. To "
                "fix: fill the column, with a name of its own if it stands alone."
            )
