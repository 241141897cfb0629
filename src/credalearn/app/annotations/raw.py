"""What a reader hands on: columns of text and what it left out, not yet checked."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from credalearn.app.annotations.places import refuse, shown

Kind = Literal["votes", "bounds", "counts", "probabilities"]


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Columns as they were found.

    Args:
        kind: Votes: ``item``, ``annotator``, ``label`` and perhaps ``weight``. Bounds: ``item``,
            ``label``, ``at_least``. Counts and probabilities: ``item`` and a column a class.
            All text or categories of text; of votes perhaps ``row``, for ``place``.
        frame: The columns.
        rows: How many rows or answers the file holds.
        place: From a row to where it stands.
        left_out: Why answers are not votes, and how many.
        words: What the reader recognized.
        unread: Where no annotator was found, the columns that may name one.
        item: Of a table, the column that names the item.
        apart: A field that differs in tasks whose item is the same; None if there are none.
        notes: What else the user should know, in words.
    """

    kind: Kind
    frame: pl.DataFrame
    rows: int
    place: Callable[[int], str]
    words: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    item: str | None = None
    apart: str | None = None
    notes: tuple[str, ...] = ()

    def where(self, position: int) -> str:
        """Where a row of the frame stood in the file."""
        rows = self.frame["row"] if "row" in self.frame.columns else None
        return self.place(position if rows is None else int(rows[position]))


class Votes:
    """Votes collected one by one, by the readers of nested records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.items: list[str | None] = []
        self.annotators: list[str | None] = []
        self.labels: list[str | None] = []
        self.lines: list[int | str] = []
        self.left_out: Counter[str] = Counter()

    def add(self, line: int | str, item: object, annotator: object, label: object) -> None:
        """A vote in a line, or in a place in words; a label that is a list of one is that one."""
        if isinstance(label, list | tuple):
            if len(label) > 1:
                return self.leave("several classes")
            label = label[0] if label else None
        text = self._text(line, "label", label)
        if text is None or not text.strip():
            return self.leave("empty")
        self.items.append(self._text(line, "item", item))
        self.annotators.append(self._text(line, "annotator", annotator))
        self.labels.append(text)
        self.lines.append(line)
        return None

    def leave(self, reason: str) -> None:
        """An answer that is no vote."""
        self.left_out[reason] += 1

    def _text(self, line: int | str, name: str, value: object) -> str | None:
        if isinstance(value, dict | list | tuple):
            rule = f"the {name} must be a text or a number; this is {shown(value)}"
            refuse(self.path, _place(line), rule, fix=f"name the field of the {name}")
        text = text_of(value)
        check_text(self.path, line, text)
        return text

    def raw(self, words: str) -> Raw:
        """All of them."""
        columns = {"item": self.items, "annotator": self.annotators, "label": self.labels}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        lines = self.lines
        rows = len(lines) + self.left_out.total()
        place = lambda row: _place(lines[row])  # noqa: E731
        return Raw("votes", frame, rows, place, words, dict(self.left_out))


def _place(line: int | str) -> str:
    return line if isinstance(line, str) else f"line {line}"


def check_text(path: Path, line: int | str, text: str | None) -> None:
    """Refuse half of a surrogate pair, which JSON can escape and no file can hold."""
    try:
        if text is not None:
            text.encode()
    except UnicodeEncodeError:
        rule = f"{shown(text)} is not valid Unicode text"
        refuse(path, _place(line), rule, fix="export the file again as UTF-8")


def check_classes(path: Path, where: str, names: Iterable[str]) -> None:
    """Refuse a class whose column would be called as that of the items."""
    if "item" in names:
        rule = "no class can be called 'item', the name of the items' own column"
        fix = "give the class another name, or name the item's column with --item"
        refuse(path, where, rule, fix=fix)


def text_of(value: Any) -> str | None:
    """A value of JSON as text: 1 and 1.0 are "1", true is "true", null and NaN are empty.

    Example:
        >>> text_of(1.0), text_of("1.0"), text_of(True), text_of(None)
        ('1', '1.0', 'true', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        # Past 4,300 digits Python refuses; such a number is nobody's name.
        return str(value) if abs(value) < 10**100 else "a number of over 100 digits"
    return json.dumps(value, default=str)
