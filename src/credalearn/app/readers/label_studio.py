"""Label Studio's JSON export, tasks with ``data`` and a list of ``annotations``; and its CSV.

An annotation has ``completed_by``, ``was_cancelled`` and ``result[]``, where ``value.choices`` or
``value.rating`` answers the question ``from_name``.
"""

from collections import Counter
from typing import Any

from credalearn._checks import folded
from credalearn._formats import listed, shown
from credalearn.app._json_file import Record, text_of
from credalearn.app.column_names import LABEL, find
from credalearn.app.readers._content import Content, Raw, Votes, field_of

_ITEM_FIELDS = (
    *("item", "id", "itemid", "image", "imageurl", "img", "url", "filename", "file", "text"),
)
_VALUES = ("choices", "rating", "taxonomy")
_OWN = ("annotator", "annotation_id", "lead_time")
_BESIDE = ("id", *_OWN, "created_at", "updated_at", "agreement", "project", "task", "comment")


def recognize(content: Content) -> bool:
    """Records with an object ``data`` and a list of ``annotations`` with ``result``."""
    return any(
        isinstance(record.value.get("data"), dict)
        and isinstance(given := record.value.get("annotations"), list)
        and all(isinstance(each, dict) and "result" in each for each in given)
        for record in content.some_records
    )


def read(content: Content) -> Raw:
    """One vote per annotation that was not canceled."""
    votes = Votes(content)
    found: list[tuple[Record, object, object, dict[str, list[object]]]] = []
    tasks: Counter[str | None] = Counter()
    marked = 0
    for each in content.records:
        number = each.value.get("id")
        record = each if number is None else each._replace(place=f"task {text_of(number)}")
        given = record.value.get("annotations")
        if not isinstance(given, list) or not isinstance(record.value.get("data"), dict):
            content.refuse_record(record, "a task must have data and a list of annotations")
        field, item = _item(content, record)
        votes.fields[field] = None
        if given and not isinstance(item, dict | list):
            tasks[text_of(item)] += 1
        named = bool((text_of(item) or "").strip())
        if not given and named:  # it may have a gold label
            found.append((record, item, None, {}))
            votes.left_out["empty"] -= 1  # a task without an annotation is no empty answer
        for annotation in given:
            answers = _answers(content, record, annotation)
            if answers is None:
                votes.left_out["canceled"] += 1
                if not named:
                    continue
                votes.left_out["empty"] -= 1  # it keeps the item, and is counted once
            marked += bool(annotation.get("ground_truth") and answers)
            who = annotation.get("completed_by")
            if isinstance(who, dict):  # the whole user
                who = who.get("email") or who.get("id")
            found.append((record, item, who, answers or {}))
    question = content.choose(list(dict.fromkeys(name for *_, each in found for name in each)))
    for record, item, who, answers in found:
        votes.add(record, item, who, answers.get(question, []))
    notes: tuple[str, ...] = ()
    shared = sum(count for count in tasks.values() if count > 1)
    if shared and content.options.item is None:
        notes = (f"{shared:,} tasks share an item; pass item='id' to keep all tasks apart",)
    if marked:
        notes = (*notes, f"annotations marked as ground truth, which count as votes: {marked:,}")
    return votes.raw("Label Studio's JSON", f", question {question!r}", notes)


def _item(content: Content, record: Record) -> tuple[str, object]:
    """The field of the data that names the item, else the task's number; and its value."""
    data: dict[str, object] = record.value["data"]
    name = content.options.item
    if name is not None:
        return name, data[name] if name in data else field_of(record.value, name)
    scalar = [key for key, value in data.items() if not isinstance(value, dict | list)]
    name = find(scalar, _ITEM_FIELDS)
    return ("id", record.value.get("id")) if name is None else (name, data[name])


def _answers(content: Content, record: Record, annotation: Any) -> dict[str, list[object]] | None:
    """What was chosen, by question; None for a canceled annotation."""
    if not isinstance(annotation, dict):
        content.refuse_record(record, f"an annotation must be an object; got {shown(annotation)}")
    if annotation.get("was_cancelled"):
        return None
    results = annotation.get("result")
    if not isinstance(results, list):
        content.refuse_record(record, f"a result must be a list; got {shown(results)}")
    found: dict[str, list[object]] = {}
    for each in results:
        value = each.get("value") if isinstance(each, dict) else None
        held = value if isinstance(value, dict) else {}
        for key in _VALUES:
            if key in held:
                chosen = held[key] if isinstance(held[key], list) else [held[key]]
                found.setdefault(str(each.get("from_name")), []).extend(chosen)
    return found


def recognize_csv(content: Content) -> bool:
    """A table with Label Studio's own columns."""
    return set(_OWN) <= set(content.columns)


def read_csv(content: Content) -> Raw:
    """One vote per row of its CSV or JSON-MIN."""
    fields = [name for name in content.columns if name not in _BESIDE]
    images = [name for name in fields if folded(name) in _ITEM_FIELDS and folded(name) != "text"]
    item = content.column("item", ()) or (images[0] if images else "id")
    who = content.column("annotator", ("annotator",)) or "annotator"
    label = content.options.label or content.options.question or find(fields, LABEL)
    if label is None:
        others = [name for name in fields if name != item and folded(name) not in _ITEM_FIELDS]
        if len(others) != 1:
            content.source.refuse(
                f"several columns could be the answer: {listed(others or fields)}",
                fix="name it with label=",
            )
        label = others[0]
    label = content.source.column(label, option="label")
    frame = content.text(item=item, annotator=who, label=label)
    several = frame["label"].fill_null("").str.starts_with('{"choices"')
    words = f"Label Studio's CSV: item {item!r}, label {label!r}"
    left_out = {"with several classes": int(several.sum())}
    frame = frame.filter(~several)
    return Raw("votes", frame, content.source, words, left_out, item=item)
