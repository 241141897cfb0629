"""Annotated items joined with their inputs, item by item."""

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from credalearn._formats import listed, many, shown
from credalearn.app.annotations.table import Annotations
from credalearn.app.column_names import LABEL, find, same_field
from credalearn.app.facts import InputFacts
from credalearn.app.features import item_column, item_names, read_features, row_digests
from credalearn.app.images import check_readable, find_images, read_images
from credalearn.app.sources import open_source, texts
from credalearn.app.texts import ITEM, columns_by_item, read_texts, rows_of_items, text_digests
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.dataset import DatasetOptions

_GOLD = ("gold", "goldlabel", "truth", "trueclass", "truelabel", "groundtruth", *LABEL)
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".npz")  # where gold is no column
TEXT = "\0text"  # column of the start of the texts, for people
_SHOWN = 300  # characters
Gold = tuple[dict[str, str], Callable[[str], str]]  # labels by item, and where each is


def gold_column(gold: Any) -> str | None:
    """The column of the true class; None if it is in a table of its own, or not given."""
    is_table = not isinstance(gold, str) or Path(gold).suffix.lower() in _TABLES
    return None if is_table else gold


def _gold_table(annotations: Annotations, options: "DatasetOptions") -> Gold | None:
    """The true classes from a table of their own, if one is given."""
    if options.gold is None or gold_column(options.gold) is not None:
        return None
    source = open_source(options.gold, called="the table of gold labels")
    name, named_in = find(source.columns, _GOLD), (options.item, annotations.source.item)
    if name is None and len(source.columns) == 2:
        [name] = {*source.columns} - {item_column(source, named_in, ())}
    if name is None:
        source.refuse(
            f"no column name looks like a true class; its columns are: "
            f"{listed(source.columns, 20)}",
            fix="call it 'gold'",
        )
    named = item_column(source, named_in, (name,))
    table = source.read((named, name))
    items = item_names(source, table[named]).to_list()
    if options.images is not None:
        items = _same_images(options.images, annotations.items, items)
    return _gold_of(items, table[name], source.where)


def _gold_of(items: Sequence[str], column: pl.Series, place: Callable[[int], str]) -> Gold:
    """The labels that are not empty; two different ones of an item are refused."""
    values = texts(column.to_frame()).to_series().fill_null("").str.strip_chars()
    labels: dict[str, str] = {}
    row_of: dict[str, int] = {}
    for row, (item, label) in enumerate(zip(items, values.str.normalize("NFC"), strict=True)):
        row_of.setdefault(item, row)
        if label and labels.setdefault(item, label) != label:
            raise CredalError(
                f"{place(row)}: item {shown(item)} has the gold label {shown(label)} here and "
                f"{shown(labels[item])} in {place(row_of[item])}. To fix: keep one of them."
            )
    return labels, lambda item: place(row_of[item])


def join_table(
    annotations: Annotations, options: "DatasetOptions"
) -> tuple[dict[str, Any], Gold | None]:
    """Items that have features or a text, as attributes of a ``Dataset``; and the gold labels."""
    named = [name for name in (options.item, annotations.source.item) if name is not None]
    is_text, what = not options.features, options.called if options.features else "text"
    if is_text:
        table = read_texts(annotations, options, named)
    else:
        table = read_features(
            *options.features,
            named_in=named,
            extra=options.columns,
            drop=options.drop,
            names=options.names,
            categories=options.categories,
        )
    known = (annotations.source.item, table.item)  # "uid" of a task is the column "data.uid"
    if options.item is not None and not any(same_field(options.item, each) for each in known):
        raise CredalError(
            f"{' and '.join(map(str, table.paths))} has no column {options.item!r}; the column "
            f"{table.item!r} would name the items. To fix: correct item=, or leave it out."
        )
    gold, column = _gold_table(annotations, options), gold_column(options.gold)
    if column is not None:
        gold = _gold_of(table.items, table.extra[column], table.place)
    annotated, unvoted = _annotated(annotations, gold)
    row_of = {item: row for row, item in enumerate(table.items)}
    items = [item for item in annotated if item in row_of]
    where = " and ".join(map(str, table.paths))
    votes = " and ".join(map(str, (annotations.source.path, *annotations.source.later)))
    later = [(each.path, rows["item"].to_list()) for each, rows in annotations.source.tables[1:]]
    for path, of_path in ((votes, annotated), *later):
        if row_of.keys().isdisjoint(of_path):
            fix = f"pass their {what} under the same names, and name their column with item="
            if table.paths[0].suffix == ".npy":  # which has no names
                fix = "save an .npz with the names of the items as the array 'items'"
            own = listed([*dict.fromkeys(of_path)], 2)
            raise CredalError(
                f"no item of {path} has {what} in {where}: the items of {path} are {own}; those of "
                f"{where} are {listed(table.items, 2)}. To fix: {fix}."
            )
    # An export has tasks that nobody has answered yet.
    skip = options.skip_missing or (is_text and options.table is None)
    left_out = _missing(annotated, row_of, f"{what} in {where}", skip=options.skip_missing)
    left_out |= _missing(table.items, set(items), f"annotations in {votes}", skip=skip)
    rows = [row_of[item] for item in items]
    X, beside, names = table.values[rows], table.extra[rows], tuple(table.names)
    empty = sum(not str(text).strip() for text in X) if is_text else 0
    if empty == len(X):
        raise CredalError(
            f"the texts of all {many(len(X), 'item')} in {where} are empty. To fix: name the "
            "column of the texts with text=."
        )
    inputs = InputFacts(
        kind="texts" if is_text else "features",
        path=str(table.paths[0]),
        later=tuple(map(str, table.paths[1:])),
        item=table.item,
        features=() if is_text else names,
        texts=names if is_text else (),
        empty=empty,
        categories=table.categories,
        encoder="tfidf" if is_text else "",
        dropped=options.drop,
        left_out=left_out,
        table=str(table.paths[0]) if options.table is not None else None,
    )
    if is_text:
        beside = beside.with_columns(pl.Series(TEXT, X).str.head(_SHOWN))
    found = {
        "items": items,
        "X": X,
        "digests": text_digests(X) if is_text else row_digests(X),
        "inputs": inputs,
        "columns": beside,
        "place": lambda row: table.place(rows[row]),
        "unvoted": np.array([item in unvoted for item in items]),
    }
    return found, gold


