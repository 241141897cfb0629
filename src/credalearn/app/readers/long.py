"""Long tables: one row per vote, as crowd-kit, Toloka and most scripts write them."""

import polars as pl

from credalearn._formats import listed
from credalearn.app.column_names import ANNOTATOR, ITEM, LABEL
from credalearn.app.readers._content import Content, Raw


def recognize(content: Content) -> bool:
    """A table with a column for the item and one for the label."""
    item, label = content.column("item", ITEM), content.column("label", LABEL)
    return item is not None and label is not None and item != label


def read(content: Content) -> Raw:
    """One vote per row."""
    item, label = content.need("item", ITEM), content.need("label", LABEL)
    annotator = content.column("annotator", ANNOTATOR)
    weight = content.column("weight", ("weight",))
    if len({item, label, annotator}) < 3:
        content.source.refuse(
            f"item {item!r}, annotator {annotator!r} and label {label!r} must be three columns",
            fix="name them with --item, --annotator and --label",
        )
    columns = {"item": item, "annotator": annotator, "label": label, "weight": weight}
    frame = content.text(**{name: column for name, column in columns.items() if column})
    notes: tuple[str, ...] = ()
    who = f"annotator {annotator!r}"
    if annotator is None:
        who = "no annotator"
        frame = frame.with_columns(annotator=pl.lit(None, pl.String))
        others = [name for name in content.columns if name not in (item, label, weight)]
        if others:
            note = f"if one of {listed(others)} names the annotator, pass it with --annotator"
            notes = (note,)
    words = f"one row per vote: item {item!r}, {who}, label {label!r}"
    return Raw("votes", frame, content.source, words, item=item, notes=notes)
