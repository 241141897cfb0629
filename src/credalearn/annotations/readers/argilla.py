"""Argilla: flat records, with lists of answers, of users and of statuses for each question.

``<question>.responses``, ``<question>.responses.users``, ``<question>.responses.status``; only
submitted answers are votes.
"""

from typing import Any

from credalearn.annotations.asked import Asked
from credalearn.annotations.places import listed, nearest, refuse, shown
from credalearn.annotations.raw import Raw, Votes
from credalearn.annotations.records import Record, Records
from credalearn.annotations.tables import Table

_END = ".responses"


def recognise(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """Records with a field that ends in ``.responses``."""
    if isinstance(content, Table):
        return None
    found = any(name.endswith(_END) for record in content.head for name in record.value)
    return "Argilla's flat records" if found else None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote a submitted answer."""
    assert isinstance(content, Records)
    question = _question(content, asked)
    votes = Votes(content.path)
    for record in content:
        responses, users, statuses = (
            _list(content, record, f"{question}{_END}{end}") for end in ("", ".users", ".status")
        )
        for name, values in (("users", users), ("status", statuses)):
            if values and len(values) != len(responses):
                rule = f"{len(responses)} responses have {len(values)} {name}"
                refuse(content.path, f"line {record.line}", rule, fix="export the records again")
        item = record.value.get(asked.item or "id", record.key)
        for i, label in enumerate(responses):
            status = statuses[i] if statuses else "submitted"
            if status != "submitted":
                votes.leave(status if status in ("draft", "discarded", "pending") else "skipped")
                continue
            votes.add(record.line, item, users[i] if users else None, label)
    return votes.raw(f"Argilla's flat records: question {question!r} ({content.words})")


def _question(content: Records, asked: Asked) -> str:
    """The one question, or the one asked for."""
    names = dict.fromkeys(
        name.removesuffix(_END)
        for record in content.head
        for name in record.value
        if name.endswith(_END)
    )
    wanted = asked.question or asked.label
    if wanted is None and len(names) == 1:
        return next(iter(names))
    if wanted is not None and wanted in names:
        return wanted
    guess = (nearest(wanted, names) if wanted else None) or next(iter(names), "")
    rule = f"there are answers to {listed(list(names))}"
    rule += f" and none to {shown(wanted)}" if wanted else ": which one is the label"
    return refuse(content.path, "", rule, fix=f"choose with --question {guess!r}")


def _list(content: Records, record: Record, name: str) -> list[Any]:
    """A list of the record; nobody answered where it is missing."""
    value = record.value.get(name)
    if value is not None and not isinstance(value, list):
        rule = f"{shown(name)} must be a list; this is {shown(value)}"
        refuse(content.path, f"line {record.line}", rule, fix="export the records again")
    return value or []
