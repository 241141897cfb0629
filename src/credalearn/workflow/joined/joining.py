"""Annotations and inputs brought together, item by item.

Shapes: N items, K classes.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from credalearn.annotations import Annotations
from credalearn.annotations.dawid_skene import dawid_skene
from credalearn.annotations.places import listed, shown
from credalearn.credal import CredalSet
from credalearn.errors import CredalError
from credalearn.workflow.items.columns import ItemColumns
from credalearn.workflow.items.digests import image_digest, refuse_equal_images, row_digests
from credalearn.workflow.items.inputs import FeatureTable, find_images, match_images, read_images
from credalearn.workflow.joined.labelling import gold_classes, majority, make_labels
from credalearn.workflow.joined.options import TrainOptions
from credalearn.workflow.joined.splits import check_splits, split_rounds

# From the items, their digests, what each belongs to, the columns beside them, and how many were
# left out by reason, which it adds to, to the split of each item: "" for those that it leaves out.
Splitter = Callable[
    [list[str], list[str], list[object] | None, ItemColumns | None, dict[str, int]], list[str]
]

# Where the features of items stand that only a later round has, and why others have no votes.
_DEFERRED = " from the table that was given to defer, with a second --features"
_NOT_DEFERRED = ", those that were not deferred among them"


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Items that have both annotation and input, in one order.

    Args:
        items: Names, N.
        X: Inputs, shape (N, ...).
        digests: What each input holds, by :mod:`credalearn.workflow.items.digests`.
        labels: One credal set an item; after Dawid and Skene's model those of training items
            alone, whose votes it may see, and the set of all distributions for the others.
        counts: Votes or shares by class, shape (N, K).
        truth: Index of the true class, −1 where there is none, shape (N,).
        groups: What each item belongs to, or None.
        split: Name of each item's split, the user's own or drawn.
        later: How many items only later rounds have, which are trained on alone.
        left_out: How many items were left out, by reason.
        broken: Why images could not be read, by item.
        matched: How many images were found, by what they were found by.
    """

    items: list[str]
    X: np.ndarray
    digests: list[str]
    labels: CredalSet
    counts: np.ndarray
    truth: np.ndarray
    groups: list[object] | None
    split: list[str]
    later: int
    left_out: dict[str, int]
    broken: dict[str, str]
    matched: dict[str, int]


def prepare(
    annotations: Annotations,
    inputs: FeatureTable | Path,
    options: TrainOptions,
    *,
    columns: ItemColumns | None = None,
    splitter: Splitter | None = None,
) -> Prepared:
    """Join annotations and inputs by item, split them, and make labels and truths.

    Args:
        annotations: What people said.
        inputs: Features, or the folder of images.
        options: How labels are made, what the columns beside the features are, and whether items
            that lack something are left out.
        columns: Those columns for images; features have their own.
        splitter: Splits the items; unless given, into training, calibration and test.

    Raises:
        CredalError: If an item lacks annotation or input and is not to be left out, or a split
            leaks.
    """
    left_out: dict[str, int] = {}
    broken: dict[str, str] = {}
    matched: dict[str, int] = {}
    if isinstance(inputs, Path):
        if options.columns and columns is None:  # passed over, a patient would be in two splits
            raise CredalError(
                f"images have no column {options.columns[0]!r}. To fix: give the table that has it."
            )
        items, X, digests, broken, matched = _images(annotations, inputs, options, left_out)
        beside = None if columns is None else _of_images(columns, items, inputs)
    else:
        items, X, beside = _features(annotations, inputs, options, left_out)
        digests = row_digests(X)
    groups = None if beside is None else _groups(beside, options)
    splitter = splitter or _training_split(annotations, options, images=isinstance(inputs, Path))
    split = splitter(items, digests, groups, beside, left_out)
    kept = [row for row, name in enumerate(split) if name]
    if len(kept) < len(items):
        items, X, split = [items[row] for row in kept], X[kept], [split[row] for row in kept]
        digests = [digests[row] for row in kept]
        groups = None if groups is None else [groups[row] for row in kept]
        beside = None if beside is None else beside.taken(kept, items)
    if isinstance(inputs, Path):
        refuse_equal_images(annotations.source.path, items, digests, split)
    first = first_items(annotations)
    values = dict(zip(annotations.items, annotations.counts(), strict=True))
    counts = np.stack([values[item] for item in items])
    if options.skill == "equal":
        labels = make_labels(
            annotations, counts, options.labels, s=options.s, confidence=options.confidence
        )
    else:
        labels = _skilled(annotations, items, counts, split, options)
    gold = None if beside is None else _gold(beside, annotations.classes, options)
    return Prepared(
        items=items,
        X=X,
        digests=digests,
        labels=labels,
        counts=counts,
        truth=majority(counts) if gold is None else gold,
        groups=groups,
        split=split,
        later=0 if options.split else sum(item not in first for item in items),
        left_out=left_out,
        broken=broken,
        matched=matched,
    )


def first_items(annotations: Annotations) -> set[str]:
    """The items of the first round; later ones were chosen, as who defers chooses hard ones.

    Example:
        >>> from credalearn.annotations.examples import three_items
        >>> sorted(first_items(three_items()))
        ['x', 'y', 'z']
    """
    return set(annotations.items[: annotations.source.first_items])


