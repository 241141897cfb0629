"""SageMaker Ground Truth: every worker's answer, before or after consolidation.

After it: ``annotationsFromAllWorkers`` under the job's name, in the output manifest or in a
consolidation response. Before it: ``annotations`` beside ``datasetObjectId``. The answer is JSON in
the text ``annotationData.content``.
"""

import json
from typing import Any

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.fields import field_of
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw, Votes
from credalearn.app.annotations.records import Record, Records
from credalearn.app.annotations.text_tables import Table
from credalearn.app.readers.answers import answer_of

_KEY = "annotationsFromAllWorkers"


def recognize(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """Records that hold a list of answers with ``workerId``."""
    if isinstance(content, Table):
        return None
    found = any(_workers(record) is not None for record in content.head)
    return "SageMaker Ground Truth's answers of all workers" if found else None


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote an answer."""
    assert isinstance(content, Records)
    votes = Votes(content.path)
    fields: dict[str, None] = {}
    for record in content:
        where = f"line {record.line}"
        workers = _workers(record)
        if workers is None:
            if not _failed(record):
                rule = f"the record holds no list {_KEY}"
                refuse(content.path, where, rule, fix="export the job's answers again")
            votes.leave("failed")
            continue
        for each in workers:
            data = each.get("annotationData") if isinstance(each, dict) else None
            text = data.get("content") if isinstance(data, dict) else None
            if not isinstance(text, str | dict):
                rule = f"an answer must hold annotationData.content; this is {shown(each)}"
                refuse(content.path, where, rule, fix="export the job's answers again")
            try:
                answer = json.loads(text) if isinstance(text, str) else text
            except (ValueError, RecursionError):
                rule = f"the answer is no JSON: {shown(text)}"
                refuse(content.path, where, rule, fix="export the job's answers again")
            chosen = answer_of(content.path, where, answer, asked.question)
            field, item = _item(record, asked)
            fields[field] = None
            votes.add(record.line, item, each.get("workerId"), chosen)
    what = f"SageMaker Ground Truth's answers of all workers: item {' or '.join(fields)}"
    return votes.raw(f"{what} ({content.words})")


def _failed(record: Record) -> bool:
    """Whether the job says that it could not show this object to anybody."""
    fields = [value for value in record.value.values() if isinstance(value, dict)]
    return any("failure-reason" in each for each in fields)


def _workers(record: Record) -> list[Any] | None:
    """The list of answers, wherever it stands."""
    value = record.value
    if "datasetObjectId" in value and isinstance(value.get("annotations"), list):
        found: list[Any] = value["annotations"]
        return found
    places = [value, *value.values()]
    consolidated = value.get("consolidatedAnnotation")
    content = consolidated.get("content") if isinstance(consolidated, dict) else None
    if isinstance(content, dict):
        places += [content, *content.values()]
    for place in places:
        if isinstance(place, dict) and isinstance(place.get(_KEY), list):
            answers: list[Any] = place[_KEY]
            return answers
    return None


def _item(record: Record, asked: Asked) -> tuple[str, object]:
    """The address of what was shown, else its number in the data set: where, and what it says."""
    value = record.value
    if asked.item is not None:
        return repr(asked.item), field_of(value, asked.item)
    shown_object = value.get("dataObject")
    if isinstance(shown_object, dict):
        found = shown_object.get("s3Uri") or shown_object.get("content")
        if found is not None:
            return "'dataObject'", found
    for name in ("source-ref", "source", "datasetObjectId"):
        if value.get(name) is not None:
            return repr(name), value[name]
    return "by its key", record.key
