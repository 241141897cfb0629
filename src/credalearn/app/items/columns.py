"""What a table says of items beside what a model sees: a group, a split, a true class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from credalearn.app.annotations.places import shown
from credalearn.app.annotations.records import looks_like_json
from credalearn.app.items.checked import check_columns, item_column, place_of
from credalearn.app.tables.blocks import blocks, columns_of, is_parquet
from credalearn.app.tables.csv_blocks import CHARACTERS, TextTable
from credalearn.errors import CredalError


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumns:
    r"""Columns of a table, a value an item.

    Args:
        path: Where they were read.
        items: Name of each item, all different.
        rows: The row of each item, from 0: the first where it has several.
        values: A column for each that was asked for, a row an item.
        later: Further files that the rows go on in, each with the number of its first row.
        text: How the first is to be read, where it is a text that was read in a way of its own.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
        >>> _ = path.write_text("item,label,site\na,cat,x\na,dog,x\nb,dog,y\n")
        >>> found = read_item_columns(path, ("site",))
        >>> found.items, found.column("site"), found.place(1).split(", ")[1]
        (['a', 'b'], ['x', 'y'], 'line 4')
    """

    path: Path
    items: list[str]
    rows: list[int]
    values: pl.DataFrame
    later: tuple[tuple[int, Path], ...] = ()
    text: TextTable | None = None

    def column(self, name: str | None) -> list[object] | None:
        """The values of a column; None for none."""
        return self.values[name].to_list() if name in self.values.columns else None

    def taken(self, numbers: list[int], items: list[str]) -> "ItemColumns":
        """Some of the items, under other names."""
        rows = [self.rows[number] for number in numbers]
        return replace(self, items=items, rows=rows, values=self.values[numbers])

    def place(self, number: int) -> str:
        """Where the item stands, as a message names it."""
        row = self.rows[number]
        parts = [(0, self.path), *self.later]
        start, path = next(part for part in reversed(parts) if part[0] <= row)
        return _place(path, row - start, self.text if start == 0 else None)


def read_item_columns(
    path: str | Path,
    names: Sequence[str],
    *,
    item: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> ItemColumns:
    """Columns of a CSV, TSV or Parquet file with one row an item, or several that agree.

    Args:
        path: The file, such as a table of votes.
        names: The columns.
        item: Column that names the items, where the table has it; else one that is called like it.
        encoding: Of a text file; None: found from its bytes.
        delimiter: Of a table in text; None: found from its first rows.

    Raises:
        CredalError: If a column is missing, or two rows of an item differ.
    """
    path = Path(path)
    if is_json(path):
        raise CredalError(
            f"{path} is JSON and has no column {names[0]!r}. To fix: name a table with a row an "
            "item, CSV or Parquet, with --table."
        )
    text = None if is_parquet(path) else TextTable(path, encoding=encoding, delimiter=delimiter)
    columns = columns_of(path) if text is None else [name for name in text.columns if name]
    check_columns(path, columns, names)
    known = item_column(path, columns, item if item in columns else None)
    frames = blocks(path) if text is None else text.blocks(CHARACTERS)
    table = pl.concat(list(frames) or [pl.DataFrame(schema=columns)])
    named = table[known].cast(pl.String).str.strip_chars().str.normalize("NFC").to_list()
    values = table.select(pl.col(list(dict.fromkeys(names))).cast(pl.String).str.strip_chars())
    first: dict[str, int] = {}
    for row, name in enumerate(named):
        before = first.setdefault(name, row) if name else row
        if before != row and values.row(row) != values.row(before):
            _refuse_difference(path, text, name, values, before, row)
    rows = list(first.values())
    return ItemColumns(path, list(first), rows, values[rows], text=text)


def is_json(path: Path) -> bool:
    """Whether a file is there and holds JSON, by how it begins.

    Example:
        >>> is_json(Path("none.json"))
        False
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return looks_like_json(file.read(4096))


def _place(path: Path, row: int, text: TextTable | None) -> str:
    return place_of(path, row) if text is None else f"{path}, line {text.line_of(row)}"


def _refuse_difference(
    path: Path, text: TextTable | None, name: str, values: pl.DataFrame, before: int, row: int
) -> None:
    column = next(each for each in values.columns if values[each][row] != values[each][before])
    here, there = (_place(path, each, text) for each in (row, before))
    line = there.removeprefix(f"{path}, ")
    raise CredalError(
        f"{here}: item {shown(name)} has {column!r} {shown(values[column][row])}, and "
        f"{shown(values[column][before])} in {line}. To fix: one value an item."
    )
