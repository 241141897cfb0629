"""Long tables: one row a vote, as crowd-kit, Toloka and most scripts write them."""

import polars as pl

from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.places import refuse
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table


def recognize(content: Table | Records, asked: Asked) -> str | None:
    """A table with a column for the item and one for the label."""
    if isinstance(content, Records):
        return None
    item, label = known.item_column(content, asked), known.label_column(content, asked)
    if item is None or label is None or item == label:
        return None
    annotator = known.annotator_column(content, asked)
    who = "no annotator" if annotator is None else f"annotator {annotator!r}"
    return f"one row a vote: item {item!r}, {who}, label {label!r}"


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote a row."""
    assert isinstance(content, Table)
    item = known.need(content, known.item_column(content, asked), known.ITEM, option="item")
    label = known.need(content, known.label_column(content, asked), known.LABEL, option="label")
    annotator = known.annotator_column(content, asked)
    if len({item, label, annotator}) < 3:
        rule = f"one column cannot be two things: item {item!r}, annotator {annotator!r}"
        fix = "name the columns with --item, --annotator and --label"
        refuse(content.path, "line 1", f"{rule}, label {label!r}", fix=fix)
    if annotator is None:
        known.refuse_near_miss(content, (item, label), known.NAMED_ANNOTATOR, option="annotator")
        known.refuse_near_miss(content, (item, label), known.AT_LEAST, option="at_least")
    weight = asked.weight or known.find(content.columns, known.WEIGHT)
    wanted = [pl.col(item).alias("item"), pl.col(label).alias("label")]
    if annotator is not None:
        wanted.insert(1, pl.col(annotator).alias("annotator"))
    if weight is not None:
        weight = content.column(weight, option="weight")
        wanted.append(pl.col(weight).alias("weight"))
    frame = content.take(*wanted)
    if annotator is None:
        frame = frame.with_columns(annotator=pl.lit(None, pl.String))
    unread: tuple[str, ...] = ()
    if annotator is None:
        unread = tuple(each for each in content.columns if each not in (item, label, weight))
    words = f"{recognize(content, asked) or ''} ({content.words})"
    return Raw("votes", frame, frame.height, content.place, words, unread=unread, item=item)
