"""Argilla: flat records, with lists of answers, of users and of statuses for each question.

``<question>.responses``, ``<question>.responses.users``, ``<question>.responses.status``; only
submitted answers are votes. A record that nobody has answered lacks these fields.
"""

from typing import Any

from credalearn._formats import shown
from credalearn.app._json_file import Record
from credalearn.app.readers._content import Content, Raw, Votes, field_of

_END = ".responses"


def recognize(content: Content) -> bool:
    """Records with a field of answers."""
    return bool(_questions(content))


def read(content: Content) -> Raw:
    """One vote per submitted answer."""
    question = content.choose(_questions(content))
    votes = Votes(content)
    for record in content.records:
        responses, users, statuses = (
            _list(content, record, f"{question}{_END}{end}") for end in ("", ".users", ".status")
        )
        for name, values in (("users", users), ("statuses", statuses)):
            if values and len(values) != len(responses):
                content.refuse_record(record, f"{len(responses)} answers have {len(values)} {name}")
        item = record.value.get("id", record.key)
        if content.options.item is not None:
            item = field_of(record.value, content.options.item)
        for i, label in enumerate(responses):
            status = statuses[i] if statuses else "submitted"
            if status == "submitted":
                votes.add(record, item, users[i] if users else None, label)
            else:
                votes.leave(str(status))
    by = f"item {content.options.item or 'id'!r}, question {question!r}"
    return votes.raw(f"Argilla's flat records: {by}")


def _questions(content: Content) -> list[str]:
    names = dict.fromkeys(name for record in content.records for name in record.value)
    return [name.removesuffix(_END) for name in names if name.endswith(_END)]


def _list(content: Content, record: Record, name: str) -> list[Any]:
    value = record.value.get(name)
    if value is not None and not isinstance(value, list):
        content.refuse_record(record, f"{shown(name)} must be a list; got {shown(value)}")
    return value or []
