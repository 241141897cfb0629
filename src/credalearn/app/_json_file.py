"""JSON and JSON Lines as a sequence of objects, each with its place in the file."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from credalearn._formats import shown
from credalearn.errors import CredalError


class Record(NamedTuple):
    """One JSON object: its place in the file, its key in an object of objects, and its fields."""

    place: str
    key: str | None
    value: dict[str, Any]


def text_of(value: Any) -> str | None:
    """A JSON value as text: 1 and 1.0 are "1", true is "true", null and NaN are None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value, default=str)


def json_records(path: Path, text: str) -> tuple[str, list[Record]]:
    """The objects of a list, of an object of objects, or of JSON Lines."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and lines[0][1].lstrip().startswith("{") and _is_json(lines[0][1]):
        values = ((f"line {number}", _decoded(path, line, number)) for number, line in lines)
        return "JSON Lines", [_record(path, place, None, value) for place, value in values]
    value = _decoded(path, text, 1)
    if isinstance(value, list):
        return "JSON", [_record(path, f"record {i}", None, each) for i, each in enumerate(value, 1)]
    if value and all(isinstance(each, dict) for each in value.values()):
        return "JSON", [_record(path, f"record {key!r}", key, each) for key, each in value.items()]
    return "JSON", [_record(path, "record 1", None, value)]


def _record(path: Path, place: str, key: str | None, value: Any) -> Record:
    if not isinstance(value, dict):
        raise CredalError(
            f"{path}, {place}: a record must be an object; got {shown(value)}. To fix: export it "
            "again."
        )
    return Record(place, key, value)


def _decoded(path: Path, text: str, line: int) -> Any:
    try:
        text.encode()
        return json.loads(text)
    except RecursionError as error:
        raise CredalError(f"{path}, line {line}: the JSON is nested too deeply.") from error
    except ValueError as error:
        at = line + getattr(error, "lineno", 1) - 1
        why = getattr(error, "msg", error)
        message = f"{path}, line {at}: this is not JSON ({why}). To fix: export it again."
        raise CredalError(message) from error


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