def _training_split(annotations: Annotations, options: TrainOptions, *, images: bool) -> Splitter:
    """The split, made before the labels, which may not see the votes of other splits."""

    def split(
        items: list[str],
        digests: list[str],
        groups: list[object] | None,
        beside: ItemColumns | None,
        left_out: dict[str, int],
    ) -> list[str]:
        own = None if beside is None else beside.column(options.split)
        if own is None or beside is None:
            known = first_items(annotations)
            first = sum(item in known for item in items)
            together = digests if groups is None and images else groups  # equal images are one
            found = split_rounds(len(items), first, groups=together, seed=options.seed)
        else:
            found = check_splits(own, items, groups=groups, place=beside.place)
        names: list[str] = found.tolist()
        if "" in names:
            of = options.group or "image"
            why = f"of later exports whose {of} is in calibration or test"
            left_out[why] = names.count("")
        return names

    return split


def _skilled(
    annotations: Annotations,
    items: list[str],
    counts: np.ndarray,
    split: list[str],
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
) -> tuple[list[str], np.ndarray, ItemColumns | None]:
    """Items that have features, those features, and the columns beside them, if any."""
    place = {item: row for row, item in enumerate(table.items)}
    items = [item for item in annotations.items if item in place]
    if not items:
        raise CredalError(
            f"no item of {annotations.source.path} has features in {table.path}: they are called "
            f"{listed(annotations.items, 2)} there and {listed(table.items, 2)} here. To fix: name "
            "the column of the items with --item, with the same names in both files."
        )
    skip = options.skip_missing
    said, source = annotations.items, annotations.source
    votes = " and ".join(map(str, (source.path, *source.later)))
    more, rest = (_DEFERRED, _NOT_DEFERRED) if source.later else ("", "")
    _lacking(said, place, "features", table.path, skip=skip, left_out=left_out, more=more)
    _lacking(table.items, set(said), "annotations", votes, skip=skip, left_out=left_out, rest=rest)
    rows = [place[item] for item in items]
    beside = None
    if options.columns:
        beside = ItemColumns(table.path, items, rows, table.extra[rows], table.later)
    return items, table.values[rows], beside


def _images(
    annotations: Annotations, folder: Path, options: TrainOptions, left_out: dict[str, int]
) -> tuple[list[str], np.ndarray, list[str], dict[str, str], dict[str, int]]:
    """Items whose image could be read, their pixels and digests, why others could not, and how."""
    matches = match_images(folder, annotations.items)
    files = {item: file for item, (file, _) in matches.items()}
    if not files:
        raise CredalError(
            f"no item of {annotations.source.path} has an image in {folder}: they are called "
            f"{listed(annotations.items, 2)}. To fix: name the files like the items, or give the "
            "column of the file's name with --item."
        )
    skip, first = options.skip_missing, first_items(annotations)
    later = sum(item not in files and item not in first for item in annotations.items)
    more = f" ({later:,} are items of later exports: put the folder that was given to defer below "
    more = f"{more}{folder})" if later else ""
    _lacking(annotations.items, files, "image", folder, skip=skip, left_out=left_out, more=more)
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
    matched: Counter[str] = Counter(how for _, how in matches.values())
    digests = [image_digest(files[item]) for item in items]
    return items, pixels.astype(np.float32), digests, broken, dict(matched)


def _of_images(columns: ItemColumns, items: list[str], folder: Path) -> ItemColumns:
    """The row of each item: under its own name, or else of the same image."""
    number = {name: row for row, name in enumerate(columns.items)}
    if not all(item in number for item in items):
        row_of = {file: number[name] for name, file in find_images(folder, columns.items).items()}
        files = find_images(folder, items)
        number = {item: row_of[file] for item, file in files.items() if file in row_of} | number
    missing = [item for item in items if item not in number]
    if missing:
        raise CredalError(
            f"{len(missing):,} of {len(items):,} items have no row in {columns.path}: "
            f"{listed(missing, 3)}. To fix: add them, or name another table with --table."
        )
    return columns.taken([number[item] for item in items], items)


def _lacking(
    items: Sequence[str],
    there: Container[str],
    what: str,
    where: Path | str,
    *,
    skip: bool,
    left_out: dict[str, int],
    more: str = "",
    rest: str = "",
) -> None:
    """Count the items that lack something, or refuse to go on without them."""
    missing = [item for item in items if item not in there]
    if not missing:
        return
    if not skip:
        raise CredalError(
            f"{len(missing):,} of {len(items):,} items have no {what} in {where}: "
            f"{listed(missing, 3)}. To fix: add them{more}, or give --skip-missing to leave them "
            f"out{rest}."
        )
    left_out[f"without {what}"] = len(missing)


def _groups(beside: ItemColumns, options: TrainOptions) -> list[object] | None:
    """What each item belongs to: "p7 " is p7, and the 7.0 that a gap in the column makes is 7."""
    named = beside.column(options.group)
    if named is None:
        return None
    groups: list[object] = [None if each is None else _plain(str(each)) for each in named]
    for row, group in enumerate(groups):
        if not group:
            raise CredalError(
                f"{beside.place(row)}: item {shown(beside.items[row])} has no {options.group!r}, "
                "so nothing says what it belongs with. To fix: fill the column, with a name of "
                "its own if it stands alone."
            )
    return groups


def _gold(
    beside: ItemColumns, classes: tuple[str, ...], options: TrainOptions
) -> np.ndarray | None:
    """The true classes, if some are known."""
    gold = beside.column(options.gold)
    if gold is None:
        return None
    found = gold_classes(gold, classes, beside.items, place=beside.place)
    if (found < 0).all():
        raise CredalError(
            f"{beside.path}, column {options.gold!r}: no item has a gold label. To fix: fill the "
            "column, or leave --gold out."
        )
    return found


def _plain(name: str) -> str:
    return re.sub(r"^(-?\d+)\.0$", r"\1", unicodedata.normalize("NFC", name).strip())
