"""JSON and JSON Lines: one object after the other, each with the line where it begins."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.text import decoded, look

_HEAD = 100
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class Record(NamedTuple):
    """One object of a file; a tuple, as a million of them are made in 0.3 s, not in 1.

    Args:
        line: Where it begins, from 1.
        key: Its name, where the file is an object of objects.
        value: The object.
    """

    line: int
    key: str | None
    value: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The objects in a file, decoded again each time they are walked.

    Args:
        path: Of the file.
        words: What kind of file, in words.
        text: All of it; or None, and the objects themselves.
        rows: The objects, where they come from a Parquet file.
        head: The first hundred.
    """

    path: Path
    words: str
    text: str | None = field(default=None, repr=False)
    rows: tuple[Record, ...] = field(default=(), repr=False)
    head: tuple[Record, ...] = field(default=(), repr=False)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.rows) if self.text is None else _walk(self.path, self.text)


def looks_like_json(start: bytes) -> bool:
    """Whether a file begins like JSON, by its first characters."""
    text = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return re.match(rb'\[\s*([\[{"\d\]-]|$)|\{\s*("|\}|$)', text) is not None


def read_json(path: Path, encoding: str | None) -> Records:
    """The objects in a JSON or JSON Lines file, the first hundred decoded.

    Raises:
        CredalError: If one of these is no object, or the file is cut short before.
    """
    seen = look(path, encoding)
    text = decoded(path, seen.encoding)
    kind = "JSON" if text.lstrip().startswith("[") or not _one_a_line(text) else "JSON Lines"
    words = f"{kind}, {seen.words}"
    head = tuple(islice(_walk(path, text), _HEAD))
    if not head:
        refuse(path, "", "the file holds no record", fix="export the annotations again")
    return Records(path, words, text=text, head=head)


def from_dicts(path: Path, words: str, rows: list[dict[str, object]]) -> Records:
    """The rows of a Parquet file with lists in it."""
    found = tuple(Record(i, None, row) for i, row in enumerate(rows, 1))
    if not found:
        refuse(path, "", "the file holds no row", fix="export the annotations again")
    return Records(path, words, rows=found, head=found[:_HEAD])


def _one_a_line(text: str) -> bool:
    """Whether the first line is an object by itself and another follows."""
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip():
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _walk(path: Path, text: str) -> Iterator[Record]:
    """The objects of the array, of the lines or of the object of objects."""
    at = _skip(text, 0)
    if text.startswith("[", at):
        found = _elements(path, text, at)
    elif _one_a_line(text):
        found = _lines(path, text)
    else:
        found = _members(path, text, at)
    for record in found:
        if not isinstance(record.value, dict):
            rule = f"a record must be an object; this is {shown(record.value)}"
            refuse(path, f"line {record.line}", rule, fix="give the tool's export as it is")
        yield record


def _skip(text: str, at: int) -> int:
    """Past white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _decode(path: Path, text: str, at: int) -> tuple[Any, int]:
    """The value that begins here, and where it ends."""
    fix = "export the file again"
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
            rule = "the JSON ends in the middle of a value: the file is cut short"
            refuse(path, f"line {error.lineno}", rule, fix=fix)
        rule = f"this is no JSON ({error.msg})"
        refuse(path, f"line {error.lineno}, column {error.colno}", rule, fix=fix)
    except RecursionError:
        line = 1 + text.count("\n", 0, at)
        refuse(path, f"line {line}", "the JSON is nested too deeply for an export", fix=fix)
    except ValueError as error:  # a whole number of thousands of digits
        line = 1 + text.count("\n", 0, at)
        refuse(path, f"line {line}", f"this is no JSON ({error})", fix=fix)


def _expect(path: Path, text: str, at: int, wanted: str) -> str:
    """The character here, which must be one of ``wanted``."""
    if at < len(text) and text[at] in wanted:
        return text[at]
    where = f"line {1 + text.count(chr(10), 0, at)}"
    if at >= len(text):
        rule = "the JSON ends in the middle of a list: the file is cut short"
        refuse(path, where, rule, fix="export the file again")
    rule = f"this is no JSON ({' or '.join(wanted)} expected, found {shown(text[at])})"
    return refuse(path, where, rule, fix="export the file again")


def _nothing_after(path: Path, text: str, at: int) -> None:
    """Refuse what follows the end of the value."""
    at = _skip(text, at)
    if at < len(text):
        where = f"line {1 + text.count(chr(10), 0, at)}"
        rule = f"something follows the end of the JSON: {shown(text[at : at + 20])}"
        refuse(path, where, rule, fix="keep one value in the file, or one object a line")


def _elements(path: Path, text: str, at: int) -> Iterator[Record]:
    """Of an array."""
    line, counted = 1, 0
    at = _skip(text, at + 1)
    if text.startswith("]", at):
        return _nothing_after(path, text, at + 1)
    while True:
        line, counted = line + text.count("\n", counted, at), at
        value, at = _decode(path, text, at)
        yield Record(line, None, value)
        at = _skip(text, at)
        if _expect(path, text, at, ",]") == "]":
            return _nothing_after(path, text, at + 1)
        at = _skip(text, at + 1)


def _lines(path: Path, text: str) -> Iterator[Record]:
    """Of JSON Lines."""
    at, line = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start = at if text[at] == "{" else _skip(text, at)
        if start < end:
            value, stop = _decode(path, text, start)
            if stop != end and (_skip(text, stop) < end or stop > end):
                rule = "JSON Lines hold one object a line"
                refuse(path, f"line {line}", rule, fix="break the line after each object")
            yield Record(line, None, value)
        at, line = end + 1, line + 1


def _members(path: Path, text: str, at: int) -> Iterator[Record]:
    """Of an object of objects, as LeWiDi writes; another object is one record by itself."""
    line, counted = 1, 0
    value, end = _decode(path, text, at)
    _nothing_after(path, text, end)
    if not (isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values())):
        yield Record(1 + text.count("\n", 0, at), None, value)
        return
    del value
    at = _skip(text, at + 1)
    while True:
        key, at = _decode(path, text, at)
        at = _skip(text, at)
        _expect(path, text, at, ":")
        at = _skip(text, at + 1)
        line, counted = line + text.count("\n", counted, at), at
        value, at = _decode(path, text, at)
        yield Record(line, str(key), value)
        at = _skip(text, at)
        if _expect(path, text, at, ",}") == "}":
            return
        at = _skip(text, at + 1)
