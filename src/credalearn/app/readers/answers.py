"""The label inside a form's answer, as Amazon's templates write it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.raw import check_text, text_of


def answer_of(path: Path, where: str, answer: Any, question: str | None) -> list[str]:
    """The classes that an answer chooses: one is a vote, none is empty, several are no vote.

    An answer is a text, ``{"label": "cat"}``, ``{"labels": ["cat"]}``, ``{"cat": true, "dog":
    false}``, or one of these under the name of the question.

    Example:
        >>> answer_of(Path("a.json"), "line 1", {"animal": {"cat": True, "dog": False}}, None)
        ['cat']
    """
    if answer is None:
        return []
    if isinstance(answer, list):
        return [label for each in answer for label in answer_of(path, where, each, None)]
    if not isinstance(answer, Mapping):
        text = text_of(answer) or ""
        check_text(path, int(where.split()[-1]) if where.split()[-1].isdigit() else 0, text)
        return [text] if text.strip() else []
    if question is not None and question in answer:
        return answer_of(path, where, answer[question], None)
    for key in ("label", "labels"):
        if key in answer:
            return answer_of(path, where, answer[key], None)
    values = list(answer.values())
    if values and all(isinstance(value, bool) for value in values):
        return [str(name) for name, value in answer.items() if value]
    if len(answer) == 1 and question is None:
        return answer_of(path, where, values[0], None)
    if not answer:
        return []
    rule = f"the answer holds several questions: {listed(list(answer))}"
    if question is not None:
        rule = f"there is no answer to {shown(question)} among {listed(list(answer))}"
    return refuse(path, where, rule, fix=f"choose with --question {next(iter(answer))!r}")
