"""Tables as columns of text, whatever file they come from; those of Parquet and of records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from credalearn._checks import nearest
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.quiet import quiet_panics

_HEAD_ROWS = 200
_AROUND = ' \t"\ufeff'  # what may stand around a name: a second file can begin with a mark
# polars reports some damage by a panic, which is no Exception.
_FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of text, read when its columns are taken.

    Args:
        path: Of the file.
        words: What kind of file, in words.
        lazy: The columns, all text; empty is null or "".
        columns: Their names, in order.
        place: From a row to where it stands, such as "line 7".
        head: Of the first 200 rows those that are not blank.
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
        name = self.columns[-1]
        missing = pl.col(name).is_null().alias("\0missing")
        named = (pl.col(name).str.strip_chars(_AROUND) == name).alias("\0named")
        try:
            with quiet_panics():
                found = self.lazy.select(*expressions, missing, named).collect(engine="streaming")
        except _FAILURES as error:
            self._refuse_damage(error)
        where = self.short() if found["\0missing"].any() else None
        if where is not None:
            rule = f"this row has fewer fields than the header's {len(self.columns)}"
            fix = "fill the row up, or export the file again if it is cut short"
            refuse(self.path, where, rule, fix=fix)
        if found["\0named"].any():
            self._refuse_header(found, expressions)
        return found.drop("\0missing", "\0named")

    def _refuse_header(self, found: pl.DataFrame, expressions: Sequence[pl.Expr]) -> None:
        """Refuse a row that holds the names of the columns: files were put one after another."""
        taken = {each.meta.output_name(): each.meta.root_names()[0] for each in expressions}
        same = [pl.col(each).str.strip_chars(_AROUND) == name for each, name in taken.items()]
        rows = found.select(pl.all_horizontal("\0named", *same).arg_true()).to_series()
        if len(rows):
            rule = "this row holds the names of the columns again, and no vote"
            refuse(self.path, self.place(rows[0]), rule, fix="delete the row; keep one header")

    def _refuse_damage(self, error: BaseException) -> None:
        if _is_too_long(error):
            where = self.place(-1)
            rule = f"this row has more fields than the header's {len(self.columns)}"
            refuse(self.path, where, rule, fix="quote values that hold the delimiter")
        fix = "export the file again; it may be damaged"
        refuse(self.path, "", f"the table cannot be read{_reason(error)}", fix=fix)


def read_parquet(path: Path) -> Table | list[dict[str, object]]:
    """The table in a Parquet file; its rows as objects where a column holds lists or objects."""
    try:
        with quiet_panics():
            lazy = pl.scan_parquet(path)
            schema = lazy.collect_schema()
            if any(kind.is_nested() for kind in schema.dtypes()):
                return pl.read_parquet(path).to_dicts()
    except _FAILURES as error:
        fix = "write the file again; it may be damaged or cut short"
        refuse(path, "", f"this is no readable Parquet file{_reason(error)}", fix=fix)
    texts = [_as_text(name, kind) for name, kind in schema.items() if kind != pl.Binary]
    names = [name for name, kind in schema.items() if kind != pl.Binary]
    return make_table(
        path, "Parquet table", lazy.select(texts), names, lambda row: f"row {row + 1}"
    )


def from_columns(
    path: Path, words: str, columns: Mapping[str, Sequence[str | None]], lines: Sequence[int]
) -> Table:
    """A table of flat JSON objects, with the line of each."""
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return make_table(path, words, frame.lazy(), list(columns), lambda row: f"line {lines[row]}")


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
    empty = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    table = Table(path, words, lazy, tuple(names), place, empty, short)
    try:
        with quiet_panics():
            head = lazy.head(_HEAD_ROWS).filter(_not_blank()).collect()
    except _FAILURES as error:
        if _is_too_long(error):
            table._refuse_damage(error)
        return table  # ``take`` finds the place
    return replace(table, head=head)


def _is_too_long(error: BaseException) -> bool:
    """Whether a row has more fields than the header; of the first polars says it otherwise."""
    return any(words in str(error) for words in ("more fields", "not specified in schema"))


def _not_blank() -> pl.Expr:
    """Rows with something in them: spreadsheets leave rows of delimiters alone at the end."""
    return pl.any_horizontal(pl.all().str.strip_chars() != "")


def _reason(error: BaseException) -> str:
    """What polars says, in brackets; the words of a panic are for its authors."""
    if isinstance(error, pl.exceptions.PanicException):
        return ""
    return f" ({' '.join(str(error).split())[:120]})"


def _as_text(name: str, kind: pl.DataType) -> pl.Expr:
    """A column as text: whole numbers without a decimal point, NaN as empty."""
    column = pl.col(name)
    if kind.is_float():
        whole = (column == column.round()) & (column.abs() < 2**53)
        text = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String))
        return text.when(column.is_not_nan()).then(column.cast(pl.String)).alias(name)
    return column if kind == pl.String else column.cast(pl.String)
