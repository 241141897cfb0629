"""Tables as columns of text, whatever file they come from; those of Parquet and of records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from credalearn.annotations.places import listed, nearest, refuse, shown

_HEAD_ROWS = 200
# polars reports some damage by a panic, which is no Exception.
FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of text, read when its columns are taken.

    Args:
        path: Of the file.
        words: What kind of file, in words.
        lazy: The columns, all text; empty is null or "".
        columns: Their names, in order.
        place: From a row to where it stands, such as "line 7".
        head: The first 200 rows.
        short: Where the first row with too few fields begins; None if there is none.
    """

    path: Path
    words: str
    lazy: pl.LazyFrame
    columns: tuple[str, ...]
    place: Callable[[int], str]
    head: pl.DataFrame = field(repr=False)
    short: Callable[[], str | None] = field(default=lambda: None, repr=False)

    def column(self, name: str, *, option: str) -> str:
        """The column that the user named: as it stands, or else in other case."""
        if name in self.columns:
            return name
        same = [each for each in self.columns if each.casefold() == name.casefold()]
        if len(same) == 1:
            return same[0]
        guess = nearest(name, self.columns)
        fix = f"say --{option} {guess!r}" if guess else f"say with --{option} which of them it is"
        rule = f"there is no column {shown(name)}; the columns are {listed(self.columns, 20)}"
        return refuse(self.path, "line 1", rule, fix=fix)

    def take(self, *expressions: pl.Expr) -> pl.DataFrame:
        """Columns of all rows."""
        # polars notices a row with too many fields only if it reads the last column, and fills
        # that of a row with too few with null.
        last = pl.col(self.columns[-1]).is_null().alias("\0last")
        try:
            found = self.lazy.select(*expressions, last).collect(engine="streaming")
        except FAILURES as error:
            self._refuse_damage(error)
        where = self.short() if found["\0last"].any() else None
        if where is not None:
            rule = f"this row has fewer fields than the header's {len(self.columns)}"
            fix = "fill the row up, or export the file again if it is cut short"
            refuse(self.path, where, rule, fix=fix)
        return found.drop("\0last")

    def _refuse_damage(self, error: BaseException) -> None:
        reason = " ".join(str(error).split())[:120]
        if "more fields" in reason:
            where = self.place(-1)
            rule = f"this row has more fields than the header's {len(self.columns)}"
            refuse(self.path, where, rule, fix="quote values that hold the delimiter")
        fix = "export the file again; it may be damaged"
        refuse(self.path, "", f"the table cannot be read ({reason})", fix=fix)


def read_parquet(path: Path) -> Table | list[dict[str, object]]:
    """The table in a Parquet file; its rows as objects where a column holds lists or objects."""
    try:
        lazy = pl.scan_parquet(path)
        schema = lazy.collect_schema()
        if any(kind.is_nested() for kind in schema.dtypes()):
            return pl.read_parquet(path).to_dicts()
    except FAILURES as error:
        reason = " ".join(str(error).split())[:120]
        fix = "write the file again; it may be damaged or cut short"
        refuse(path, "", f"this is no readable Parquet file ({reason})", fix=fix)
    texts = [_as_text(name, kind) for name, kind in schema.items() if kind != pl.Binary]
    names = [name for name, kind in schema.items() if kind != pl.Binary]
    return make_table(
        path, "Parquet table", lazy.select(texts), names, lambda row: f"row {row + 1}"
    )


def from_rows(path: Path, words: str, rows: Sequence[dict[str, str | None]]) -> Table:
    """A table of flat JSON objects, each with its line under the key ``""``."""
    names = list(dict.fromkeys(name for row in rows for name in row if name))
    lines = [row[""] for row in rows]
    columns = {name: [row.get(name) for row in rows] for name in names}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
    return make_table(path, words, frame.lazy(), names, lambda row: f"line {lines[row]}")


def make_table(
    path: Path,
    words: str,
    lazy: pl.LazyFrame,
    names: Sequence[str],
    place: Callable[[int], str],
    short: Callable[[], str | None] = lambda: None,
) -> Table:
    """The table with its head, and its names checked."""
    if not names:
        refuse(path, "line 1", "the table has no named column", fix="name its columns")
    try:
        head = lazy.head(_HEAD_ROWS).collect()
    except FAILURES:
        head = pl.DataFrame(schema=dict.fromkeys(names, pl.String))  # ``take`` finds the place
    return Table(path, words, lazy, tuple(names), place, head, short)


def _as_text(name: str, kind: pl.DataType) -> pl.Expr:
    """A column as text: whole numbers without a decimal point, NaN as empty."""
    column = pl.col(name)
    if kind.is_float():
        whole = (column == column.round()) & (column.abs() < 2**53)
        text = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String))
        return text.when(column.is_not_nan()).then(column.cast(pl.String)).alias(name)
    return column if kind == pl.String else column.cast(pl.String)
