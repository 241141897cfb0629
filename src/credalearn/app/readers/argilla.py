"""Argilla: flat records, with lists of answers, of users and of statuses for each question.

``<question>.responses``, ``<question>.responses.users``, ``<question>.responses.status``; only
submitted answers are votes. A record that nobody has answered lacks these fields.
"""

from typing import Any

from credalearn._checks import nearest
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import field_of
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.raw import Raw, Votes
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table

_END = ".responses"
_OF_ANSWERS = (_END, f"{_END}.users", f"{_END}.status")
_OF_QUESTIONS = (*_OF_ANSWERS, ".suggestion", ".suggestion.score", ".suggestion.agent")


def recognize(content: Table | Records, asked: Asked) -> str | None:
    """Records with a field of answers; a table with one of a question, which ``read`` refuses."""
    if isinstance(content, Table) and asked.label is not None:
        return None
    ends = _OF_QUESTIONS if isinstance(content, Table) else _OF_ANSWERS
    return "Argilla's flat records" if _fields(content, ends) else None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote a submitted answer."""
    answered = [name.removesuffix(_END) for name in _fields(content, (_END,))]
    if isinstance(content, Table) or not answered:
        rule = f"Argilla's records hold no list of answers in a field {shown('<question>' + _END)}"
        fix = "export the answered records as JSON Lines; if these are votes, say their --format"
        refuse(content.path, "", rule, fix=fix)
    question = _question(content, answered, asked)
    votes = Votes(content.path)
    for record in content:
        responses, users, statuses = (
            _list(content, record, f"{question}{_END}{end}") for end in ("", ".users", ".status")
        )
        for name, values in (("users", users), ("status", statuses)):
            if values and len(values) != len(responses):
                rule = f"{len(responses)} responses have {len(values)} {name}"
                refuse(content.path, f"line {record.line}", rule, fix="export the records again")
        item = record.value.get("id", record.key)
        if asked.item is not None:
            item = field_of(record.value, asked.item)
        for i, label in enumerate(responses):
            status = statuses[i] if statuses else "submitted"
            if status != "submitted":
                votes.leave(status if status in ("draft", "discarded", "pending") else "skipped")
                continue
            votes.add(record.line, item, users[i] if users else None, label)
    by = f"item {asked.item or 'id'!r}, question {question!r}"
    return votes.raw(f"Argilla's flat records: {by} ({content.words})")


def _fields(content: Table | Records, ends: tuple[str, ...]) -> list[str]:
    """Names that end like this, in the order in which they appear in any record."""
    if isinstance(content, Table):
        return [name for name in content.columns if name.endswith(ends)]
    if content.text is not None and not any(f'{end}"' in content.text for end in ends):
        return []  # a million records of another tool need not be decoded to know
    names = dict.fromkeys(name for record in content for name in record.value)
    return [name for name in names if name.endswith(ends)]


def _question(content: Records, names: list[str], asked: Asked) -> str:
    """The one question, or the one asked for."""
    wanted = asked.question or asked.label
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is not None and wanted in names:
        return wanted
    guess = (nearest(wanted, names) if wanted else None) or names[0]
    rule = f"there are answers to {listed(names)}"
    rule += f" and none to {shown(wanted)}" if wanted else ": which one is the label"
    return refuse(content.path, "", rule, fix=f"choose with --question {guess!r}")


def _list(content: Records, record: Record, name: str) -> list[Any]:
    """A list of the record; nobody answered where it is missing."""
    value = record.value.get(name)
    if value is not None and not isinstance(value, list):
        rule = f"{shown(name)} must be a list; this is {shown(value)}"
        refuse(content.path, f"line {record.line}", rule, fix="export the records again")
    return value or []
