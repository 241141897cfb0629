"""SageMaker Ground Truth: every worker's answer, before or after consolidation.

After it: ``annotationsFromAllWorkers`` under the job's name, in the output manifest. Before it:
``annotations`` next to ``datasetObjectId``. The answer is JSON in ``annotationData.content``.
"""

import json
from contextlib import suppress
from typing import Any

from credalearn._formats import shown
from credalearn.app._json_file import Record
from credalearn.app.readers._content import Content, Raw, Votes, chosen

_KEY = "annotationsFromAllWorkers"
# Of an item: the address of what was shown, else its number in the data set.
_NAMES = ("dataObject.s3Uri", "dataObject.content", "source-ref", "source", "datasetObjectId")


def recognize(content: Content) -> bool:
    """Records with a list of answers by workers."""
    return any(_workers(record) is not None for record in content.some_records)


def read(content: Content) -> Raw:
    """One vote per answer."""
    votes = Votes(content)
    for record in content.records:
        workers = _workers(record)
        if workers is None:
            # The job says where it could not show an object to anybody.
            parts = [each for each in record.value.values() if isinstance(each, dict)]
            if not any("failure-reason" in each for each in parts):
                content.refuse_record(record, f"the record has no list {_KEY}")
            votes.left_out["failed"] += 1
            continue
        item = votes.item(record, *_NAMES)
        for each in workers:
            labels = list(chosen(content, _answer(content, record, each), content.options.question))
            votes.add(record, item, each.get("workerId"), labels)
    return votes.raw("SageMaker Ground Truth's answers")


def _answer(content: Content, record: Record, worker: Any) -> Any:
    data = worker.get("annotationData") if isinstance(worker, dict) else None
    text = data.get("content") if isinstance(data, dict) else None
    if isinstance(text, str):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    rule = f"an answer must have JSON in annotationData.content; got {shown(worker)}"
    return content.refuse_record(record, rule)


def _workers(record: Record) -> list[Any] | None:
    """The list of answers, wherever it is."""
    value = record.value
    if "datasetObjectId" in value and isinstance(value.get("annotations"), list):
        return value["annotations"]
    for place in (value, *value.values()):
        if isinstance(place, dict) and isinstance(place.get(_KEY), list):
            return place[_KEY]
    return None
