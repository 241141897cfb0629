"""JSON with the votes of an item inside its record: counts by class, or a list of labels.

``label_counter`` is ``{"e": 76, "n": 20}`` in ChaosNLI, ``annotator_labels`` is ``["e", "n", "e"]``
in SNLI. ``label`` names another field, such as ChaosNLI's ``old_labels``.
"""

from dataclasses import replace
from typing import Any

from credalearn._formats import shown
from credalearn.app._json_file import Record
from credalearn.app.column_names import ITEM
from credalearn.app.readers._content import Content, Raw, Votes, field_of, shares_of

# In the order in which they are tried: the largest number of votes first.
_FIELDS = ("label_counter", "label_counts", "label_count", "old_labels", "annotator_labels")


def recognize(content: Content) -> bool:
    """Records with a field of one of these names, or an object of numbers that ``label`` names."""
    return _field(content) is not None


def read(content: Content) -> Raw:
    """One row of counts per record, or one vote per label."""
    name = _field(content) or content.options.label or _FIELDS[0]
    item = "id" if content.records[0].key is not None else content.need("item", ITEM)
    words = f"one record per item {item!r}, votes in {name!r}"
    values = [field_of(record.value, name) for record in content.records]
    labeled = any(isinstance(each, list) and isinstance((each or [0])[0], str) for each in values)
    votes, items, rows = Votes(content), list[object](), list[dict[str, Any]]()
    for record, value in zip(content.records, values, strict=True):
        named = field_of(record.value, item, record.key if item == "id" else None)
        if labeled:
            for label in _checked(content, record, name, value, list):
                votes.add(record, named, None, label)
        else:
            items.append(named)
            rows.append(_counts(content, record, name, value))
    if labeled:
        return replace(votes.raw(""), words=words)
    return shares_of(content, "counts", items, rows, words, item)


def _field(content: Content) -> str | None:
    """The first known field that holds a list or an object; or the one asked for, if it does."""
    asked = content.options.label
    for name in _FIELDS if asked is None else (asked,):
        for record in content.some_records:
            value = field_of(record.value, name)
            if isinstance(value, list) and name in _FIELDS:
                return name
            if isinstance(value, dict) and all(isinstance(each, int) for each in value.values()):
                return name
    return None


def _counts(content: Content, record: Record, name: str, value: Any) -> dict[str, Any]:
    """Votes by class; a list has no names of classes, so ``classes`` must give them."""
    if isinstance(value, list):
        classes = content.options.classes or ()
        if len(classes) != len(value):
            content.source.refuse(
                f"{name!r} lists {len(value)} counts without the names of their classes",
                fix="name them in this order with classes=",
            )
        return dict(zip(classes, value, strict=True))
    counts = _checked(content, record, name, value, dict)
    return {str(key): each for key, each in counts.items() if each is not None}  # null in Parquet


def _checked(content: Content, record: Record, name: str, value: Any, kind: type[Any]) -> Any:
    if value is not None and not isinstance(value, kind):
        what = "a list of labels" if kind is list else "an object of counts by class"
        content.refuse_record(record, f"{name!r} must be {what}; got {shown(value)}")
    return value or kind()
