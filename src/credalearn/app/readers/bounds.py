"""Statements: an item, a label, and the least probability that an annotator gives it."""

from credalearn.app.column_names import AT_LEAST, ITEM, LABEL, find
from credalearn.app.readers._content import Content, Raw


def recognize(content: Content) -> bool:
    """A table with a column like ``at_least`` next to those of the item and the label."""
    known = (content.column("item", ITEM), content.column("label", LABEL))
    return None not in known and find(content.columns, AT_LEAST) is not None


def read(content: Content) -> Raw:
    """One statement per row."""
    item, label = content.need("item", ITEM), content.need("label", LABEL)
    bound = find(content.columns, AT_LEAST)
    if bound is None:
        content.source.refuse(
            "there is no column 'at_least'", fix="rename the column of the bounds to at_least"
        )
    frame = content.text(item=item, label=label, at_least=bound)
    words = f"one row per lower bound: item {item!r}, label {label!r}"
    return Raw("bounds", frame, content.source, words, item=item)
