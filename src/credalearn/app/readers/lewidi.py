"""LeWiDi (learning with disagreements): one object per item, under the item's name.

``annotators`` is "Ann1,Ann2"; ``annotations`` is "0,1", or an object from annotator to label in the
edition of 2025. An item of a test split has neither, perhaps a ``soft_label``.
"""

from collections.abc import Mapping

from credalearn._formats import many, shown
from credalearn.app._json_file import Record
from credalearn.app.readers._content import Content, Raw, Votes, shares_of

_OWN = ("number of annotations", "number of annotators", "annotation task", "soft_label")


def recognize(content: Content) -> bool:
    """Records with ``annotators`` and ``annotations``, or with a soft label."""
    for record in content.some_records:
        value = record.value
        plain = isinstance(value.get("annotations"), str | dict)
        if plain and ("annotators" in value or any(name in value for name in _OWN)):
            return True
        if isinstance(value.get("soft_label"), dict) and value["soft_label"]:
            return True
    return False


def read(content: Content) -> Raw:
    """One vote per annotation; without any, the soft labels."""
    votes = Votes(content)
    answered = False
    for record in content.records:
        people, labels = _answers(content, record)
        answered = answered or bool(labels)
        item = votes.item(record, *(("id",) if record.key is None else ()))
        for i, label in enumerate(labels):
            votes.add(record, item, people[i] if people else None, label)
        if not labels:
            votes.add(record, item, None, None)
    if not answered and any(record.value.get("soft_label") for record in content.records):
        return _soft(content)
    return votes.raw("LeWiDi's JSON")


def _answers(content: Content, record: Record) -> tuple[list[str], list[object]]:
    """Annotators and their labels, in step."""
    given, people = record.value.get("annotations"), record.value.get("annotators")
    if isinstance(given, Mapping):
        return [str(name) for name in given], list(given.values())
    if given is None or given == "":
        return [], []
    if not isinstance(given, str):
        content.refuse_record(record, f"annotations must be a text or object; got {shown(given)}")
    labels: list[object] = [label.strip() for label in given.split(",")]
    if not isinstance(people, str) or not people.strip():
        return [], labels
    names = [name.strip() for name in people.split(",")]
    if len(names) != len(labels):
        content.refuse_record(
            record, f"{many(len(names), 'annotator')} and {many(len(labels), 'annotation')}"
        )
    return names, labels


def _soft(content: Content) -> Raw:
    """Probabilities by class."""
    votes, items, rows = Votes(content), list[object](), []
    for record in content.records:
        soft = record.value.get("soft_label")
        if not isinstance(soft, dict):
            rule = f"a soft label must be an object of classes; got {shown(soft)}"
            content.refuse_record(record, rule)
        items.append(votes.item(record, *(("id",) if record.key is None else ())))
        rows.append(soft)
    return shares_of(content, "probabilities", items, rows, "LeWiDi's JSON, soft labels")
