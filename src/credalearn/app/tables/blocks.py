"""A table too large for memory, a block of rows at a time, every value still text.

Polars' own streaming maps the whole file into memory, which then counts as the process's; blocks
that are read and dropped keep it small, whatever the number of rows.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from credalearn.app.annotations.quiet import quiet_panics
from credalearn.app.tables.csv_blocks import CHARACTERS, TextTable
from credalearn.app.tables.naming import naming

NUMBERS = 1 << 20  # of a Parquet file at a time: 8 MB
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")


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
        table = TextTable(path)
        names = [name for name in table.columns if not _is_index(name)]
        for block in table.blocks(characters):
            yield block.select(names)


def is_parquet(path: Path) -> bool:
    """Whether the file says that it is Parquet, whatever its name."""
    with naming(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


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
