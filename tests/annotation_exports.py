"""Small exports of every annotation tool, all of the same votes."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from credalearn.app.annotations.table import Annotations

ITEMS = [f"img-{i:02}.jpg" for i in range(8)]
PEOPLE = ["ann", "bo", "cy"]
CLASSES = ["cat", "dog", "owl"]
# VOTES[item][annotator]; None is no answer. Every class occurs, and people disagree.
VOTES = {
    item: {
        person: None if (i + 2 * j) % 7 == 6 else CLASSES[(i + (i * j) % 3 // 2) % 3]
        for j, person in enumerate(PEOPLE)
    }
    for i, item in enumerate(ITEMS)
}
Counts = dict[tuple[str, str], float]
Write = Callable[..., Path]  # the fixture ``write``
LONG = "task,worker,label\n"  # the header of a long table
STATED = "item,annotator,top,top_percent,second,second_percent,impossible\n"
SAID = STATED + "x,ann,cat,70,dog,30,fox;owl\nx,bo,dog,60 %,No,,cat | fox\ny,ann,fox,80,dog,40,\n"


def expected() -> Counts:
    """Votes of each item for each class."""
    found: Counter[tuple[str, str]] = Counter()
    for item, votes in VOTES.items():
        found.update((item, label) for label in votes.values() if label is not None)
    return dict(found)


def answers() -> Iterator[tuple[str, str, str | None]]:
    """One after the other."""
    for item, votes in VOTES.items():
        for person, label in votes.items():
            yield item, person, label


def rows_to_csv(header: list[str], rows: list[list[Any]], delimiter: str = ",") -> bytes:
    """A table as text."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue().encode()


def to_json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


def to_lines(values: list[Any]) -> bytes:
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def studio_task(number: int, data: dict[str, Any], *answers: dict[str, str], **more: Any) -> Any:
    """A task of Label Studio, each answer by the next person: labels by question."""
    given = [
        {
            "completed_by": who,
            "result": [{"from_name": q, "value": {"choices": [x]}} for q, x in answer.items()],
        }
        for who, answer in enumerate(answers)
    ]
    return {"id": number, "data": data, "annotations": given, **more}


def long_csv() -> bytes:
    rows = [[item, who, label] for item, who, label in answers() if label]
    return rows_to_csv(["task", "worker", "label"], rows)


def long_tsv() -> bytes:
    rows = [[who, item, label or ""] for item, who, label in answers()]
    return rows_to_csv(["rater_id", "item_id", "answer"], rows, "\t")


def long_parquet() -> bytes:
    table = pl.DataFrame(list(answers()), schema=["task", "performer", "label"], orient="row")
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def long_jsonl() -> bytes:
    return to_lines([{"item": i, "annotator": a, "label": v} for i, a, v in answers()])


def wide_csv() -> bytes:
    rows = [[item, *(votes[who] or "" for who in PEOPLE)] for item, votes in VOTES.items()]
    return rows_to_csv(["item", *PEOPLE], rows)


def counts_csv() -> bytes:
    found = expected()
    rows = [[item, *(int(found.get((item, name), 0)) for name in CLASSES)] for item in ITEMS]
    return rows_to_csv(["item", *(f"count_{name}" for name in CLASSES)], rows)


def probabilities_csv() -> bytes:
    found = expected_probabilities()
    rows = [[item, *(found[item, name] for name in CLASSES)] for item in ITEMS]
    return rows_to_csv(["item", *CLASSES], rows)


def bounds_csv() -> bytes:
    rows = [[*place, least] for place, least in expected_bounds().items()]
    return rows_to_csv(["item", "label", "at_least"], rows)


def statements_csv() -> bytes:
    more = (["70", "No", "", "dog;owl"], ["55.5", "owl", "20", ""], ["80 %", "", "", "cat | dog"])
    rows = [[*said, *more[i % 3]] for i, said in enumerate(answers())]
    return rows_to_csv(STATED.strip().split(","), rows)


def label_studio_json() -> bytes:
    tasks = []
    for i, (item, votes) in enumerate(VOTES.items(), 1):
        labels = ({"animal": label} if label else {} for label in votes.values())
        tasks.append(studio_task(i, {"image": item}, *labels, predictions=[]))
        for given, (who, label) in zip(tasks[-1]["annotations"], votes.items(), strict=True):
            known = {"id": PEOPLE.index(who), "email": f"{who}@example.org"}
            given |= {"completed_by": known, "was_cancelled": label is None, "lead_time": 4.2}
    return to_json(tasks)


def label_studio_csv() -> bytes:
    header = ["annotation_id", "annotator", "animal", "created_at", "id", "image", "lead_time"]
    rows = [
        [n, PEOPLE.index(who), label or "", "2024-05-01", ITEMS.index(item), item, 3.1]
        for n, (item, who, label) in enumerate(answers())
    ]
    return rows_to_csv(header, rows)


def argilla_jsonl() -> bytes:
    records = [
        {
            "id": item,
            "status": "completed",
            "text": "a picture",
            "animal.responses": [label or "cat" for label in votes.values()],
            "animal.responses.users": [f"user-{who}" for who in votes],
            "animal.responses.status": ["submitted" if v else "discarded" for v in votes.values()],
            "animal.suggestion": "cat",
        }
        for item, votes in VOTES.items()
    ]
    return to_lines(records)


