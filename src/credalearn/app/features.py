"""Features of items: numbers and categories from tables and arrays, checked once."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars import selectors as cs

from credalearn._formats import listed, many, shown
from credalearn.app.column_names import ITEM, find
from credalearn.app.sources import THOUSANDS, Source, has_comma, numbers, open_source, texts
from credalearn.errors import CredalError

# Numbers with NaN for missing values; with categories a frame, whose texts are null if missing.
Features = np.ndarray | pl.DataFrame

_MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in a column of numbers
_LIKE_NUMBER = r"(?i)^\s*([+-]?[\d.,]*\d[\d.,]*(e[+-]?\d+)?\s*%?|true|false|[+-]?inf)\s*$"
_DATE = r"^(\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4})([ T]|$)"
NAMING = "group=, gold= or split"  # options that name columns next to the features
_TOOL = re.compile(r"^(data|fields|meta)\.")  # where tools keep the fields of the user
_ARRAY_ITEM = (*ITEM, "items", "itemids", "ids", "names")


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Features of items."""

    paths: tuple[Path, ...]  # the files, or what messages call a table in memory
    items: list[str]  # name of each item, all different
    names: list[str]  # name of each feature
    values: Features  # shape (N, D); texts (N,)
    categories: tuple[str, ...]  # features whose values are texts
    extra: pl.DataFrame  # the column of items and those asked for next to the features, as text
    place: Callable[[int], str]  # where an item is, such as "items.csv, line 7"
    item: str | None  # column that names the items


def read_features(
    *data: Any,
    named_in: Sequence[str] = (),
    extra: Sequence[str] = (),
    drop: Sequence[str] = (),
    names: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
) -> FeatureTable:
    """Features from sources with one row per item: of training, or the ``names`` of a model."""
    sources = [open_source(each, called="the table of features") for each in data]
    known = {name for source in sources for name in source.columns}
    for name in (*extra, *drop):
        if name not in known:
            option = "drop=" if name in drop else f"{NAMING}="
            fix = f"name one of {listed(sources[0].columns, 20)} with {option}"
            sources[0].refuse(f"there is no column {name!r}", fix=fix)

    parts = []
    for source in sources:
        item = item_column(source, named_in, (*extra, *drop, *(names or ())))
        own = [name for name in source.columns if name not in (item, *extra, *drop)]
        if source.kind == "array":  # the arrays next to the features are no features
            own = _array_columns(source)
        if names is not None:
            own = feature_columns(source, names)
        if not own:
            source.refuse(f"there is no column of features next to {item!r}", fix="add one")
        held = [name for name in extra if name in source.columns and name != item]
        table = source.read((item, *own, *held))
        if not len(table):
            source.refuse("there is no row below the header", fix="add the items")
        items = item_names(source, table[item])
        texts_of = find_categories(table.select(own)) if categories is None else categories
        values = feature_values(
            source, table.select(own), items, categories=texts_of, training=names is None
        )
        beside = texts(table.select(item, *held))
        part = FeatureTable(
            (source.path,),
            items.to_list(),
            list(own if names is None else names),
            values,
            tuple(texts_of),
            beside.select(pl.all().str.strip_chars().str.normalize("NFC")),
            source.where,
            item,
        )
        parts.append(part)
    return _joined(parts)


def item_column(source: Source, named_in: Sequence[str | None], others: Sequence[str]) -> str:
    """The column that names the items: one of those asked for, or one with a usual name."""
    asked = next((name for name in named_in if name in source.columns), None)
    if asked is not None:
        return asked
    left = [name for name in source.columns if name not in others]
    bare = [_TOOL.sub("", name.casefold()) for name in named_in if name]  # uid is data.uid
    fields = [name for name in left if _TOOL.sub("", name.casefold()) in bare]
    if len(fields) == 1:
        return fields[0]
    found = find(left, _ARRAY_ITEM if source.kind == "array" else ITEM)
    if found is None:
        source.refuse(
            f"no column names the items; its columns are: {', '.join(source.columns[:20])}",
            fix="name it with item=; if another file calls it otherwise, rename it in one of them",
        )
    return found


