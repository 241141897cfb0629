"""Prodigy: JSON Lines with ``answer`` (accept, reject, ignore) and who gave it.

``accept`` lists the chosen options. Without it the record asks whether ``label`` fits: to reject
the file's only label is a vote against it; among several labels it says too little to be a vote.
A class is the option's text; where an id has two texts or a text two ids, all go by their ids.
"""

from collections.abc import Iterator

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import check_field, field_of
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw, Votes, text_of
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table

_ANSWERS = ("accept", "reject", "ignore")


def recognize(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
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
    check_field(content, asked.annotator, option="annotator")
    votes = Votes(content.path)
    options: set[tuple[str, str]] = set()
    given: list[tuple[int, object, object, object, bool]] = []
    offered: set[str] = set()
    fields: dict[str, None] = {}
    for record in content:
        value = record.value
        options.update(_options(record))
        answer = value.get("answer")
        field, item = _item(record, asked)
        fields |= {field: None} if field else {}
        who = field_of(value, asked.annotator) if asked.annotator else _who(record)
        chosen = value.get("accept")
        if "accept" not in value and isinstance(value.get("label"), str):
            offered.add(value["label"].strip())
        if answer == "ignore":
            votes.leave("skipped")
        elif answer == "reject" and "accept" not in value and isinstance(value.get("label"), str):
            given.append((record.line, item, who, value["label"].strip(), True))
        elif answer == "reject":
            votes.leave("rejected")
        elif answer == "accept":
            if chosen is not None and not isinstance(chosen, list):
                rule = f"accept must be a list; this is {shown(chosen)}"
                refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
            if chosen is None and value.get("label") is None:
                rule = "an accepted record has neither a list accept nor a label"
                refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
            label = value.get("label") if chosen is None else chosen
            given.append((record.line, item, who, label, False))
        else:
            rule = f"an answer is accept, reject or ignore; this is {shown(answer)}"
            refuse(content.path, f"line {record.line}", rule, fix="export with db-out again")
    texts = dict(options)
    if len({*texts.values()}) < len(options) or _asked_by_id(texts, asked):
        texts = {}
    for line, item, who, label, against in given:
        if isinstance(label, list):
            label = [texts.get(text_of(each) or "", each) for each in label]
        if against and len(offered) > 1:
            votes.leave("rejected")
        else:
            votes.add(line, item, who, f"not {label}" if against else label)
    named = ", options by their texts" if any(k != v for k, v in texts.items()) else ""
    by = " or ".join(map(repr, fields))
    return votes.raw(f"Prodigy's JSON Lines: item {by}{named} ({content.words})")


def _options(record: Record) -> Iterator[tuple[str, str]]:
    """The id and the text of each option; its id again where it has no text."""
    options = record.value.get("options")
    for each in options if isinstance(options, list) else ():
        name, text = (each.get("id"), each.get("text")) if isinstance(each, dict) else (None, None)
        name = text_of(name)
        if name:
            yield name, (text.strip() if isinstance(text, str) else "") or name


def _asked_by_id(texts: dict[str, str], asked: Asked) -> bool:
    """Whether the user calls a class by an id that is no text."""
    named = (*(asked.classes or ()), *asked.unsure)
    return any(each in texts and each not in texts.values() for each in named)


def _item(record: Record, asked: Asked) -> tuple[str | None, object]:
    """The user's field, an id of the user's, or else the hash of what was shown; what it says."""
    value = record.value
    meta = value.get("meta") if isinstance(value.get("meta"), dict) else {}
    if asked.item is not None:
        return asked.item, field_of(value, asked.item)
    for name in ("id", "item_id"):
        if (meta or {}).get(name) is not None:
            return f"meta.{name}", (meta or {})[name]
    for name in ("id", "item_id", "_input_hash", "_task_hash", "image", "text"):
        if value.get(name) is not None:
            return name, value[name]
    return None, None


def _who(record: Record) -> object:
    """The annotator, else the session."""
    return record.value.get("_annotator_id") or record.value.get("_session_id")
