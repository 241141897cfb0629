"""Batch results of Mechanical Turk: one row an assignment, in CSV.

``WorkerId``, ``AssignmentStatus`` (a rejected assignment is no vote), ``Input.*`` what was shown,
``Answer.*`` what was answered: a text, one column a choice with true or false, or
``Answer.taskAnswers`` with JSON.
"""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from credalearn._checks import nearest
from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.places import listed, refuse
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table
from credalearn.app.readers.answers import answer_of

_TASK_ANSWERS = "Answer.taskAnswers"


def recognize(content: Table | Records, asked: Asked) -> str | None:  # noqa: ARG001
    """A table with ``WorkerId`` and ``Answer.*``."""
    if isinstance(content, Records) or "WorkerId" not in content.columns:
        return None
    if not any(name.startswith("Answer.") for name in content.columns):
        return None
    return "batch results of Mechanical Turk"


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote an assignment that was not rejected."""
    assert isinstance(content, Table)
    item = content.column(asked.item, option="item") if asked.item else _item(content.columns)
    who = content.column(asked.annotator or "WorkerId", option="annotator")
    label, choices = _label(content, asked)
    wanted = [pl.col(item).alias("item"), pl.col(who).alias("annotator")]
    if choices:
        wanted += [pl.col(each) for each in choices]
    else:
        wanted.append(pl.col(label).alias("label"))
    if "AssignmentStatus" in content.columns:
        wanted.append(pl.col("AssignmentStatus").alias("\0status"))
    frame = content.take(*wanted).with_row_index("row")
    rows, left_out = frame.height, {}
    if "\0status" in frame.columns:
        rejected = frame["\0status"].fill_null("").str.strip_chars() == "Rejected"
        left_out["rejected"] = int(rejected.sum())
        frame = frame.filter(~rejected).drop("\0status")
    if choices:
        frame, left_out["several classes"] = _ticked(frame, label, choices)
    elif label == _TASK_ANSWERS:
        frame, left_out["several classes"] = _task_answers(content, frame, asked)
    words = f"batch results of Mechanical Turk: item {item!r}, label {label!r} ({content.words})"
    return Raw("votes", frame, rows, content.place, words, left_out, item=item)


def _item(columns: Sequence[str]) -> str:
    """What was shown, if it can be told; else the HIT."""
    inputs = [name for name in columns if name.startswith("Input.")]
    if len(inputs) == 1:
        return inputs[0]
    named = known.find([name.removeprefix("Input.") for name in inputs], known.ITEM)
    if named is not None:
        return f"Input.{named}"
    return "HITId" if "HITId" in columns else (inputs[0] if inputs else columns[0])


def _label(table: Table, asked: Asked) -> tuple[str, list[str]]:
    """The column of the answer; or the question and its columns of true and false."""
    answers = [name for name in table.columns if name.startswith("Answer.")]
    wanted = asked.label or (f"Answer.{asked.question}" if asked.question else None)
    if wanted in answers or (asked.label is not None and asked.question is None):
        return table.column(wanted or "", option="label"), []
    groups: dict[str, list[str]] = {}
    for name in answers:
        cells = set(table.head[name].drop_nulls().str.strip_chars().str.to_lowercase().to_list())
        single = name.count(".") < 2 or not cells <= {"true", "false", ""} or not cells - {""}
        groups.setdefault(name if single else name.rsplit(".", 1)[0], []).append(name)
    if wanted is not None and wanted not in groups:
        guess = nearest(wanted, groups)
        rule = f"there is no answer to {wanted!r}; there are answers to {listed(list(groups))}"
        fix = f"say --question {(guess or next(iter(groups))).removeprefix('Answer.')!r}"
        refuse(table.path, "line 1", rule, fix=fix)
    if wanted is None and len(groups) > 1:
        rule = f"there are answers to several questions: {listed(list(groups))}"
        fix = f"choose with --question {next(iter(groups)).removeprefix('Answer.')!r}"
        refuse(table.path, "line 1", rule, fix=fix)
    question = wanted or next(iter(groups))
    return question, [] if groups[question] == [question] else groups[question]


def _ticked(frame: pl.DataFrame, question: str, choices: list[str]) -> tuple[pl.DataFrame, int]:
    """The name of the one column that is true."""
    true = [
        pl.col(each).fill_null("").str.strip_chars().str.to_lowercase() == "true"
        for each in choices
    ]
    names = [each.removeprefix(f"{question}.") for each in choices]
    label = pl.coalesce(
        pl.when(column).then(pl.lit(name)) for column, name in zip(true, names, strict=True)
    )
    frame = frame.with_columns(label=label, ticked=pl.sum_horizontal(true))
    several = frame["ticked"] > 1
    return frame.filter(~several).drop(*choices, "ticked"), int(several.sum())


def _task_answers(table: Table, frame: pl.DataFrame, asked: Asked) -> tuple[pl.DataFrame, int]:
    """The label inside the JSON of ``Answer.taskAnswers``."""
    labels: list[str | None] = []
    several = 0
    for row, text in frame.select("row", "label").iter_rows():
        answer: Any = None
        if text is not None and text.strip():
            try:
                answer = json.loads(text)
            except (ValueError, RecursionError):
                rule = "the answer is no JSON"
                refuse(table.path, table.place(row), rule, fix="export the batch again")
        answer = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        found = answer_of(table.path, table.place(row), answer, asked.question)
        several += len(found) > 1
        labels.append("\0several" if len(found) > 1 else (found[0] if found else None))
    frame = frame.with_columns(label=pl.Series(labels, dtype=pl.String))
    return frame.filter(pl.col("label").fill_null("") != "\0several"), several
