"""Statements: item, label, and the least probability that somebody gives it."""

import polars as pl

from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table


def recognize(content: Table | Records, asked: Asked) -> str | None:
    """A table with a column ``at_least`` beside those of the item and the label."""
    if isinstance(content, Records) or known.find(content.columns, known.AT_LEAST) is None:
        return None
    item, label = known.item_column(content, asked), known.label_column(content, asked)
    if item is None or label is None:
        return None
    return f"one row a lower bound: item {item!r}, label {label!r}"


def read(content: Table | Records, asked: Asked) -> Raw:
    """One statement a row."""
    assert isinstance(content, Table)
    item = known.need(content, known.item_column(content, asked), known.ITEM, option="item")
    label = known.need(content, known.label_column(content, asked), known.LABEL, option="label")
    bound = known.find(content.columns, known.AT_LEAST)
    bound = known.need(content, bound, known.AT_LEAST, option="at_least")
    names = {"item": item, "label": label, "at_least": bound}
    frame = content.take(*(pl.col(column).alias(name) for name, column in names.items()))
    words = f"{recognize(content, asked)} ({content.words})"
    return Raw("bounds", frame, frame.height, content.place, words, item=item)