def argilla_nested_json() -> bytes:
    """As ``dataset.records.to_json`` of Argilla 2 writes it."""
    records = [
        {
            "id": item,
            "status": "completed",
            "fields": {"image": item},
            "metadata": {},
            "suggestions": {"animal": {"value": "cat", "score": None, "agent": None}},
            "responses": {
                "animal": [
                    {"value": v or "cat", "user_id": a, "status": "submitted" if v else "draft"}
                    for a, v in votes.items()
                ]
            },
        }
        for item, votes in VOTES.items()
    ]
    return to_json(records)


def chaosnli_jsonl() -> bytes:
    found = expected()
    records = [
        {
            "uid": item,
            "label_counter": {each: n for each in CLASSES if (n := found.get((item, each)))},
            "majority_label": "cat",
            "label_dist": [found.get((item, name), 0) / 3 for name in CLASSES],
            "label_count": [found.get((item, name), 0) for name in CLASSES],
            "entropy": 0.7 + i / 10,
            "example": {"uid": item, "premise": f"A pet {i}.", "hypothesis": "It sleeps."},
            "old_label": "cat",
            "old_labels": [label for label in VOTES[item].values() if label],
        }
        for i, item in enumerate(ITEMS)
    ]
    return to_lines(records)


def prodigy_jsonl() -> bytes:
    records = [
        {
            "image": item,
            "_input_hash": hash_of(item),
            "_task_hash": hash_of(item) + 7,
            "options": [{"id": i, "text": name} for i, name in enumerate(CLASSES)],
            "accept": [CLASSES.index(label)] if label else [],
            "answer": "accept" if label else "ignore",
            "_annotator_id": f"pets-{who}",
            "_session_id": f"pets-{who}",
            "meta": {"id": item},
        }
        for item, who, label in answers()
    ]
    return to_lines(records)


def hash_of(item: str) -> int:
    return -1_000_003 * (1 + ITEMS.index(item))


def mturk_csv() -> bytes:
    header = ["HITId", "WorkerId", "AssignmentStatus", "Input.image_url", "Answer.animal.label"]
    rows = [
        [f"HIT{ITEMS.index(i)}", a, "Approved" if v else "Rejected", i, v or "cat"]
        for i, a, v in answers()
    ]
    return rows_to_csv(header, rows)


def ground_truth_manifest() -> bytes:
    def answer(who: str, label: str | None) -> dict[str, Any]:
        chosen = {"crowd-image-classifier": {"label": label} if label else {}}
        content = json.dumps(chosen)
        return {"workerId": f"private.{who}", "annotationData": {"content": content}}

    return to_lines(
        [
            {
                "source-ref": item,
                "pets": {"annotationsFromAllWorkers": [answer(w, v) for w, v in votes.items()]},
                "pets-metadata": {"type": "groundtruth/custom", "job-name": "pets"},
            }
            for item, votes in VOTES.items()
        ]
    )


def lewidi_json() -> bytes:
    found = {}
    for item, votes in VOTES.items():
        given = {who: label for who, label in votes.items() if label}
        share = Counter(given.values())
        found[item] = {
            "annotation task": "animals",
            "text": "a picture",
            "number of annotations": len(given),
            "annotators": ",".join(given),
            "annotations": ",".join(given.values()),
            "soft_label": {name: share[name] / len(given) for name in share},
        }
    return to_json(found)


def doccano_jsonl() -> bytes:
    records = [
        {"id": item, "text": "a picture", "label": [label] if label else [], "username": who}
        for item, who, label in answers()
    ]
    return to_lines(records)


def as_counts(annotations: Annotations) -> Counts:
    """What the package counted, as the counters give it."""
    counts = annotations.counts()
    return {
        (item, name): float(counts[i, k])
        for i, item in enumerate(annotations.items)
        for k, name in enumerate(annotations.classes)
        if counts[i, k]
    }


@dataclass(frozen=True, slots=True)
class Export:
    """A file of one tool, and what its readers must count."""

    format: str
    write: Callable[[], bytes]
    counts: Callable[[], Counts] = expected


def expected_probabilities() -> Counts:
    return {
        (item, name): share
        for i, item in enumerate(ITEMS)
        for name, share in zip(CLASSES, (0.5, 0.3 + 0.01 * i, 0.2 - 0.01 * i), strict=True)
    }


def expected_bounds() -> Counts:
    return {(item, name): 0.3 - 0.1 * k for item in ITEMS for k, name in enumerate(CLASSES[:2])}


EXPORTS = {
    "long-csv": Export("long", long_csv),
    "long-tsv": Export("long", long_tsv),
    "long-parquet": Export("long", long_parquet),
    "long-jsonl": Export("long", long_jsonl),
    "wide-csv": Export("wide", wide_csv),
    "counts-csv": Export("counts", counts_csv),
    "probabilities-csv": Export("probabilities", probabilities_csv, expected_probabilities),
    "bounds-csv": Export("bounds", bounds_csv, expected_bounds),
    "statements-csv": Export("statements", statements_csv),
    "label-studio": Export("label-studio", label_studio_json),
    "label-studio-csv": Export("label-studio-csv", label_studio_csv),
    "argilla": Export("argilla", argilla_jsonl),
    "argilla-nested": Export("argilla", argilla_nested_json),
    "nested": Export("nested", chaosnli_jsonl),
    "prodigy": Export("prodigy", prodigy_jsonl),
    "mturk": Export("mturk", mturk_csv),
    "ground-truth": Export("ground-truth", ground_truth_manifest),
    "lewidi": Export("lewidi", lewidi_json),
    "doccano": Export("doccano", doccano_jsonl),
}