def join_images(
    annotations: Annotations, options: "DatasetOptions"
) -> tuple[dict[str, Any], Gold | None]:
    """Items whose image can be read, as attributes of a ``Dataset``; and the gold labels."""
    folder = Path(str(options.images))
    # Gold labels in a table of their own may name items without votes; those of a column do not.
    gold, column = _gold_table(annotations, options), gold_column(options.gold)
    annotated, unvoted = _annotated(annotations, gold)
    matches = find_images(folder, annotated)
    if not matches:
        raise CredalError(
            f"no item of {annotations.source.path} has an image in {folder}: they are called "
            f"{listed(annotations.items, 2)}. To fix: name the files after the items."
        )
    left_out = _missing(annotated, matches, f"image in {folder}", skip=options.skip_missing)
    if without := set(annotations.items) - set(annotated):
        left_out["without annotations"] = len(without)
    files = list(dict.fromkeys(matches.values()))
    batches = read_images(files, options.image_size)
    read: dict[Path, Any] = dict(chain.from_iterable(batches))
    broken = {file: found for file, found in read.items() if isinstance(found, str)}
    check_readable(list(broken.values()), len(files))
    unreadable = {item: broken[file] for item, file in matches.items() if file in broken}
    if unreadable:
        first = next(iter(unreadable.values()))
        left_out[f"with an unreadable image; the first is {first}"] = len(unreadable)
    items = [item for item in matches if item not in unreadable]
    pixels, digests = zip(*(read[matches[item]] for item in items), strict=True)
    columns, place, path = _image_columns(annotations, options, items, folder)
    if column is not None:
        gold = _gold_of(items, columns[column], place)
    inputs = InputFacts(
        kind="images",
        path=str(folder),
        image_size=options.image_size,
        left_out=left_out,
        unreadable=unreadable,
        table=path,
    )
    attributes = {
        "items": items,
        "X": np.stack(pixels).astype(np.float32),
        "digests": list(digests),
        "inputs": inputs,
        "columns": columns,
        "place": place,
        "unvoted": np.array([item in unvoted for item in items]),
    }
    return attributes, gold


def _image_columns(
    annotations: Annotations, options: "DatasetOptions", items: Sequence[str], folder: Path
) -> tuple[pl.DataFrame, Callable[[int], str], str | None]:
    """Group, gold label and split of each image, from a table whose rows agree about an item."""
    names = options.columns
    if not names:
        return pl.DataFrame({"": [None] * len(items)}), lambda row: items[row], None
    if options.table is None:
        raise CredalError(
            f"images have no column {names[0]!r}. To fix: pass the table that has it, such as "
            "table='votes.csv'."
        )
    source = open_source(options.table)
    named = item_column(source, (options.item, annotations.source.item), names)
    rows_of = rows_of_items(source, named)
    called = _same_images(folder, items, rows_of["item"].to_list())
    rows_of = rows_of.with_columns(item=pl.Series(called, dtype=pl.String))
    whole, place = columns_by_item([(source, rows_of)], (), names)
    first = {item: row for row, item in enumerate(whole[ITEM])}
    _missing(items, first, f"row in {source.path}", skip=False)
    rows = [first[item] for item in items]
    return whole[rows].select(names), lambda row: place(rows[row]), str(source.path)


def _same_images(folder: Path, items: Sequence[str], names: list[str]) -> list[str]:
    """The names; of several for one image, an item's."""
    known = set(items)
    if known <= set(names):
        return names
    files = find_images(folder, dict.fromkeys((*items, *names)))
    first = {file: name for name, file in reversed(files.items())}
    return [first[files[x]] if x in files and x not in known else x for x in names]


def _annotated(annotations: Annotations, gold: Gold | None) -> tuple[list[str], set[str]]:
    """Items that someone said something about or with a gold label; and those with that alone."""
    said = set(annotations.codes["item"].tolist())
    if annotations.kind == "counts":
        said = set(np.flatnonzero(annotations.sparse_counts().sum(1)).tolist())
    found = [item for number, item in enumerate(annotations.items) if number in said]
    known = set(found)
    unvoted = [item for item in (() if gold is None else gold[0]) if item not in known]
    return [*found, *unvoted], set(unvoted)


def _missing(
    items: Sequence[str], there: Collection[str], what: str, *, skip: bool
) -> dict[str, int]:
    """The number of items that lack something; an error unless they may be left out."""
    missing = [item for item in items if item not in there]
    if missing and not skip:
        have = "has" if len(missing) == 1 else "have"
        raise CredalError(
            f"{len(missing):,} of {many(len(items), 'item')} {have} no {what}: "
            f"{listed(missing, 3)}. To fix: add what is missing, or pass skip_missing=True."
        )
    return {f"without {what.split(' in ')[0]}": len(missing)} if missing else {}
