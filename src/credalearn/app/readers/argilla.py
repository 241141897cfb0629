"""Argilla: its records with their ``responses``, or flat with lists for each question.

Nested: ``responses`` is ``{question: [{value, user_id, status}]}``, or in older versions
``[{user_id, status, values: {question: {value}}}]``. Flat: ``<question>.responses``, perhaps with
``.users`` and ``.status``. A record that nobody has answered lacks these fields.
"""

from collections.abc import Iterator
from typing import Any

from credalearn._formats import many, shown
from credalearn.app._json_file import Record
from credalearn.app.readers._content import Content, Raw, Votes

_END = ".responses"


def recognize(content: Content) -> bool:
    """Records with a field of answers."""
    return bool(_questions(content))


def read(content: Content) -> Raw:
    """One vote per submitted answer."""
    question = content.choose(_questions(content))
    votes = Votes(content)
    for record in content.records:
        item = votes.item(record, "id")
        flat = f"{question}{_END}" in record.value
        for label, user, status in (_flat if flat else _nested)(content, record, question):
            if status in (None, "submitted"):
                votes.add(record, item, user, label)
            else:
                votes.left_out[str(status)] += 1
    return votes.raw("Argilla's records", f", question {question!r}")


def _questions(content: Content) -> list[str]:
    found: dict[str, None] = {}
    for record in content.records:
        given = record.value.get("responses")
        if isinstance(given, dict) and all(
            isinstance(each, list | None) for each in given.values()
        ):
            found |= dict.fromkeys(given)
        for each in given if isinstance(given, list) else ():
            values = each.get("values") if isinstance(each, dict) else None
            found |= dict.fromkeys(values if isinstance(values, dict) else ())
        flat = (name for name in record.value if name.endswith(_END))
        found |= dict.fromkeys(name.removesuffix(_END) for name in flat)
    return list(found)


def _flat(content: Content, record: Record, question: str) -> Iterator[tuple[Any, Any, Any]]:
    """Label, user and status of each answer."""
    lists: list[list[Any]] = []
    for name in (f"{question}{_END}{end}" for end in ("", ".users", ".status")):
        value = record.value.get(name)
        if value is not None and not isinstance(value, list):
            content.refuse_record(record, f"{shown(name)} must be a list; got {shown(value)}")
        lists.append(value or [])
    responses, users, statuses = lists
    for name, values in (("users", users), ("statuses", statuses)):
        if values and len(values) != len(responses):
            content.refuse_record(
                record, f"{many(len(responses), 'answer')} and {len(values)} {name}"
            )
    for i, label in enumerate(responses):
        yield label, users[i] if users else None, statuses[i] if statuses else None


def _nested(content: Content, record: Record, question: str) -> Iterator[tuple[Any, Any, Any]]:
    given = record.value.get("responses") or []
    answers = (given.get(question) or []) if isinstance(given, dict) else given
    for each in answers if isinstance(answers, list) else [answers]:
        said = each
        if isinstance(each, dict) and not isinstance(given, dict):
            values = each.get("values") or {}
            said = (values.get(question) or {}) if isinstance(values, dict) else values
        if not isinstance(said, dict):
            content.refuse_record(record, f"a response must be an object; got {shown(said)}")
        yield said.get("value"), each.get("user_id"), each.get("status")
