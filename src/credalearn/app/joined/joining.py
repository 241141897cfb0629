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

from credalearn.app.annotations import Annotations
from credalearn.app.annotations.places import listed, many, shown
from credalearn.app.items.columns import ItemColumns
from credalearn.app.items.digests import image_digest, refuse_equal_images, row_digests
from credalearn.app.items.inputs import FeatureTable, find_images, match_images, read_images
from credalearn.app.joined.labeling import gold_classes, majority
from credalearn.app.joined.options import TrainOptions
from credalearn.app.joined.splits import check_splits, split_rounds, train_later
from credalearn.errors import CredalError

# From the items, their digests, what each belongs to, the columns beside them, and how many were
# left out by reason, which it adds to, to the split of each item: "" for those that it leaves out.
Splitter = Callable[
    [list[str], list[str], list[object] | None, ItemColumns | None, dict[str, int]], list[str]
]

# Where the features of items stand that only a later round has, and why others have no votes.
_DEFERRED = " from the table that was given to defer, with a second --features"
_NOT_DEFERRED = ", those that were not deferred among them"
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Items that have both annotation and input, in one order.

    Args:
        items: Names, N.
        X: Inputs, shape (N, ...).
        digests: What each input holds, by :mod:`credalearn.app.items.digests`.
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
    """Join annotations and inputs by item, split them, and find the truths.

    Args:
        annotations: What people said.
        inputs: Features, or the folder of images.
        options: What the columns beside the features are, how large images are, and whether items
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
    values = dict(zip(annotations.items, annotations.counts(), strict=True))
    counts = np.stack([values[item] for item in items])
    gold = None if beside is None else _gold(beside, annotations.classes, options)
    return Prepared(
        items=items,
        X=X,
        digests=digests,
        counts=counts,
        truth=majority(counts) if gold is None else gold,
        groups=groups,
        split=split,
        later=len(_later(items, annotations, beside, options)),
        left_out=left_out,
        broken=broken,
        matched=matched,
    )


def first_items(annotations: Annotations) -> set[str]:
    """The items of the first round; later ones were chosen, as who defers chooses hard ones.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> sorted(first_items(three_items()))
        ['x', 'y', 'z']
    """
    return set(annotations.items[: annotations.source.first_items])


def _training_split(annotations: Annotations, options: TrainOptions, *, images: bool) -> Splitter:
    """Into training, calibration and test, by the user's own column or drawn."""

    def split(
        items: list[str],
        digests: list[str],
        groups: list[object] | None,
        beside: ItemColumns | None,
        left_out: dict[str, int],
    ) -> list[str]:
        later = _later(items, annotations, beside, options)
        together = digests if groups is None and images else groups  # equal images are one
        own = None if beside is None else beside.column(options.split)
        if own is None or beside is None:
            first = len(items) - len(later)
            found = split_rounds(
                len(items), first, groups=together, random_state=options.random_state
            )
        else:
            without = set(later)
            rows = [row for row in range(len(items)) if row not in without]
            told = beside.taken(rows, [items[row] for row in rows])
            theirs = None if groups is None else [groups[row] for row in rows]
            found = np.full(len(items), "", dtype="<U11")
            found[rows] = check_splits(
                [own[row] for row in rows], told.items, groups=theirs, place=told.place
            )
            found = train_later(found, later, groups=together)
        names: list[str] = found.tolist()
        if "" in names:
            of = options.group or "image"
            why = f"of later exports whose {of} is in calibration or test"
            left_out[why] = names.count("")
        return names

    return split


def _later(
    items: list[str], annotations: Annotations, beside: ItemColumns | None, options: TrainOptions
) -> list[int]:
    """Numbers of the items of later rounds, but for those that the user has put into a split."""
    first = first_items(annotations)
    own = None if beside is None else beside.column(options.split)
    return [
        row
        for row, item in enumerate(items)
        if item not in first and (own is None or not str(own[row] or "").strip())
    ]


def _features(
    annotations: Annotations, table: FeatureTable, options: TrainOptions, left_out: dict[str, int]
) -> tuple[list[str], np.ndarray, ItemColumns | None]:
    """Items that have features, those features, and the columns beside them, if any."""
    place = {item: row for row, item in enumerate(table.items)}
    _refuse_lost_zeros(annotations, table)
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


def _refuse_lost_zeros(annotations: Annotations, table: FeatureTable) -> None:
    """Refuse the 42 of a file that stands for the 000042 of another: a spreadsheet's number."""
    there, first = set(table.items), first_items(annotations)
    missing = [item for item in annotations.items if item not in there]
    numbers = {_number(item): row for row, item in enumerate(table.items)}
    pairs = [(item, numbers[_number(item)]) for item in missing if _number(item) in numbers]
    # Beside a 1 of the same file 01 is another item; a later file may have lost the zeros.
    pairs = [(x, row) for x, row in pairs if x not in first or table.items[row] not in first]
    if not pairs or len(pairs) < _NEARLY_ALL * len(missing):
        return
    item, row = pairs[0]
    parts = [(0, table.path), *table.later]
    features = next(path for start, path in reversed(parts) if start <= row)
    source = annotations.source
    votes = [source.path] if item in first else source.later
    ends = [(item, " or ".join(map(str, votes))), (table.items[row], str(features))]
    (short, lost), (long, kept) = sorted(ends, key=lambda end: len(end[0]))
    raise CredalError(
        f"leading zeros are lost in {lost}: what is {shown(short)} there is {shown(long)} in "
        f"{kept}, and so for {many(len(pairs), 'item')}. To fix: export the column as text."
    )


def _number(name: str) -> str:
    """A number without its leading zeros, as a spreadsheet has it; any other name as it is."""
    return name.lstrip("0") if name.isdecimal() else name


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
