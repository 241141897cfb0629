"""Prodigy: JSON Lines with ``answer`` (accept, reject, ignore) and who gave it.

``accept`` lists the chosen options. Without it the record asks whether ``label`` fits: to reject
the file's only label is a vote against it; among several labels it says too little to be a vote.
"""

from credalearn.annotations.asked import Asked
from credalearn.annotations.places import refuse, shown
from credalearn.annotations.raw import Raw, Votes
from credalearn.annotations.records import Record, Records
from credalearn.annotations.text_tables import Table

_ANSWERS = ("accept", "reject", "ignore")


def recognise(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """Records whose ``answer`` is one of Prodigy's, with one of its hashes or names."""
    if isinstance(content, Table):
        return None
    own = ("_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id")
    for record in content.head:
        answer = record.value.get("answer")
        if isinstance(answer, str) and answer in _ANSWERS and any(n in record.value for n in own):
            return "Prodigy's JSON Lines"
    return None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote an accepted answer."""
    assert isinstance(content, Records)
    votes = Votes(content.path)
    against: list[tuple[int, object, object, str]] = []
    offered: set[str] = set()
    for record in content:
        value = record.value
        answer = value.get("answer")
        item = _item(record, asked)
        who = value.get(asked.annotator) if asked.annotator else _who(record)
        chosen = value.get("accept")
        if "accept" not in value and isinstance(value.get("label"), str):
            offered.add(value["label"].strip())
        if answer == "ignore":
            votes.leave("skipped")
        elif answer == "reject" and "accept" not in value and isinstance(value.get("label"), str):
            against.append((record.line, item, who, value["label"].strip()))
        elif answer == "reject":
            votes.leave("rejected")
        elif answer == "accept":
            if chosen is not None and not isinstance(chosen, list):
                rule = f"accept must be a list; this is {shown(chosen)}"
                refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
            if chosen is None and value.get("label") is None:
                rule = "an accepted record has neither a list accept nor a label"
                refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
            votes.add(record.line, item, who, value.get("label") if chosen is None else chosen)
        else:
            rule = f"an answer is accept, reject or ignore; this is {shown(answer)}"
            refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
    for line, item, who, label in against:
        if len(offered) == 1:
            votes.add(line, item, who, f"not {label}")
        else:
            votes.leave("rejected")
    return votes.raw(f"Prodigy's JSON Lines ({content.words})")


def _item(record: Record, asked: Asked) -> object:
    """The user's field, an id of the user's, or else the hash of what was shown."""
    value = record.value
    meta = value.get("meta") if isinstance(value.get("meta"), dict) else {}
    if asked.item is not None:
        return value.get(asked.item, (meta or {}).get(asked.item))
    for name in ("id", "item_id"):
        if (meta or {}).get(name) is not None:
            return (meta or {})[name]
    for name in ("id", "item_id", "_input_hash", "_task_hash", "image", "text"):
        if value.get(name) is not None:
            return value[name]
    return None


def _who(record: Record) -> object:
    """The annotator, else the session."""
    return record.value.get("_annotator_id") or record.value.get("_session_id")
