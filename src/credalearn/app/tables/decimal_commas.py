"""Numbers as much of Europe writes them, 0,5 for a half, in a table that other signs separate."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from credalearn.app.annotations.places import listed
from credalearn.app.tables.blocks import is_parquet
from credalearn.app.tables.csv_blocks import TextTable

WITH_COMMA = r"^[+-]?\d+,\d+([eE][+-]?\d+)?$"
_WHOLE = r"^[+-]?\d+([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,234: a little more than one, or than a thousand


def comma_columns(path: Path, tables: Iterable[pl.DataFrame], names: Sequence[str]) -> list[str]:
    r"""Columns whose every value in a file is a number, some of them with a decimal comma.

    None where commas separate the columns, and none where every comma may stand for thousands.

    Args:
        path: The file.
        tables: All its rows, a row an item, one table after the other; read no further than needed.
        names: The columns to look at.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id;size;note\na;0,5;1,5 or so\nb;2;3\n")
        >>> tables = [{"size": ["0,5"], "note": ["1,5 or so"]}, {"size": ["2"], "note": ["3"]}]
        >>> comma_columns(path, map(pl.DataFrame, tables), ["size", "note"])
        ['size']
    """
    if is_parquet(path):
        return []
    text = TextTable(path)
    if text.separator == "," or not text.holds(","):
        return []
    numbers = list(names)
    found: set[str] = set()
    sure: set[str] = set()
    for table in tables:
        for name in list(numbers):
            values = table[name].str.strip_chars().drop_nulls()
            values = values.filter(values != "")
            commas = values.str.contains(WITH_COMMA)
            if not (commas | values.str.contains(_WHOLE)).all():
                numbers.remove(name)
            elif commas.any():
                found.add(name)
                if not values.filter(commas).str.contains(_THOUSANDS).all():
                    sure.add(name)
        if not numbers:
            break
    return [name for name in numbers if name in found] if sure.intersection(numbers) else []


def with_points(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The same with points for the commas of these columns.

    Example:
        >>> with_points(pl.DataFrame({"size": ["0,5", "2"]}), ["size"])["size"].to_list()
        ['0.5', '2']
    """
    return table.with_columns(pl.col(list(columns)).str.replace(",", ".", literal=True))


def said_of_commas(columns: Sequence[str]) -> str:
    """What to tell the user of columns in which they were read.

    Example:
        >>> said_of_commas(["size"])
        "decimal commas: 0,5 is read as 0.5 in 'size'"
    """
    return f"decimal commas: 0,5 is read as 0.5 in {listed(columns)}"
