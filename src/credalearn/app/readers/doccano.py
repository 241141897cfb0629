"""doccano: JSON Lines with a list of labels, one file per annotator or a field for them."""

from credalearn._formats import shown
from credalearn.app._json_file import Record
from credalearn.app.column_names import ANNOTATOR, ITEM, find
from credalearn.app.readers._content import Content, Raw, Votes, field_of

_NAMES = ("id", "docid", *ITEM, "text", "data")  # of an item
_LABELS = ("label", "labels", "cats")
_EVERYONE = ("all", "unknown")  # what doccano calls a file of everyone's labels


def recognize(content: Content) -> bool:
    """Records with a list of labels, or of annotations with a label and a user."""
    return any(isinstance(_labels(content, record), list) for record in content.some_records)


def read(content: Content) -> Raw:
    """One vote per record, or per annotation."""
    options, votes = content.options, Votes(content)
    stem = content.source.path.stem
    for record in content.records:
        labels = _labels(content, record)
        known = [name for name, value in record.value.items() if value is not None]
        item = votes.item(record, find(known, _NAMES) or "id")
        column = options.annotator or find(list(record.value), ANNOTATOR)
        who = None if stem.casefold() in _EVERYONE else stem
        who = field_of(record.value, column) if column else who
        people: dict[object, list[object]] = {}
        for label in labels if isinstance(labels, list) else [labels]:
            if isinstance(label, list):
                content.refuse_record(record, f"a label must be a class; got {shown(label)}")
            person, said = who, label
            if isinstance(label, dict):
                person, said = label.get("user"), label.get("label")
            if isinstance(person, dict | list):
                content.refuse_record(record, f"a user must be a name; got {shown(person)}")
            people.setdefault(person, []).append(said)
        for person, chosen in people.items() or [(who, [])]:
            votes.add(record, item, person, chosen)
    return votes.raw("doccano's JSON Lines")


def _labels(content: Content, record: Record) -> object:
    """The list of labels, under one of its names."""
    value = record.value
    if content.options.label is not None:
        return value.get(content.options.label)
    given = value.get("annotations")
    if (
        isinstance(given, list)
        and given
        and all(isinstance(each, dict) and "label" in each for each in given)
    ):
        return given
    return next((value[name] for name in _LABELS if value.get(name) is not None), None)
