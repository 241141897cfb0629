"""Small exports of every annotation tool, all of the same votes, and slow counters of each.

A counter walks a file with the standard library alone, one answer at a time, and knows nothing of
the readers: what the readers count must be what it counts.
"""

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from credalearn.app.annotations import Annotations

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
Answer = tuple[Any, Any, Any]  # item, annotator, label
Write = Callable[..., Path]  # the fixture ``write``
LONG = "task,worker,label\n"  # the header of a long table


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
    rows = [[item, 0.5, 0.3 + 0.01 * i, 0.2 - 0.01 * i] for i, item in enumerate(ITEMS)]
    return rows_to_csv(["item", *CLASSES], rows)


def bounds_csv() -> bytes:
    rows = [[item, name, 0.3 - 0.1 * k] for item in ITEMS for k, name in enumerate(CLASSES[:2])]
    return rows_to_csv(["item", "label", "at_least"], rows)


def label_studio_json() -> bytes:
    tasks = []
    for i, (item, votes) in enumerate(VOTES.items(), 1):
        given = [
            {
                "id": 100 * i + j,
                "completed_by": {"id": j, "email": f"{who}@example.org"},
                "was_cancelled": label is None,
                "ground_truth": False,
                "lead_time": 4.2,
                "result": [
                    {
                        "from_name": "animal",
                        "to_name": "image",
                        "type": "choices",
                        "value": {"choices": [label]},
                    }
                ]
                if label
                else [],
            }
            for j, (who, label) in enumerate(votes.items())
        ]
        tasks.append({"id": i, "data": {"image": item}, "annotations": given, "predictions": []})
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


# Counters.


def text_in(content: bytes) -> str:
    """Decoded as a person would try."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    if content[1:2] == b"\0":
        return content.decode("utf-16-le")
    for encoding in ("utf-8-sig", "cp1252", "latin-1"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise AssertionError("Latin-1 decodes everything")


SPACE = " \t\n\x0b\x0c\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def clean(value: Any) -> str:
    """A name as a person would write it down."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return unicodedata.normalize("NFC", str(value).strip(SPACE))


def counted(given: list[Answer]) -> Counts:
    """Votes of each item by class, the same answer of the same person once."""
    found: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, str, str]] = set()
    for item, who, label in given:
        name = clean(label)
        name = name.split(".")[0] if re.fullmatch(r"[+-]?[0-9]{1,15}\.0+", name) else name
        if name in ("", "nan", "NaN", "<NA>"):
            continue
        person = clean(who)
        key = (clean(item), person, name)
        if person and key in seen:
            continue
        seen.add(key)
        found[key[0], name] += 1
    return dict(found)


def csv_rows(content: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    text = io.StringIO(text_in(content), newline="")
    rows = list(csv.reader(text, delimiter=delimiter))
    header = [name.strip(SPACE) for name in rows[0]]
    return [dict(zip(header, row, strict=False)) for row in rows[1:]]


def json_values(content: bytes) -> list[Any]:
    text = text_in(content)
    try:
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]


def find(row: dict[str, Any], *names: str) -> Any:
    """The value under the first name that is there, in any case."""
    folded = {re.sub(r"[ \t_.-]", "", key.casefold()): key for key in reversed(row)}
    return next((row[folded[name]] for name in names if name in folded), None)


def from_table(*names: str) -> Callable[[bytes], Counts]:
    """A counter of a long table with these columns."""

    def count(content: bytes) -> Counts:
        rows = csv_rows(content, "\t" if names[0] == "itemid" else ",")
        item = (names[0], "id")
        return counted([(find(r, *item), find(r, names[1]), find(r, names[2])) for r in rows])

    return count


def count_parquet(content: bytes) -> Counts:
    table = pl.read_parquet(io.BytesIO(content))
    table = table.rename(str.lower)  # a flipped bit makes "performeR" of a name, which reads alike
    return counted(table.select("task", "performer", "label").rows())


def count_long_jsonl(content: bytes) -> Counts:
    rows = json_values(content)
    return counted([(row.get("item"), row.get("annotator"), row.get("label")) for row in rows])


def count_wide(content: bytes) -> Counts:
    found: list[Answer] = []
    for row in filter(None, csv_rows(content)):
        item, *people = row
        found += [(row[item], who, row[who]) for who in people]
    return counted(found)


def count_shares(content: bytes) -> Counts:
    found: Counts = {}
    for row in filter(None, csv_rows(content)):
        item, *classes = row
        prefix = "count_" if all(name.startswith("count_") for name in classes) else ""
        for name in classes:
            value = float((row[name].strip() or "0").replace(",", "."))
            if value:
                found[clean(row[item]), name.removeprefix(prefix)] = value
    return found


def count_probabilities(content: bytes) -> Counts:
    found = count_shares(content)
    sums: Counter[str] = Counter()
    for (item, _), value in found.items():
        sums[item] += value  # type: ignore[assignment]
    return {(item, name): value / sums[item] for (item, name), value in found.items()}


def count_bounds(content: bytes) -> Counts:
    rows = [row for row in csv_rows(content) if any(clean(value) for value in row.values())]
    found = {(clean(r["item"]), clean(r["label"])): float(r["at_least"]) for r in rows}
    return {key: value for key, value in found.items() if value}


