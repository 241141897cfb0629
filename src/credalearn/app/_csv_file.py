"""A CSV or TSV file in blocks of rows, read from one open file with every cell still text."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import polars as pl

from credalearn._formats import many, shown
from credalearn.errors import CredalError

BLOCK = 1 << 22  # bytes at a time, some 25,000 rows of 20 features
_CELLS = 1 << 17  # Python strings at a time where the standard library has to parse: 8 MB
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_MARKS = {  # byte order marks; those of UTF-32 begin like those of UTF-16 and come first
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_EXCEL = re.compile(r"\ufeff?sep=([^\w\r\n])[\r\n]", re.IGNORECASE)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # of cells that a spreadsheet runs
_NAMES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "cp1252": "Windows-1252", "latin-1": "Latin-1"}


def find_encoding(path: Path, start: bytes, given: str | None) -> tuple[str, str]:
    """The given encoding, or the one that the first bytes of a file fit; then in words."""
    if start.startswith(b"\x1f\x8b"):
        raise CredalError(f"{path} is compressed with gzip. To fix: unpack it first, with gunzip.")
    if given is not None:
        try:
            "a".encode(given)
            name = codecs.lookup(given).name
        except (LookupError, ValueError):
            message = f"there is no encoding {shown(given)}. To fix: pass utf-8 or cp1252."
            raise CredalError(message) from None
        return name, _NAMES.get(name, name.upper())
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if marked is not None:
        return marked, _NAMES.get(marked, marked.upper())
    if b"\0" in start:
        raise CredalError(
            f"{path} is a binary file, not a table or JSON. To fix: export it as CSV, TSV, JSON, "
            "JSON Lines or Parquet."
        )
    for name in ("utf-8", "cp1252", "latin-1"):  # the last fits every byte
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(name)().decode(start)
            break
    guessed = "if names look wrong, pass encoding="
    return name, "UTF-8" if name == "utf-8" else f"guessed {_NAMES[name]}: {guessed}"


class CsvFile:
    """One open CSV file; rows without any value and columns without a name are left out."""

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        start: bytes,
        encoding: tuple[str, str],
        delimiter: str | None,
    ) -> None:
        self.path, self._file, self._encoding = path, file, encoding[0]
        try:
            text = codecs.getincrementaldecoder(self._encoding)().decode(start)
        except UnicodeError as error:
            self._refuse_encoding(error)
        if not text.strip("\ufeff \t\r\n"):
            raise CredalError(f"{path} is empty. To fix: export it again.")
        if delimiter is not None and len(delimiter.encode()) != 1:
            raise CredalError(
                f"delimiter must be one character; got {shown(delimiter)}. To fix: pass ';'."
            )
        found = _EXCEL.match(text)  # a first line of Excel's, which is no header
        self._delimiter = delimiter or (found[1] if found else _find_delimiter(text))
        self._header_lines, names = next(self._records(), (1, []))
        self._names = [name.strip() for name in names]
        self._schema = {f"c{place}": pl.String for place in range(len(names))}
        self.columns = tuple(name for name in self._names if name)
        if not self.columns:
            raise CredalError(f"{path}, line 1 names no column. To fix: begin with a header.")
        [(name, times)] = Counter(self.columns).most_common(1)
        if times > 1:
            raise CredalError(
                f"{path}, line 1: two columns are called {shown(name)}. To fix: rename one."
            )
        kind = _DELIMITERS.get(self._delimiter, repr(self._delimiter))
        self.words = f"{kind}-separated table, {encoding[1]}"

    def blocks(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        """All rows, in order, by polars; from where it cannot, by the standard library."""
        named = {f"c{place}": name for place, name in enumerate(self._names) if name}
        done = 0
        for piece in self._pieces():
            parsed = self._parsed(piece)
            for frame in self._slow_frames(done) if parsed is None else [parsed]:
                if len(frame):
                    yield frame.select(list(named)).rename(named).select(columns)
            if parsed is None:
                return
            done += len(parsed)

    def line_of(self, row: int) -> int:
        """The line where a row begins, both counted as people do: rows from 0, lines from 1."""
        return next(islice(self._rows(), row, None))[0]

    def _pieces(self) -> Iterator[bytes]:
        """UTF-8 below the header, cut between rows where quotation marks are in pairs."""
        decoder = codecs.getincrementaldecoder(self._encoding)()
        at, rest, header, chunk = 0, b"", self._header_lines, b"-"
        while chunk:
            self._file.seek(at)
            chunk = self._file.read(BLOCK)
            at += len(chunk)
            try:
                rest += decoder.decode(chunk, final=not chunk).encode()
            except UnicodeError as error:
                self._refuse_encoding(error)
            while header and b"\n" in rest:
                rest, header = rest[rest.index(b"\n") + 1 :], header - 1
            end = 0 if header else rest.rfind(b"\n") + 1
            marks = rest.count(b'"', 0, end)
            while end and marks % 2:  # a line end between quotation marks ends no row
                before = rest.rfind(b"\n", 0, end - 1) + 1
                marks -= rest.count(b'"', before, end)
                end = before
            if not end and len(rest) > 2 * BLOCK:
                end = rest.rfind(b"\n") + 1  # an unpaired mark, which ``_parsed`` refuses
            if end:
                yield rest[:end]
                rest = rest[end:]
        if rest.strip() and (not header or b"\r" in rest):  # with lone returns no line is counted
            yield rest

    def _parsed(self, piece: bytes) -> pl.DataFrame | None:
        """The rows as polars reads them; None where it may read other rows than are meant."""
        lone_returns = piece.count(b"\r") != piece.count(b"\r\n")
        if lone_returns or (b'"' in piece and not quoted_by_the_rules(piece, self._delimiter)):
            return None
        try:
            frame = pl.read_csv(
                piece, separator=self._delimiter, has_header=False, schema=self._schema
            )
        except pl.exceptions.PolarsError:
            return None
        return frame.filter(~pl.all_horizontal(pl.all().str.strip_chars().fill_null("") == ""))

    def _slow_frames(self, start: int) -> Iterator[pl.DataFrame]:
        rows, width = islice(self._rows(), start, None), len(self._names)
        while some := [row for _, row in islice(rows, max(1, _CELLS // width))]:
            filled = [
                [*(cell or None for cell in row), *[None] * (width - len(row))] for row in some
            ]
            yield pl.DataFrame(filled, schema=self._schema, orient="row")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows below the header that contain something, each with the line where it begins."""
        begin = 1
        for number, (end, row) in enumerate(self._records()):
            if number and "".join(row).strip():
                if len(row) > len(self._names):
                    raise CredalError(
                        f"{self.path}, line {begin}: {len(row)} values for "
                        f"{many(len(self._names), 'column')}. To fix: put quotation marks "
                        f"around values that contain {self._delimiter!r}."
                    )
                yield begin, row
            begin = end + 1

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """All rows as the standard library reads them, each with the line where it ends."""
        self._file.seek(0)
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        text = io.TextIOWrapper(self._file, encoding=encoding, newline="")
        reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True, strict=True)
        begin = 1
        try:
            for record in reader:
                if begin > 1 or not _EXCEL.match(f"{self._delimiter.join(record)}\n"):
                    yield reader.line_num, record
                begin = reader.line_num + 1
        except csv.Error as error:
            raise CredalError(
                f"{self.path}, line {begin}: the row cannot be read ({error}). To fix: close every "
                "quotation mark, and double those inside a value."
            ) from error
        except UnicodeError as error:
            self._refuse_encoding(error)
        finally:
            text.detach()  # or the file would be closed with it

    def _refuse_encoding(self, error: UnicodeError) -> NoReturn:
        byte = ""
        if isinstance(error, UnicodeDecodeError):
            byte = f"; it contains the byte 0x{error.object[error.start]:02x}"
        known = self._encoding == "utf-8"
        fix = "save it as UTF-8, or pass encoding='cp1252'" if known else "leave out encoding="
        raise CredalError(
            f"{self.path} is not {self._encoding} text throughout{byte}. To fix: {fix}."
        ) from error


