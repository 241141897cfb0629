"""A table in text, a block of rows at a time: any usual separator, quoted by the rules or not."""

import csv
import io
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path

import polars as pl

from credalearn.app.annotations.csv_tables import EXCEL_LINE, find_delimiter, quoted_by_the_rules
from credalearn.app.annotations.text import look
from credalearn.app.tables.naming import FIX, naming
from credalearn.errors import CredalError

CHARACTERS = 1 << 22  # of text at a time: 4 MB, some 25,000 rows of 20 features
_SAMPLE = 1 << 20  # characters in which the separator is looked for
_SPACE = " \t\r\n"
_STRINGS = 1 << 17  # of Python at a time: 8 MB


class TextTable:
    r"""A table in text: its encoding, its separator, its header.

    Args:
        path: The file.
        encoding: As Python names it; found unless given.
        delimiter: Between values; found unless given.

    Raises:
        CredalError: As for :func:`columns_of`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.tsv"
        >>> _ = path.write_text("id\tsize\na\t1\n")
        >>> TextTable(path).line_of(0)
        2
    """

    def __init__(
        self, path: Path, *, encoding: str | None = None, delimiter: str | None = None
    ) -> None:
        self.path = path
        with naming(path):
            if not path.stat().st_size:
                raise CredalError(f"{path} is empty. To fix: {FIX}.")
            looked = look(path, encoding)
        self.encoding = "utf-8-sig" if looked.encoding == "utf-8" else looked.encoding
        self.quotes, self.lone_returns = looked.quotes, looked.lone_returns
        with self._open() as file:
            start = file.read(_SAMPLE)
        excel = EXCEL_LINE.match(start)
        self._above = 0 if excel is None else 1
        self.separator = delimiter or (excel[1] if excel else find_delimiter(start))
        self._header_lines, header = next(self._records(), (1, []))
        self.columns = [name.strip() for name in header]
        if not any(self.columns):
            raise CredalError(f"{path} has no header. To fix: {FIX}, and the columns' names first.")
        for name in self.columns:
            if name and self.columns.count(name) > 1:
                raise CredalError(
                    f"{path}: the column {name!r} comes twice. To fix: rename or remove one."
                )

    def blocks(self, characters: int) -> Iterator[pl.DataFrame]:
        """The rows below the header, in columns by name: those without one are left out."""
        named = {f"c{place}": name for place, name in enumerate(self.columns) if name}
        for frame in self._frames(characters):
            yield frame.select(list(named)).rename(named)

    def line_of(self, row: int) -> int:
        """The line on which a row (from 0, empty ones not counted) ends, from 1; slow."""
        return next(islice(self._rows(), row, None))[0]

    def holds(self, sign: str) -> bool:
        """Whether a sign stands anywhere in it, the header too; quicker told than rows are read."""
        with self._open() as file:
            return any(sign in piece for piece in iter(partial(file.read, CHARACTERS), ""))

    def _open(self) -> io.TextIOWrapper:
        # Line ends stay as they are: a cell may hold one.
        return self.path.open(encoding=self.encoding, newline="")

    def _frames(self, characters: int) -> Iterator[pl.DataFrame]:
        """The rows in columns c0, c1, …, by polars; from where it fails by the standard library."""
        done = 0
        for text in self._pieces(characters):
            frame = self._parsed(text)
            if frame is None:
                yield from self._slow_frames(done)
                return
            done += len(frame)
            yield frame

    def _pieces(self, characters: int) -> Iterator[str]:
        """The text below the header, cut between rows, but for rows that seem to have no end."""
        with self._open() as file:
            for _ in range(self._header_lines):
                file.readline()
            rest = ""
            while chunk := file.read(characters):
                rest += chunk
                end = _end_of_rows(rest)
                if not end and len(rest) > CHARACTERS:
                    end = rest.rfind("\n") + 1  # with an open mark, by which it is seen
                if end:
                    yield rest[:end]
                    rest = rest[end:]
            if rest.strip():
                yield rest

    def _parsed(self, text: str) -> pl.DataFrame | None:
        """The rows as polars reads them; None where those may not be the ones that are meant."""
        content = text.encode()
        by_the_rules = not self.quotes or quoted_by_the_rules(content, self.separator)
        if self.lone_returns or not by_the_rules:
            return None
        header = self.separator.join(f"c{place}" for place in range(len(self.columns)))
        content = f"{header}\n".encode() + content
        try:
            frame = pl.read_csv(content, separator=self.separator, infer_schema=False)
        except pl.exceptions.PolarsError:
            return None
        return _without_blank_rows(frame)

    def _slow_frames(self, start: int) -> Iterator[pl.DataFrame]:
        """The rows from ``start`` on; rare, so that Python's own strings are fast enough."""
        rows, width = islice(self._rows(), start, None), len(self.columns)
        while True:
            columns: list[list[str]] = [[] for _ in range(width)]
            for _, row in islice(rows, max(1, _STRINGS // width)):
                for column, value in zip(columns, chain(row, repeat("")), strict=False):
                    column.append(value)
            if not columns[0]:
                return
            frame = pl.DataFrame({f"c{place}": column for place, column in enumerate(columns)})
            yield frame.select(pl.all().replace("", None))

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows below the header that hold something, each with the line on which it ends."""
        for line, row in islice(self._records(), 1, None):
            if len(row) > len(self.columns):
                raise CredalError(
                    f"{self.path}, line {line}: {len(row)} values for {len(self.columns)} columns. "
                    f"To fix: put quotes around values that hold a {self.separator!r}."
                )
            if "".join(row).strip(_SPACE):
                yield line, row

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """All rows as the standard library reads them, the header first."""
        with self._open() as file:
            reader = csv.reader(file, delimiter=self.separator, skipinitialspace=True, strict=True)
            begun = 1
            try:
                for _ in range(self._above):
                    next(reader)
                for record in reader:
                    yield reader.line_num, record
                    begun = reader.line_num + 1
            except csv.Error as error:
                raise CredalError(
                    f"{self.path}, line {begun}: the row cannot be read ({error}). To fix: close "
                    "every quotation mark, and double those inside a value."
                ) from error


def _without_blank_rows(frame: pl.DataFrame) -> pl.DataFrame:
    def blank(column: pl.Expr) -> pl.Expr:
        return column.str.strip_chars(_SPACE).fill_null("") == ""

    if not frame.select(blank(pl.first()).any()).item():  # most tables have none
        return frame
    return frame.filter(~pl.all_horizontal(blank(pl.all())))


def _end_of_rows(text: str) -> int:
    """Where the last whole row ends; a line end between quotes is no end of a row."""
    end = text.rfind("\n") + 1
    quotes = text.count('"', 0, end)
    while end and quotes % 2:
        before = text.rfind("\n", 0, end - 1) + 1
        quotes -= text.count('"', before, end)
        end = before
    return end
