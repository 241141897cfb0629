"""A table too large for memory, a block of rows at a time, every value still text.

Polars' own streaming maps the whole file into memory, which then counts as the process's; blocks
that are read and dropped keep it small, whatever the number of rows.
"""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import polars as pl

from credalearn.annotations.quiet import quiet_panics
from credalearn.annotations.text import look
from credalearn.errors import CredalError

CHARACTERS = 1 << 22  # of text at a time: 4 MB, some 25,000 rows of 20 features
NUMBERS = 1 << 20  # of a Parquet file at a time: 8 MB
_SEPARATORS = (",", ";", "\t", "|")
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")
_FIX = "give CSV, TSV, Parquet, npy or npz with a row an item"


def columns_of(path: Path) -> list[str]:
    r"""Names of a table's columns, in order, but for those of :func:`index_columns`.

    Raises:
        CredalError: If the file is empty, binary or no table, or a name comes twice.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id;size\na;1\n")
        >>> columns_of(path)
        ['id', 'size']
    """
    return [name for name in _all_columns(path) if not _is_index(name)]


def index_columns(path: Path) -> list[str]:
    r"""Columns that hold the row numbers of a pandas table, which are never read.

    In text they have no name, in Parquet they are called ``__index_level_0__`` and so on.

    Raises:
        CredalError: As for :func:`columns_of`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text(",id,size\n0,a,1\n")
        >>> index_columns(path), columns_of(path)
        ([''], ['id', 'size'])
    """
    return [name for name in _all_columns(path) if _is_index(name)]


def blocks(path: Path, *, characters: int = CHARACTERS) -> Iterator[pl.DataFrame]:
    r"""The rows of a CSV, TSV or Parquet file, in order, with the columns of :func:`columns_of`.

    Of CSV and TSV every value is text, null where empty; rows without any value are left out.
    Parquet has types of its own.

    Raises:
        CredalError: If a row does not fit the header.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id,size\na,1\n\n007,\n")
        >>> [block.rows() for block in blocks(path)]
        [[('a', '1'), ('007', None)]]
    """
    if is_parquet(path):
        yield from _parquet(path)
    else:
        yield from TextTable(path).blocks(characters)


def is_parquet(path: Path) -> bool:
    """Whether the file says that it is Parquet, whatever its name."""
    with naming(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


class TextTable:
    r"""A table in text: its encoding, its separator, its header.

    Args:
        path: The file.

    Raises:
        CredalError: As for :func:`columns_of`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.tsv"
        >>> _ = path.write_text("id\tsize\na\t1\n")
        >>> TextTable(path).line_of(0)
        2
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with naming(path):
            if not path.stat().st_size:
                raise CredalError(f"{path} is empty. To fix: {_FIX}.")
            encoding = look(path).encoding
        self.encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        with self._open() as file:
            head = file.readline(CHARACTERS)
        self.separator = max(_SEPARATORS, key=head.count)
        with self._open() as file:
            self.columns = [name.strip() for name in next(self._records(file), [])]
        if not any(self.columns):
            raise CredalError(
                f"{path} has no header. To fix: {_FIX}, and the columns' names first."
            )
        for name in self.columns:
            if name and self.columns.count(name) > 1:
                raise CredalError(
                    f"{path}: the column {name!r} comes twice. To fix: rename or remove one."
                )

    def blocks(self, characters: int) -> Iterator[pl.DataFrame]:
        """The rows below the header."""
        header = self._header()
        with self._open() as file:
            next(self._records(file))
            rest = ""
            while chunk := file.read(characters):
                text = rest + chunk
                end = _end_of_rows(text)
                rest = text[end:]
                if end:
                    yield self._parsed(header, text[:end])
            if rest.strip():
                yield self._parsed(header, rest)

    def line_of(self, row: int) -> int:
        """The line on which a row (from 0, empty ones not counted) stands, from 1; slow."""
        with self._open() as file:
            reader = csv.reader(file, delimiter=self.separator)
            numbered = (reader.line_num for record in reader if any(record))
            starts = list(islice(numbered, row + 2))
        return starts[row + 1]

    def _open(self) -> io.TextIOWrapper:
        # Line ends stay as they are: a cell may hold one.
        return self.path.open(encoding=self.encoding, newline="")

    def _records(self, file: io.TextIOWrapper) -> Iterator[list[str]]:
        # readline, not iteration: after next(file) a file cannot be read in blocks.
        return csv.reader(iter(file.readline, ""), delimiter=self.separator)

    def _header(self) -> str:
        """A header of plain names for each block, so that no name needs quotes."""
        return self.separator.join(f"c{number}" for number in range(len(self.columns))) + "\n"

    def _parsed(self, header: str, text: str) -> pl.DataFrame:
        try:
            frame = pl.read_csv(
                (header + text).encode(), separator=self.separator, infer_schema=False
            )
        except pl.exceptions.PolarsError as error:
            raise self._misfit(error) from error
        named = {f"c{number}": name for number, name in enumerate(self.columns)}
        named = {place: name for place, name in named.items() if not _is_index(name)}
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        return frame.select(list(named)).rename(named)

    def _misfit(self, error: Exception) -> CredalError:
        """Which line does not fit the header, found slowly."""
        with self._open() as file:
            reader = csv.reader(file, delimiter=self.separator)
            for record in reader:
                if len(record) > len(self.columns):
                    return CredalError(
                        f"{self.path}, line {reader.line_num}: {len(record)} values for "
                        f"{len(self.columns)} columns. To fix: put quotes around values that hold "
                        f"a {self.separator!r}."
                    )
        first = str(error).strip().splitlines()[0]
        return CredalError(f"{self.path} cannot be read as a table: {first}. To fix: {_FIX}.")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what files and polars raise into one message that names the file.

    Example:
        >>> with naming(Path("items.csv")):
        ...     Path("no such file").stat()
        Traceback (most recent call last):
        credalearn.errors.CredalError: there is no file items.csv.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CredalError(f"there is no file {path}.") from error
    except OSError as error:
        raise CredalError(f"{path} cannot be read: {error.strerror or error}.") from error
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise CredalError(f"{path} cannot be read as a table: {first}. To fix: {_FIX}.") from error
    except pl.exceptions.PanicException as error:  # on damaged Parquet; no Exception but its base
        raise CredalError(f"{path} is damaged. To fix: write it again.") from error


def _all_columns(path: Path) -> list[str]:
    if is_parquet(path):
        with naming(path), quiet_panics():
            return pl.scan_parquet(path, glob=False).collect_schema().names()
    return TextTable(path).columns


def _is_index(name: str) -> bool:
    return not name or _PARQUET_INDEX.fullmatch(name) is not None


def _parquet(path: Path) -> Iterator[pl.DataFrame]:
    with naming(path):
        columns = columns_of(path)
        table = pl.scan_parquet(path, glob=False, low_memory=True).select(columns)
        rows = max(1, NUMBERS // max(1, len(columns)))
        start = 0
        while True:
            with quiet_panics():
                block = table.slice(start, rows).collect()
            if not len(block):
                return
            yield block
            start += len(block)


def _end_of_rows(text: str) -> int:
    """Where the last whole row ends; a line end between quotes is no end of a row."""
    end = text.rfind("\n") + 1
    quotes = text.count('"', 0, end)
    while end and quotes % 2:
        before = text.rfind("\n", 0, end - 1) + 1
        quotes -= text.count('"', before, end)
        end = before
    return end
