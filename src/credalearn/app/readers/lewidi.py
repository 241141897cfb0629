"""LeWiDi's JSON (learning with disagreements): one object an item, under the item's name.

``annotators`` is "Ann1,Ann2"; ``annotations`` is "0,1", or an object from annotator to label in the
edition of 2025. An item of a test split has neither, perhaps a ``soft_label``.
"""

from collections.abc import Mapping

import polars as pl

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import field_of
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw, Votes, check_classes, check_text, text_of
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table

_OWN = ("number of annotations", "number of annotators", "annotation task", "soft_label")


def recognize(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """Records with ``annotators`` and ``annotations`` beside another of LeWiDi's fields."""
    if isinstance(content, Table):
        return None
    for record in content.head:
        value = record.value
        plain = isinstance(value.get("annotations"), str | dict)
        if plain and ("annotators" in value or any(name in value for name in _OWN)):
            return "LeWiDi's JSON"
        if isinstance(value.get("soft_label"), dict) and value["soft_label"]:
            return "LeWiDi's JSON"
    return None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote an annotation; without any, the soft labels."""
    assert isinstance(content, Records)
    votes = Votes(content.path)
    for record in content:
        people, labels = _answers(content, record)
        if not labels:
            votes.leave("empty")
        for i, label in enumerate(labels):
            votes.add(record.line, _item(record, asked), people[i] if people else None, label)
    if not votes.labels and any(record.value.get("soft_label") for record in content.head):
        return _soft(content, asked)
    by = "by its key" if content.head[0].key is not None else "'id'"
    return votes.raw(
        f"LeWiDi's JSON: item {repr(asked.item) if asked.item else by} ({content.words})"
    )


def _answers(content: Records, record: Record) -> tuple[list[str], list[object]]:
    """Annotators and their labels, in step."""
    given, people = record.value.get("annotations"), record.value.get("annotators")
    if isinstance(given, Mapping):
        return [str(name) for name in given], list(given.values())
    if given is None or given == "":
        return [], []
    where = f"line {record.line}"
    if not isinstance(given, str):
        rule = f"annotations must be a text such as '0,1'; this is {shown(given)}"
        refuse(content.path, where, rule, fix="give the file as it was published")
    labels: list[object] = [label.strip() for label in given.split(",")]
    if not isinstance(people, str) or not people.strip():
        return [], labels
    names = [name.strip() for name in people.split(",")]
    if len(names) != len(labels):
        rule = f"{len(names)} annotators gave {len(labels)} annotations"
        refuse(content.path, where, rule, fix="give the file as it was published")
    return names, labels


def _item(record: Record, asked: Asked) -> object:
    if asked.item is not None:
        return field_of(record.value, asked.item)
    return record.key if record.key is not None else record.value.get("id")


def _soft(content: Records, asked: Asked) -> Raw:
    """Probabilities by class."""
    rows: list[dict[str, str | None]] = []
    lines: list[int] = []
    for record in content:
        soft = record.value.get("soft_label")
        if not isinstance(soft, dict):
            rule = f"a soft label must be an object; this is {shown(soft)}"
            refuse(content.path, f"line {record.line}", rule, fix="give every item a soft label")
        check_classes(content.path, f"line {record.line}", soft)
        row = {
            "item": text_of(_item(record, asked)),
            **{k: text_of(v) for k, v in soft.items()},
        }
        for text in (*row, *row.values()):
            check_text(content.path, record.line, text)
        rows.append(row)
        lines.append(record.line)
    names = list(dict.fromkeys(name for row in rows for name in row if name != "item"))
    columns = {name: [row.get(name, "0") for row in rows] for name in ("item", *names)}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    place = lambda row: f"line {lines[row]}"  # noqa: E731
    words = f"LeWiDi's JSON, soft labels ({content.words})"
    return Raw("probabilities", frame, len(rows), place, words)
