"""JSON with the votes of an item inside its record: counts by class, or a list of labels.

``label_counter`` is ``{"e": 76, "n": 20}`` in ChaosNLI, ``annotator_labels`` is ``["e", "n", "e"]``
in SNLI. ``--label`` names another field, such as ChaosNLI's ``old_labels``.
"""

from typing import Any

import polars as pl

from credalearn._formats import shown
from credalearn.app._json_file import Record, text_of
from credalearn.app.column_names import ITEM, find
from credalearn.app.readers._content import Content, Raw, Votes, field_of

# In the order in which they are tried: the largest number of votes first.
_FIELDS = ("label_counter", "label_counts", "label_count", "old_labels", "annotator_labels")


def recognize(content: Content) -> bool:
    """Records with a field of one of these names, or an object of numbers that ``label`` names."""
    named = content.options.label
    held = [field_of(each.value, named) for each in content.some_records] if named else []
    return any(_is_counter(each) for each in held) or _field(content) is not None


def read(content: Content) -> Raw:
    """One row of counts per record, or one vote per label."""
    name = content.options.label or _field(content) or _FIELDS[0]
    values = [field_of(record.value, name) for record in content.records]
    item = content.options.item or _item_field(content)
    words = f"one record per item {item!r}, votes in {name!r}"
    if any(isinstance(each, list) and each and isinstance(each[0], str) for each in values):
        votes = Votes(content)
        for record, value in zip(content.records, values, strict=True):
            for label in _checked(content, record, name, value, list):
                votes.add(record, _item(record, item), None, label)
        return votes.raw(words)
    rows = []
    for record, value in zip(content.records, values, strict=True):
        counts = _counts(content, record, name, value)
        rows.append({"item": _item(record, item)} | counts)
    classes = [each for each in dict.fromkeys(key for row in rows for key in row) if each != "item"]
    table = {each: [text_of(row.get(each, 0)) for row in rows] for each in ("item", *classes)}
    frame = pl.DataFrame(table, schema=dict.fromkeys(table, pl.String))
    return Raw("counts", frame, content.source, words, item=item)


def _counts(content: Content, record: Record, name: str, value: Any) -> dict[str, Any]:
    """Votes by class; a list has no names of classes, so ``--classes`` must give them."""
    if isinstance(value, list):
        classes = content.options.classes or ()
        if len(classes) != len(value):
            content.source.refuse(
                f"{name!r} lists {len(value)} counts without the names of their classes",
                fix="name them in this order with --classes",
            )
        return dict(zip(classes, value, strict=True))
    counts = _checked(content, record, name, value, dict)
    return {str(key): each for key, each in counts.items() if each is not None}  # null in Parquet


def _checked(content: Content, record: Record, name: str, value: Any, kind: type[Any]) -> Any:
    if value is not None and not isinstance(value, kind):
        what = "a list of labels" if kind is list else "an object of counts by class"
        content.refuse_record(record, f"{name!r} must be {what}; got {shown(value)}")
    return value or kind()


def _field(content: Content) -> str | None:
    """The first known field that holds a list or an object in some record; or the one asked for."""
    asked = content.options.label
    names = [each for each in _FIELDS if asked in (None, each)]
    values = [record.value for record in content.some_records]
    found = (each for each in names if any(isinstance(v.get(each), dict | list) for v in values))
    return next(found, None)


def _is_counter(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int) for each in value.values())


def _item_field(content: Content) -> str:
    if content.records[0].key is not None:
        return "id"
    found = find(content.columns, ITEM)
    return found or content.need("item", ITEM)


def _item(record: Record, name: str) -> object:
    return field_of(record.value, name, record.key if name == "id" else None)
