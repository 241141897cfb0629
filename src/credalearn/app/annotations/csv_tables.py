"""Tables in text files: any usual delimiter, any usual encoding, quoted by the rules or not."""

import csv
import io
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.text import decoded, look
from credalearn.app.annotations.text_tables import Table, make_table

if TYPE_CHECKING:
    import _csv

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SAMPLE = 1 << 20  # bytes in which a header must end
EXCEL_LINE = re.compile(r'"?sep=(.)"?(\r\n?|\n)', re.IGNORECASE)  # a line before the header


def read_csv(path: Path, encoding: str | None, delimiter: str | None) -> Table:
    """The table in a text file, its encoding and delimiter found from its content."""
    seen = look(path, encoding)
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
        more = bool(file.read(1))
    start = sample.decode(seen.encoding, errors="ignore").removeprefix("\ufeff")
    if more and "\n" not in start and "\r" not in start:
        rule = "the first line is over a megabyte long: this is no table"
        refuse(path, "line 1", rule, fix="give a table with a header, one row a vote")
    excel = EXCEL_LINE.match(start)
    above = 0 if excel is None else 1
    if not start[excel.end() if excel else 0 :].strip():
        refuse(path, "", "the file is empty", fix="export the annotations again")
    if delimiter is None:
        delimiter = excel[1] if excel else find_delimiter(start)
    elif len(delimiter.encode()) != 1:
        refuse(path, "", f"a delimiter is one character, not {shown(delimiter)}", fix="say ','")
    header, header_lines = _header(path, start, delimiter, above)
    kind = "table" if len(header) > 1 else "single column"
    name = _DELIMITERS.get(delimiter, repr(delimiter))
    words = f"{name}-separated {kind}, {seen.words}"
    standard = header_lines == 1 and not seen.lone_returns and '"' not in delimiter
    raw: bytes | None = None
    if seen.encoding not in ("utf-8", "ascii"):
        raw = decoded(path, seen.encoding).encode()
    if standard and seen.quotes:
        standard = quoted_by_the_rules(raw or path.read_bytes(), delimiter)
    if standard:
        lazy = pl.scan_csv(
            path if raw is None else io.BytesIO(raw),
            separator=delimiter,
            has_header=False,  # the names are read above: polars would refuse those it reads else
            skip_rows=1 + above,
            infer_schema=False,
            schema=dict.fromkeys(header, pl.String),
        )
    else:  # rare, so that the slow way of the standard library is fast enough
        lazy = _slow_csv(path, decoded(path, seen.encoding), delimiter, header, above).lazy()
    named = [name for name in header if not name.startswith("\0")]
    lazy = lazy if len(named) == len(header) else lazy.select(named)

    def place(row: int) -> str:
        return _line_of(decoded(path, seen.encoding), delimiter, row, len(header), above)

    def short() -> str | None:
        plain = not seen.quotes and not seen.lone_returns
        return _short_row(decoded(path, seen.encoding), delimiter, len(header), plain, above)

    return make_table(path, words, lazy, named, place, short)


def _rows(text: str, delimiter: str, above: int = 0) -> "_csv.Reader":
    """The standard library's reader; a quotation mark that is never closed is its error.

    Args:
        text: All of it.
        delimiter: Between fields.
        above: Lines before the header, which are passed over.
    """
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    for _ in range(above):
        next(rows)
    return rows


def _header(path: Path, start: str, delimiter: str, above: int) -> tuple[list[str], int]:
    """The names in the first row, and how many lines it takes; no name twice."""
    rows = _rows(start, delimiter, above)
    try:
        header = [name.strip() for name in next(rows)]
    except csv.Error as error:
        fix = "close every quotation mark"
        refuse(path, "line 1", f"the header cannot be read ({error})", fix=fix)
    if not any(header):
        refuse(path, "line 1", "the first line is empty", fix="begin with the names of the columns")
    for i, name in enumerate(header):
        if name and name in header[:i]:
            rule = f"two columns are called {shown(name)}"
            refuse(path, "line 1", rule, fix="rename or delete one of them")
    # A column without a name is the index that pandas writes: nobody can ask for it.
    named = [name or f"\0{i}" for i, name in enumerate(header)]
    return named, rows.line_num - above