def item_names(source: Source, column: pl.Series, *, start: int = 0) -> pl.Series:
    """Names as annotations have them: trimmed, in Unicode's form NFC, none empty."""
    names = texts(column.to_frame()).to_series().str.strip_chars().str.normalize("NFC")
    empty = names.fill_null("") == ""
    if empty.any():
        row, fix = start + (empty.arg_max() or 0), "name it, or pass another column with item="
        source.refuse(f"the item has no name in {column.name!r}", row=row, fix=fix)
    return names


def find_categories(table: pl.DataFrame) -> tuple[str, ...]:
    """The columns of texts: those where fewer than half of the values are numbers."""
    found = []
    for column in table.select(~(cs.numeric() | cs.boolean())).get_columns():
        known = column.cast(pl.String).str.strip_chars().fill_null("") != ""
        is_number = column.cast(pl.String).str.contains(_LIKE_NUMBER).fill_null(False)
        if known.any() and is_number.sum() < known.sum() / 2:
            found.append(column.name)
    return tuple(found)


def feature_values(
    source: Source,
    table: pl.DataFrame,
    items: pl.Series,
    *,
    categories: Sequence[str] = (),
    start: int = 0,
    training: bool = False,
) -> Features:
    """Columns as features (N, D): finite numbers, NaN where missing, and texts of categories."""
    columns = []
    words = table.select(cs.string() - cs.by_name(*categories))
    commas = _find_decimal_commas(source, words, items, start)
    for column in table.get_columns():
        if column.name in categories:
            text = texts(column.to_frame()).to_series().str.strip_chars()
            known = text.filter(text != "")
            if training and known.str.contains(_DATE).all():
                source.refuse(
                    f"a feature must be a number or a category; {column.name!r} contains dates, "
                    f"such as {shown(known[0])}",
                    fix=f"convert them to numbers, or pass drop={column.name!r}",
                )
            columns.append(pl.select(pl.when(text != "").then(text)).to_series().alias(text.name))
            continue
        found = numbers(column, decimal_commas=commas)
        missing = found.is_null() | found.is_nan()
        if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
            word = column.cast(pl.String).str.strip_chars().str.to_lowercase()
            truth = word.replace_strict({"true": 1.0, "false": 0.0}, default=None)
            found = found.fill_null(truth.cast(pl.Float64))
            missing = word.is_null() | word.is_in(_MISSING)
        found = found.fill_null(np.nan)
        wrong = found.is_infinite() | (found.is_nan() & ~missing)
        if wrong.any():
            row = wrong.arg_max() or 0
            drop = f", or leave the column out with drop={column.name!r}"
            fix = "correct the value, or leave the cell empty"
            if "%" in str(column[row]):
                fix = "write the numbers of the column without percent signs"
            elif re.fullmatch(THOUSANDS, str(column[row]).strip()):
                fix = "write the number with a point, or without the comma if it marks thousands"
            source.refuse(
                f"features must be finite numbers, or empty; {column.name!r} is "
                f"{shown(column[row])} for item {shown(items[row])}",
                row=start + row,
                fix=f"{fix}{drop if training else ''}",
            )
        columns.append(found)
    if categories:
        return pl.DataFrame(columns)
    return pl.DataFrame(columns).to_numpy(writable=True).astype(np.float64, copy=False)