def count_label_studio(content: bytes) -> Counts:
    found = []
    for task in json_values(content):
        for each in task["annotations"]:
            if each.get("was_cancelled"):
                continue
            chosen = [c for r in each["result"] for c in r["value"].get("choices", [])]
            who = each.get("completed_by")
            who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
            if len(chosen) == 1:
                found.append((task["data"].get("image", task.get("id")), who, chosen[0]))
    return counted(found)


def count_argilla(content: bytes) -> Counts:
    found = []
    for row in json_values(content):
        labels = row.get("animal.responses") or []
        people = row.get("animal.responses.users") or [None] * len(labels)
        states = row.get("animal.responses.status") or ["submitted"] * len(labels)
        for label, who, state in zip(labels, people, states, strict=True):
            if state == "submitted":
                found.append((row.get("id"), who, label))
    return counted(found)


def count_prodigy(content: bytes) -> Counts:
    found = []
    rows = list(json_values(content))
    offers = {
        (each["id"], clean(each.get("text")) or clean(each["id"]))
        for row in rows
        for each in row.get("options", [])
        if each.get("id") not in (None, "")
    }
    # The texts are the classes where no id has two, and no text has two ids.
    names, texts = ({pair[i] for pair in offers} for i in (0, 1))
    named = dict(offers) if len(names) == len(texts) == len(offers) else {}
    for row in rows:
        if row["answer"] == "accept" and len(row["accept"]) == 1:
            who = row.get("_annotator_id") or row.get("_session_id")
            item = next(
                (
                    v
                    for v in (
                        row.get("meta", {}).get("id"),
                        row.get("_input_hash"),
                        row.get("_task_hash"),
                        row.get("image"),
                    )
                    if v is not None
                ),
                None,
            )
            label = row["accept"][0]
            found.append((item, who, named.get(label, label)))
    return counted(found)


def count_mturk(content: bytes) -> Counts:
    rows = [r for r in csv_rows(content) if clean(r.get("AssignmentStatus")) != "Rejected"]
    header = rows[0] if rows else {}
    item = next((name for name in header if name.startswith("Input.")), "HITId")
    answer = next(name for name in header if name.startswith("Answer."))
    return counted([(r.get(item), r.get("WorkerId"), r.get(answer)) for r in rows])


def count_ground_truth(content: bytes) -> Counts:
    found = []
    for row in json_values(content):
        answers_of: list[Any] = next(
            (
                v["annotationsFromAllWorkers"]
                for v in row.values()
                if isinstance(v, dict) and "annotationsFromAllWorkers" in v
            ),
            [],
        )
        for each in answers_of:
            chosen = json.loads(each["annotationData"]["content"])
            label: Any = next(iter(chosen.values()), {})
            label = next(iter(label.values()), None) if isinstance(label, dict) else label
            found.append((row.get("source-ref"), each.get("workerId"), label))
    return counted(found)


def count_lewidi(content: bytes) -> Counts:
    def pairs(given: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return given  # an object with its members in order, repeated names and all

    found, soft = [], {}
    for item, fields in json.loads(text_in(content), object_pairs_hook=pairs):
        row = dict(fields)
        soft.update({(clean(item), name): value for name, value in row.get("soft_label") or []})
        labels = row.get("annotations") or ""
        people = row.get("annotators") or ""
        names = people.split(",") if people.strip() else [None] * len(labels.split(","))
        if labels:
            for who, label in zip(names, labels.split(","), strict=True):
                found.append((item, who, label))
    return counted(found) if found else soft  # as of a split whose votes are kept back


def count_doccano(content: bytes) -> Counts:
    found = []
    for row in json_values(content):
        labels = row.get("label")
        labels = labels if isinstance(labels, list) else [labels]
        if len(labels) == 1:
            found.append((find(row, "id", "text"), find(row, "username"), labels[0]))
    return counted(found)


@dataclass(frozen=True, slots=True)
class Export:
    """A file of one tool, and who counts it."""

    suffix: str
    format: str
    write: Callable[[], bytes]
    count: Callable[[bytes], Counts]


EXPORTS = {
    "long-csv": Export(".csv", "long", long_csv, from_table("task", "worker", "label")),
    "long-tsv": Export(".tsv", "long", long_tsv, from_table("itemid", "raterid", "answer")),
    "long-parquet": Export(".parquet", "long", long_parquet, count_parquet),
    "long-jsonl": Export(".jsonl", "long", long_jsonl, count_long_jsonl),
    "wide-csv": Export(".csv", "wide", wide_csv, count_wide),
    "counts-csv": Export(".csv", "counts", counts_csv, count_shares),
    "probabilities-csv": Export(".csv", "probabilities", probabilities_csv, count_probabilities),
    "bounds-csv": Export(".csv", "bounds", bounds_csv, count_bounds),
    "label-studio": Export(".json", "label-studio", label_studio_json, count_label_studio),
    "label-studio-csv": Export(
        ".csv", "label-studio-csv", label_studio_csv, from_table("image", "annotator", "animal")
    ),
    "argilla": Export(".jsonl", "argilla", argilla_jsonl, count_argilla),
    "prodigy": Export(".jsonl", "prodigy", prodigy_jsonl, count_prodigy),
    "mturk": Export(".csv", "mturk", mturk_csv, count_mturk),
    "ground-truth": Export(".manifest", "ground-truth", ground_truth_manifest, count_ground_truth),
    "lewidi": Export(".json", "lewidi", lewidi_json, count_lewidi),
    "doccano": Export(".jsonl", "doccano", doccano_jsonl, count_doccano),
}
