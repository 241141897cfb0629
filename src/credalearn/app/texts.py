"""Texts of items: which columns contain them; columns whose rows agree about an item."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from credalearn._checks import folded
from credalearn._formats import shown
from credalearn.app.features import NAMING, FeatureTable, item_column, item_names
from credalearn.app.sources import Source, open_source, texts
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.annotations.table import Annotations
    from credalearn.app.dataset import DatasetOptions

# No column of the user's is called so.
ITEM, _ROW, _TABLE, _FIRST = "\0item", "\0row", "\0table", "\0first"
# In the order in which they are tried.
_NAMES = ("text", "message", "sentence", "tweet", "comment", "utterance", "post", "document")


def read_texts(
    annotations: "Annotations", options: "DatasetOptions", named_in: Sequence[str]
) -> FeatureTable:
    """Texts from a table, or from the exports themselves; without columns, from those found."""
    tables, named = annotations.source.tables, annotations.source.item
    extra = options.columns
    if options.table is not None:
        source = open_source(options.table)
        named = item_column(source, named_in, (*options.text, *extra))
        tables = ((source, rows_of_items(source, named)),)
    known = tables[0][0].columns if tables else ()
    found = options.text
    for name in () if found else _NAMES:  # ``text``, ``data.text``, ``text.post``
        last = [each for each in known if folded(each.split(".")[-1]) == name]
        first = [each for each in known if folded(each.split(".")[0]) == name]
        found = found or tuple(last or first)
    if not found:
        where = annotations.source.path if options.table is None else tables[0][0].path
        of = f"; its columns are: {', '.join(known[:20])}" if tables else ""
        raise CredalError(
            f"{where} has no column whose name suggests a text{of}. To fix: pass text='COLUMN', "
            "features='FILE' or images='FOLDER'."
        )
    whole, place = columns_by_item(tables, found, extra)
    return FeatureTable(
        tuple(source.path for source, _ in tables),
        whole[ITEM].to_list(),
        list(found),
        join_texts(whole.select(found), found),
        (),
        whole.select(pl.col(ITEM, *extra).str.strip_chars().str.normalize("NFC")),
        place,
        named,
    )


def rows_of_items(source: Source, named: str) -> pl.DataFrame:
    """Which item each row of a table is about."""
    items = item_names(source, source.read([named])[named]).alias("item")
    return items.to_frame().with_row_index("row").select("item", pl.col("row").cast(pl.Int64))


def columns_by_item(
    tables: Sequence[tuple[Source, pl.DataFrame]], found: Sequence[str], extra: Sequence[str]
) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """The columns ``found``, of texts, and others, one row per item; and where each row is."""
    parts = []
    names = dict.fromkeys((*found, *extra))
    for number, (source, rows) in enumerate(tables):
        own = {}
        for name in names:  # later files may lack the group, and the texts of items that are known
            with suppress(CredalError) if number else nullcontext():
                option = "text" if name in found else NAMING
                own[name] = source.column(name, option=option)
        if own.keys() >= set(found):
            block = texts(source.read(own.values()))[rows["row"]]
            none = pl.lit(None, pl.String)
            cells = {name: block[own[name]] if name in own else none for name in names}
            own_rows = rows.select(pl.col("item").alias(ITEM), pl.col("row").alias(_ROW))
            part = own_rows.with_columns(each.alias(name) for name, each in cells.items())
            parts.append(part.with_columns(pl.lit(number).alias(_TABLE)))

    def place(row: Mapping[str, int]) -> str:
        return tables[row[_TABLE]][0].where(row[_ROW])

    whole = _one_row_per_item(pl.concat(parts), list(names), place)
    return whole, lambda row: place(whole.row(row, named=True))


def _one_row_per_item(
    rows: pl.DataFrame, names: Sequence[str], place: Callable[[Mapping[str, int]], str]
) -> pl.DataFrame:
    """What is not blank of each item, from whichever rows have it; different values are refused."""
    values = pl.col(names)
    rows = rows.with_columns(pl.when(values.str.strip_chars() != "").then(values))
    own = rows.group_by(ITEM, maintain_order=True)
    whole = own.agg(values.drop_nulls().first(), pl.col(_ROW, _TABLE).first())
    for name in names:
        first = whole.select(ITEM, pl.col(name).alias(_FIRST))
        found = rows.join(first, on=ITEM, maintain_order="left")
        clean = (pl.col(each).str.strip_chars().str.normalize("NFC") for each in (name, _FIRST))
        for row in found.filter(next(clean) != next(clean)).head(1).rows(named=True):
            item, one, other = (shown(str(row[each])) for each in (ITEM, name, _FIRST))
            raise CredalError(
                f"{place(row)}: item {item} has {one} in column {shown(name)} here and {other} in "
                "an earlier row. To fix: give all rows of an item one value, or each item its own "
                "name."
            )
    return whole


def join_texts(table: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """The text of each row (N,): that of the one column, or of several after their names."""
    columns = [column.fill_null("") for column in texts(table).get_columns()]
    found: list[str] = columns[0].to_list()
    if len(columns) > 1:
        every = [list(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        known = (any(text.strip() for _, text in row) for row in every)
        lines = ("\n".join(f"{name}: {text}" for name, text in row) for row in every)
        found = [text if some else "" for text, some in zip(lines, known, strict=True)]
    return np.array([*found, ""], dtype=object)[:-1]


def text_digests(values: Any) -> list[str]:
    """SHA-256 of each text; a blank text counts as empty."""
    return [hashlib.sha256((text if text.strip() else "").encode()).hexdigest() for text in values]
