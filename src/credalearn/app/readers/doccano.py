"""doccano: JSON Lines with a list of labels, one file an annotator or a field for them."""

from dataclasses import replace

from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import check_field, field_of
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw, Votes
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table

_LABELS = ("label", "labels", "cats")
_ALL = ("all", "unknown")  # what doccano calls a file of everyone's labels


def recognize(content: Table | Records, asked: Asked) -> str | None:
    """Records with a list of labels, or of annotations with a label and a user."""
    if isinstance(content, Table):
        return None
    for record in content.head:
        if isinstance(_labels(record, asked), list):
            return "doccano's JSON Lines"
    return None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote a record, or an annotation."""
    assert isinstance(content, Records)
    if not isinstance(content.head[0].value.get("annotations"), list):  # those name their users
        check_field(content, asked.annotator, option="annotator")
    votes = Votes(content.path)
    stem = content.path.stem
    by_file = None if stem.casefold() in _ALL else stem
    unread: dict[str, None] = {}
    fields: dict[str, None] = {}
    for record in content:
        labels = _labels(record, asked)
        if labels is None:
            votes.leave("empty")
            continue
        if not isinstance(labels, list):
            labels = [labels]
        named, item = _item(record, asked)
        fields |= {named: None} if named else {}
        field = asked.annotator or known.find(list(record.value), known.NAMED_ANNOTATOR)
        job = None if field else known.find(list(record.value), known.JOBS)
        # A job may name the annotator or not: then nobody is known, and no vote is a repeat.
        who = field_of(record.value, field) if field else None if job else by_file
        people: dict[object, list[object]] = {}
        for label in labels:
            if isinstance(label, list):
                rule = f"labels of parts of a text are not classes; this is {shown(label)}"
                fix = "export a project of document classification"
                refuse(content.path, f"line {record.line}", rule, fix=fix)
            if isinstance(label, dict):
                people.setdefault(_scalar(label.get("user", who)), []).append(label.get("label"))
            else:
                people.setdefault(_scalar(who), []).append(label)
                unread |= {job: None} if job else {}
        if not people:
            votes.leave("empty")
        for person, chosen in people.items():
            votes.add(record.line, item, person, chosen)
    by = " or ".join(map(repr, fields))
    raw = votes.raw(f"doccano's JSON Lines: item {by} ({content.words})")
    return replace(raw, unread=tuple(unread))


def _labels(record: Record, asked: Asked) -> object:
    """The list of labels, under one of its names."""
    value = record.value
    if asked.label is not None:
        return value.get(asked.label)
    given = value.get("annotations")
    if isinstance(given, list) and given and all(_is_annotation(each) for each in given):
        return given
    return next((value[name] for name in _LABELS if value.get(name) is not None), None)


def _is_annotation(value: object) -> bool:
    return isinstance(value, dict) and "label" in value


def _scalar(value: object) -> object:
    return str(value) if isinstance(value, dict | list) else value


def _item(record: Record, asked: Asked) -> tuple[str | None, object]:
    """The field that names it, and what it says."""
    value = record.value
    if asked.item is not None:
        return asked.item, field_of(value, asked.item)
    names = ("id", "docid", *known.ITEM, "text", "data")
    field = known.find([name for name in value if value[name] is not None], names)
    return field, None if field is None else value[field]