def quoted_by_the_rules(content: bytes, delimiter: str) -> bool:
    """Whether every quotation mark opens, closes or is doubled where RFC 4180 allows it."""
    characters = np.frombuffer(content, np.uint8)
    marks = np.flatnonzero(characters == ord('"'))
    if len(marks) % 2:
        return False
    opening, closing = marks[::2], marks[1::2]
    edges = [ord(delimiter), ord("\n"), ord("\r"), ord('"')]
    before = characters[np.maximum(opening - 1, 0)]
    after = characters[np.minimum(closing + 1, len(characters) - 1)]
    opens = (opening == 0) | np.isin(before, edges)
    closes = (closing == len(characters) - 1) | np.isin(after, edges)
    # A mark before an opening one must be the closing half of a doubled mark, at its side.
    doubled = np.zeros(len(opening), bool)
    doubled[1:] = opening[1:] == closing[:-1] + 1
    opens &= (before != ord('"')) | doubled | (opening == 0)
    return bool(opens.all() and closes.all())


def escape_csv(text: str) -> str:
    """Text that no spreadsheet runs as a formula; quotes and commas are left to ``csv.writer``."""
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _find_delimiter(text: str) -> str:
    """The delimiter with which most of the first rows have as many cells as the header."""
    best, found = (0.0, 1), ","
    for delimiter in _DELIMITERS:
        lines = io.StringIO(text, newline="")
        try:
            rows = [row for row in islice(csv.reader(lines, delimiter=delimiter), 50) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 1
        same = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and (same, width) > best:
            best, found = (same, width), delimiter
    return found
