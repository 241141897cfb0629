"""Label Studio: its JSON export, and its CSV, which JSON-MIN resembles.

JSON: ``annotations[]`` of a task with ``completed_by``, ``was_cancelled`` and ``result[]``, where
``value.choices`` or ``value.rating`` answers the question ``from_name``. CSV: one row an annotation
with ``annotator``, ``annotation_id``, ``lead_time``, the fields of the data and the answers.
"""

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from credalearn._checks import folded, nearest
from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import field_of
from credalearn.app.annotations.places import listed, many, refuse, shown
from credalearn.app.annotations.raw import Raw, Votes, text_of
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table

_ITEM_FIELDS = (
    *("item", "id", "itemid", "image", "imageurl", "img", "url", "filename", "file", "text"),
)
_CSV = ("annotator", "annotation_id", "lead_time")
_CSV_BESIDE = ("id", *_CSV, "created_at", "updated_at", "agreement", "project", "task", "comment")
_VALUES = ("choices", "rating", "taxonomy")


def recognize(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """Records with ``data`` and a list of ``annotations`` with ``result``."""
    if isinstance(content, Table):
        return None
    for record in content.head:
        given = _annotations(record)
        if not isinstance(given, list) or not isinstance(record.value.get("data"), dict):
            continue
        if given and all(isinstance(each, dict) and "result" in each for each in given):
            return "Label Studio's JSON"
    if all(_is_unanswered(record) for record in content.head):
        _refuse_tasks(content)
    return None


def _is_unanswered(record: Record) -> bool:
    """A task that holds data and no annotation."""
    return isinstance(record.value.get("data"), dict) and not _annotations(record)


def _refuse_tasks(content: Records) -> None:
    if all(_is_unanswered(record) for record in content):
        rule = "there is no annotation in it: these are tasks that nobody has answered yet"
        fix = "export the project after people have annotated it"
        refuse(content.path, "", rule, fix=fix)


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote an annotation that was not cancelled."""
    assert isinstance(content, Records)
    votes = Votes(content.path)
    questions: dict[str, None] = {}
    fields: dict[str, None] = {}
    rows: list[tuple[str, int, object, object, dict[str, list[object]]]] = []
    named: list[str] = []
    for record in content:
        where = _place(record)
        given = _annotations(record)
        if not isinstance(given, list) or not isinstance(record.value.get("data"), dict):
            rule = "a task has no data or no list of annotations"
            refuse(content.path, where, rule, fix="export the project again as JSON")
        field, item = _item(content, record, asked)
        fields[field] = None
        named.append(text_of(item) or "" if given else "")
        for each in given:
            if not isinstance(each, dict):
                rule = f"an annotation must be an object; this is {shown(each)}"
                refuse(content.path, where, rule, fix="export the project again as JSON")
            if each.get("was_cancelled") or each.get("skipped"):
                votes.leave("cancelled")
                continue
            if "result" not in each:
                rule = f"an annotation must hold a result; this is {shown(each)}"
                refuse(content.path, where, rule, fix="export the project again as JSON")
            answers = _answers(content, record, each.get("result"))
            questions.update(dict.fromkeys(answers))
            rows.append((where, len(named), item, _who(each.get("completed_by")), answers))
    question = _question(content, list(questions), asked)
    voted = set()
    for where, task, item, who, answers in rows:
        before = len(votes.labels)
        votes.add(where, item, who, answers.get(question, []))
        voted |= {task} if len(votes.labels) > before else set()
    by = " or ".join(map(repr, fields))
    raw = votes.raw(f"Label Studio's JSON: item {by}, question {question!r} ({content.words})")
    notes = []
    shared = [count for name, count in Counter(named).items() if name and count > 1]
    apart = _apart(content) if shared else None
    if shared and asked.item is None:
        as_items = f"count as {many(len(shared), 'item')}"
        fix = f"say --item {shlex.quote(apart)}" if apart else "name a field with --item"
        told = f"{sum(shared):,} tasks have the {by} of another and {as_items}"
        notes.append(f"{told}; to tell them apart, {fix}")
    if len(voted) < len(named):
        notes.append(f"no vote in {len(named) - len(voted):,} of {many(len(named), 'task')}")
    return replace(raw, apart=apart, notes=tuple(notes))


def _apart(content: Records) -> str | None:
    """A field of the data that is another one in each task, else the task's number."""
    names = [name for name in content.head[0].value["data"] if name != "id"]
    seen: dict[str, set[str]] = {name: set() for name in [*names, "id"]}
    for record in content:
        fields = {"id": record.value.get("id"), **record.value["data"]}
        for name in list(seen):
            value = fields.get(name)
            text = None if _nested(value) else text_of(value)
            if text is None or text in seen[name]:
                del seen[name]
            else:
                seen[name].add(text)
    called_so = (name for name in seen if folded(name).endswith("id") and name != "id")
    return next(called_so, next(iter(seen), None))


def recognize_csv(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """A table with Label Studio's own columns."""
    if isinstance(content, Records) or not set(_CSV) <= set(content.columns):
        return None
    return "Label Studio's CSV"


def read_csv(content: Table | Records, asked: Asked) -> Raw:
    """One vote a row."""
    assert isinstance(content, Table)
    fields = [name for name in content.columns if name not in _CSV_BESIDE]
    images = [name for name in fields if folded(name) in _ITEM_FIELDS and folded(name) != "text"]
    item = content.column(asked.item or (images[0] if images else "id"), option="item")
    who = content.column(asked.annotator or "annotator", option="annotator")
    label = asked.label or asked.question or known.find(fields, known.LABEL)
    if label is None:
        others = [name for name in fields if name != item and folded(name) not in _ITEM_FIELDS]
        if len(others) != 1:
            rule = f"several columns could be the answer: {listed(others or fields)}"
            refuse(content.path, "line 1", rule, fix="name it with --label")
        label = others[0]
    label = content.column(label, option="label")
    wanted = {"item": item, "annotator": who, "label": label}
    frame = content.take(*(pl.col(column).alias(name) for name, column in wanted.items()))
    several = frame["label"].cast(pl.String).fill_null("").str.starts_with('{"choices"')
    left_out = {"several classes": int(several.sum())}
    words = f"Label Studio's CSV: item {item!r}, label {label!r} ({content.words})"
    rows = frame.height
    frame = frame.with_row_index("row").filter(~several)
    return Raw("votes", frame, rows, content.place, words, left_out, item=item)


def _annotations(record: Record) -> Any:
    """Of a task; before 2021 they were called completions."""
    return record.value.get("annotations", record.value.get("completions"))


def _place(record: Record) -> str:
    """A task by its number: all of them may stand in one line."""
    number = record.value.get("id")
    return f"line {record.line}" if number is None else f"task {text_of(number)}"


def _nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _item(content: Records, record: Record, asked: Asked) -> tuple[str, object]:
    """The field of the data that names it, else the task's number, and what it says."""
    data: Mapping[str, object] = record.value["data"]
    if asked.item is not None:
        if asked.item in data:
            return asked.item, data[asked.item]
        found = field_of(record.value, asked.item, ...)
        if found is not ...:
            return asked.item, found
        guess = nearest(asked.item, data)
        rule = f"the task has no field {shown(asked.item)}; its data has {listed(list(data))}"
        fix = f"say --item {guess!r}" if guess else "name one of them with --item"
        refuse(content.path, _place(record), rule, fix=fix)
    scalar = [name for name, value in data.items() if not _nested(value)]
    name = known.find(scalar, _ITEM_FIELDS)
    return ("id", record.value.get("id")) if name is None else (name, data[name])


def _who(value: object) -> object:
    """An annotator's number, or the address where the export gives the whole user."""
    if isinstance(value, dict):
        return value.get("email") or value.get("id")
    return value


def _answers(content: Records, record: Record, result: object) -> dict[str, list[object]]:
    """What was chosen, by question."""
    found: dict[str, list[object]] = {}
    if result is not None and not isinstance(result, list):
        rule = f"a result must be a list; this is {shown(result)}"
        refuse(content.path, _place(record), rule, fix="export the project again as JSON")
    for each in result or []:
        value = each.get("value") if isinstance(each, dict) else None
        if not isinstance(value, dict):
            if isinstance(each, dict) and each.get("type") == "relation":
                continue
            rule = f"a result must hold an object called value; this is {shown(each)}"
            refuse(content.path, _place(record), rule, fix="export the project again")
        for key in _VALUES:
            if key in value:
                chosen = value[key] if isinstance(value[key], list) else [value[key]]
                found.setdefault(str(each.get("from_name")), []).extend(chosen)
    return found


def _question(content: Records, questions: list[str], asked: Asked) -> str:
    """The one question, or the one asked for."""
    wanted = asked.question or asked.label
    if wanted is None and len(questions) == 1:
        return questions[0]
    if wanted in questions:
        return wanted
    if not questions:
        rule = "no annotation answers a question with choices or a rating"
        refuse(content.path, "", rule, fix="export a project of choices; boxes are not classes")
    guess = (nearest(wanted, questions) if wanted else None) or questions[0]
    rule = f"there are answers to {listed(questions)}"
    rule += f" and none to {shown(wanted)}" if wanted else ": which one is the label"
    return refuse(content.path, "", rule, fix=f"choose with --question {guess!r}")
