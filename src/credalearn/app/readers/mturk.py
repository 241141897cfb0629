"""Batch results of Mechanical Turk: one row per assignment, in CSV.

A rejected assignment is no vote. ``Input.*`` is what was shown, ``Answer.*`` what was answered: a
text, one column per choice with true or false, or ``Answer.taskAnswers`` with JSON.
"""

import json
from collections.abc import Sequence

import polars as pl

from credalearn.app.column_names import ITEM, find
from credalearn.app.readers._content import ROW, Content, Raw, chosen

_TASK_ANSWERS = "Answer.taskAnswers"
_SEVERAL = "\0several"
_CHECKED = ".on"  # of a check box without a value: Answer.cat.on


def recognize(content: Content) -> bool:
    """A table with ``WorkerId`` and ``Answer.*``."""
    return "WorkerId" in content.columns and bool(_answers(content))


def read(content: Content) -> Raw:
    """One vote per assignment that was not rejected."""
    item = content.column("item", ()) or _item(content.columns)
    who = content.column("annotator", ()) or "WorkerId"
    label, choices = _label(content)
    columns = {"item": item, "annotator": who}
    columns |= {each: each for each in choices} if choices else {"label": label}
    columns |= {"\0status": "AssignmentStatus"} if "AssignmentStatus" in content.columns else {}
    frame = content.text(**columns)
    left_out = {}
    if "\0status" in frame.columns:
        rejected = frame["\0status"].fill_null("").str.strip_chars() == "Rejected"
        left_out["rejected"] = int(rejected.sum())
        frame = frame.filter(~rejected)
    if choices:
        frame = frame.with_columns(label=_ticked(label, choices))
    elif label == _TASK_ANSWERS:
        frame = frame.with_columns(label=pl.Series(_task_answers(content, frame), dtype=pl.String))
    several = frame["label"].fill_null("") == _SEVERAL
    left_out["with several classes"] = int(several.sum())
    frame = frame.filter(~several).select(ROW, "item", "annotator", "label")
    words = f"batch results of Mechanical Turk: item {item!r}, label {label!r}"
    return Raw("votes", frame, content.source, words, left_out, item=item)


def _answers(content: Content) -> list[str]:
    return [name for name in content.columns if name.startswith("Answer.")]


def _item(columns: Sequence[str]) -> str:
    """What was shown, if one column says it; else the HIT."""
    inputs = [name for name in columns if name.startswith("Input.")]
    if len(inputs) == 1:
        return inputs[0]
    named = find([name.removeprefix("Input.") for name in inputs], ITEM)
    if named is not None:
        return f"Input.{named}"
    return "HITId" if "HITId" in columns else (inputs or columns)[0]


def _label(content: Content) -> tuple[str, list[str]]:
    """The column of the answer; or the question and its columns of true and false."""
    options = content.options
    if options.label is not None:
        return content.source.column(options.label, option="label"), []
    groups: dict[str, list[str]] = {}
    for name in _answers(content):
        cells = set(content.head[name].drop_nulls().str.strip_chars().str.to_lowercase()) - {""}
        ticks = name.count(".") >= 2 and cells and cells <= {"true", "false"}
        asked = name.removesuffix(_CHECKED).rsplit(".", 1)[0]
        groups.setdefault(asked if ticks else name, []).append(name)
    wanted = f"Answer.{options.question}"
    question = wanted if wanted in groups else None
    if question is None and options.question is not None and list(groups) == [_TASK_ANSWERS]:
        question = _TASK_ANSWERS  # the question is one inside its JSON
    question = question or content.choose(list(groups))
    return question, [] if groups[question] == [question] else groups[question]


def _ticked(question: str, choices: list[str]) -> pl.Expr:
    """The name of the one column that is true."""
    true = [pl.col(each).str.strip_chars().str.to_lowercase() == "true" for each in choices]
    names = [each.removeprefix(f"{question}.").removesuffix(_CHECKED) for each in choices]
    label = pl.coalesce(
        pl.when(column).then(pl.lit(name)) for column, name in zip(true, names, strict=True)
    )
    return pl.when(pl.sum_horizontal(true) > 1).then(pl.lit(_SEVERAL)).otherwise(label)


def _task_answers(content: Content, frame: pl.DataFrame) -> list[str | None]:
    """The labels inside the JSON of ``Answer.taskAnswers``."""
    labels: list[str | None] = []
    for row, text in frame.select(ROW, "label").iter_rows():
        try:
            answer = json.loads(text) if text and text.strip() else None
        except (ValueError, RecursionError):
            content.source.refuse("the answer is not JSON", row=row, fix="export the batch again")
        answer = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        found = list(chosen(content, answer, content.options.question))
        labels.append(_SEVERAL if len(found) > 1 else (found[0] if found else None))
    return labels