def _find_decimal_commas(source: Source, table: pl.DataFrame, items: pl.Series, start: int) -> bool:
    """Whether a table has decimal commas and no points; ``3.034`` next to commas is refused."""
    columns = [column.str.strip_chars() for column in table.get_columns()]
    some = (column for column in columns if column.str.contains(",", literal=True).any())
    found = any(has_comma(each).any() for each in some)
    for column in columns if found else ():
        point = column.filter(column.str.contains(".", literal=True))
        if len(point) and point.str.contains(r"^[+-]?[1-9]\d{0,2}\.\d{3}$").all():
            row = (column == point[0]).arg_max() or 0
            source.refuse(
                f"numbers in a table with decimal commas must have no point, which may mark "
                f"thousands; {column.name!r} is {shown(point[0])} for item {shown(items[row])}",
                row=start + row,
                fix=f"write {point[0].replace('.', '')} or {point[0].replace('.', ',')}0",
            )
    return found and not any(each.str.contains(".", literal=True).any() for each in columns)


def feature_columns(source: Source, names: Sequence[str]) -> list[str]:
    """The columns that are the features of a model: by name, or of an array by position."""
    if source.kind == "array":
        columns = _array_columns(source)
        if len(columns) != len(names):
            source.refuse(
                f"the array has {many(len(columns), 'feature')} per item, and the model takes "
                f"{len(names)}",
                fix="pass the features used in training, in the same order",
            )
        return columns
    missing = [name for name in names if name not in source.columns]
    if missing:
        source.refuse(
            f"missing {len(missing)} of {many(len(names), 'feature')}: {listed(missing)}",
            fix="add what is missing, named as in training",
        )
    return list(names)


def _array_columns(source: Source) -> list[str]:
    every = (f"f{number}" for number in range(len(source.columns)))
    return [name for name in every if name in set(source.columns)]


def row_digests(values: Features) -> list[str]:
    """SHA-256 of each row (N, D), numbers in float32, which text and Parquet keep alike."""
    rest = [""] * len(values)
    if isinstance(values, pl.DataFrame):
        named = values.select(pl.col(pl.String).fill_null(""))
        rest = ["\0".join(row) for row in named.iter_rows()]
        numeric = values.select(pl.col(pl.Float64))
        values = numeric.to_numpy() if numeric.width else np.empty((len(values), 0))
    with np.errstate(over="ignore"):  # a feature beyond float32 is infinite here
        rows = np.ascontiguousarray(values, dtype="<f4") + np.float32(0)  # −0 is 0
    pairs = zip(rows, rest, strict=True)
    return [hashlib.sha256(row.tobytes() + text.encode()).hexdigest() for row, text in pairs]


def _joined(parts: Sequence[FeatureTable]) -> FeatureTable:
    """The rows of several tables with the same features, in the order of the first's columns."""
    first = parts[0]
    for other in parts[1:]:
        missing = sorted(set(first.names) ^ set(other.names))
        if missing:
            raise CredalError(
                f"{first.paths[0]} and {other.paths[0]} must have the same features; only one has "
                f"{listed(missing)}. To fix: give both the same columns, or leave a column out "
                "with drop=."
            )
        mixed = sorted(set(first.categories) ^ set(other.categories))
        if mixed:
            raise CredalError(
                f"column {mixed[0]!r} contains texts in one of {first.paths[0]} and "
                f"{other.paths[0]} and numbers in the other. To fix: correct one, or leave the "
                "column out with drop=."
            )
    rows: list[Any] = [
        part.values.select(first.names)
        if isinstance(part.values, pl.DataFrame)
        else part.values[:, [part.names.index(name) for name in first.names]]
        for part in parts
    ]
    places = [(part, row) for part in parts for row in range(len(part.items))]
    whole = replace(
        first,
        paths=tuple(path for part in parts for path in part.paths),
        items=[item for part in parts for item in part.items],
        values=pl.concat(rows) if first.categories else np.concatenate(rows),
        extra=pl.concat([part.extra for part in parts], how="diagonal"),
        place=lambda row: places[row][0].place(places[row][1]),
    )
    seen: dict[str, int] = {}
    for row, item in enumerate(whole.items):
        if seen.setdefault(item, row) != row:
            raise CredalError(
                f"{whole.place(row)}: item {shown(item)} occurs twice, first in "
                f"{whole.place(seen[item])}. To fix: keep one row per item, and give different "
                "items different names."
            )
    return whole