def find_delimiter(start: str) -> str:
    r"""The delimiter with which most of the first rows have as many fields as the header.

    Example:
        >>> find_delimiter('item;"width, mm, raw"\na;3\n')
        ';'
    """
    best, found = (0.0, 0), ","
    for delimiter in _DELIMITERS:
        try:
            rows = [row for row in islice(_rows(start, delimiter), 50) if row]
        except csv.Error:  # cut in the middle of a quoted value, or not the delimiter
            lines = start.splitlines()[:50]
            rows = [line.split(delimiter) for line in lines if line.strip()]
        width = len(rows[0]) if rows else 1
        same = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and (same, width) > best:
            best, found = (same, width), delimiter
    return found


def quoted_by_the_rules(content: bytes, delimiter: str) -> bool:
    """Whether each quotation mark opens, closes or is doubled where RFC 4180 allows it.

    Readers differ on the others. Marks open and close in turn; a doubled one closes and opens.

    Example:
        >>> quoted_by_the_rules(b'a,"b, c"', ","), quoted_by_the_rules(b'a,5" disk', ",")
        (True, False)
    """
    bytes_ = np.frombuffer(content, np.uint8)
    marks = np.flatnonzero(bytes_ == ord('"'))
    if len(marks) % 2:
        return False
    opening, closing = marks[::2], marks[1::2]
    edges = [ord(delimiter), ord("\n"), ord("\r"), ord('"')]
    before = bytes_[np.maximum(opening - 1, 0)]
    after = bytes_[np.minimum(closing + 1, len(bytes_) - 1)]
    opens = (opening == 0) | np.isin(before, edges)
    closes = (closing == len(bytes_) - 1) | np.isin(after, edges)
    # A mark before an opening one must be the closing half of a doubled mark, at its side.
    doubled = np.zeros(len(opening), bool)
    doubled[1:] = opening[1:] == closing[:-1] + 1
    opens &= (before != ord('"')) | doubled | (opening == 0)
    return bool(opens.all() and closes.all())


def _slow_csv(path: Path, text: str, delimiter: str, header: list[str], above: int) -> pl.DataFrame:
    """The rows as the standard library reads them."""
    rows = _rows(text, delimiter, above)
    columns: list[list[str | None]] = [[] for _ in header]
    try:
        next(rows)
        for row in rows:
            if len(row) > len(header):
                rule = f"this row has {len(row)} fields, the header {len(header)}"
                fix = "quote values that hold the delimiter"
                refuse(path, f"line {rows.line_num}", rule, fix=fix)
            for i, column in enumerate(columns):
                column.append(row[i] if i < len(row) else None)
    except csv.Error as error:
        fix = "close every quotation mark, and double those inside a value"
        refuse(path, f"line {rows.line_num}", f"the row cannot be read ({error})", fix=fix)
    frame = dict(zip(header, columns, strict=True))
    return pl.DataFrame(frame, schema=dict.fromkeys(header, pl.String))


def _line_of(text: str, delimiter: str, row: int, width: int, above: int) -> str:
    """Where a row begins, counting lines inside quotes; row −1 is the first that is too long."""
    rows = _rows(text, delimiter, above)
    line = 1 + above
    try:
        for i, fields in enumerate(rows, -1):
            if (i == row >= 0) or (row < 0 and len(fields) > width):
                return f"line {line}"
            line = rows.line_num + 1
    except csv.Error:
        pass
    return f"row {row + 1}" if row >= 0 else ""


def _short_row(text: str, delimiter: str, width: int, plain: bool, above: int) -> str | None:
    """Where the first row with too few fields begins; a blank line is none."""
    lines = text.count("\n") + (not text.endswith("\n"))
    if plain and text.count(delimiter) == lines * (width - 1):
        return None  # none is too long, so that none is too short
    rows = _rows(text, delimiter, above)
    line = 1 + above
    try:
        for fields in rows:
            if len(fields) < width and any(each.strip() for each in fields):
                return f"line {line}"
            line = rows.line_num + 1
    except csv.Error:
        pass
    return None
