"""Tables, JSON and arrays, each opened once: what it is, its columns, its rows in blocks."""

import os
import re
import stat
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np
import polars as pl

from credalearn._checks import folded
from credalearn.app._array_file import check_unpacked, is_npz, read_arrays
from credalearn.app._csv_file import BLOCK, CsvFile, find_encoding
from credalearn.app._json_file import Record, json_records, text_of
from credalearn.errors import CredalError

_NUMBERS = 1 << 20  # of a Parquet file or an array at a time: 8 MB
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0")  # row numbers that pandas wrote
_JSON = re.compile(rb'\[\s*([\[{"\d\]-]|$)|\{')
_DAMAGE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # a panic is not an Exception
_COMMA = r"^[+-]?\d*,\d+$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # or three decimals


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Source:
    """A table, or records or an array read as one, from a file that is opened once or memory."""

    path: Path  # for a table in memory, what messages call it
    kind: Literal["table", "records", "array"]
    words: str  # file type and encoding, for people
    columns: tuple[str, ...]  # without those that number the rows of a pandas table
    place: Callable[[int], str]  # from a row to where it is in the file, such as "line 7"
    _blocks: Callable[[list[str]], Iterator[pl.DataFrame]] = field(repr=False)
    records: tuple[Record, ...] = field(default=(), repr=False)  # the objects of a JSON file

    def blocks(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """All rows in order, in bounded memory."""
        wanted = list(dict.fromkeys(self.columns if columns is None else columns))
        with _naming(self.path):
            yield from self._blocks(wanted)

    def read(self, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """All rows at once."""
        wanted = list(dict.fromkeys(self.columns if columns is None else columns))
        parts = list(self.blocks(wanted))
        return pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(wanted, pl.String))

    def column(self, name: str, *, option: str | None) -> str:
        """The column that the user named: as written, about so, or as a field of a field."""
        if name in self.columns:
            return name
        for same in (
            [each for each in self.columns if each.casefold() == name.casefold()],
            [each for each in self.columns if folded(each) == folded(name)],
            [each for each in self.columns if each.endswith(f".{name}")],
            [each for each in self.columns if each == name.rpartition(".")[2]],
        ):
            if len(same) == 1:
                return same[0]
        fix = f"name one with {option}=, or rename one." if option else "add it, as in training."
        raise CredalError(
            f"{self.path} has no column {name!r}; its columns are: {', '.join(self.columns[:20])}. "
            f"To fix: {fix}"
        )

    def where(self, row: int) -> str:
        """Where a row is, such as "items.csv, line 7"."""
        return f"{self.path}, {self.place(row)}"

    def refuse(self, rule: str, *, row: int | None = None, fix: str) -> NoReturn:
        """Raise the error of bad input: the place, the rule and the remedy."""
        where = self.path if row is None else self.where(row)
        raise CredalError(f"{where}: {rule}. To fix: {fix}.")


def open_source(
    data: str | PathLike[str] | pl.DataFrame | Any,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    called: str = "the table",
) -> Source:
    """Open a CSV, TSV, Parquet, JSON, JSON Lines, npy or npz file; or what is in memory.

    ``called`` is what messages call a table in memory.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, np.ndarray | Mapping):
        arrays = data if isinstance(data, Mapping) else {"": data}
        given = {str(name): np.asarray(each) for name, each in arrays.items()}
        return _of_arrays(Path("the array"), given)
    if not isinstance(data, str | PathLike):
        return _from_frame(data, Path(called))
    path = Path(data)
    with _naming(path):
        file = _regular_file(path)
        try:
            source = _opened(path, file, encoding, delimiter)
        except BaseException:
            file.close()
            raise
    weakref.finalize(source, file.close)
    return source


def _regular_file(path: Path) -> BinaryIO:
    """The open file; what comes through a pipe from another program is read into memory."""
    kind = path.stat().st_mode
    if stat.S_ISREG(kind):
        return path.open("rb")
    if stat.S_ISDIR(kind):
        raise CredalError(f"{path} is a folder. To fix: name a file in it.")
    # A named pipe without a writer would never open; the shell's pipes have no name of their own.
    if not stat.S_ISFIFO(kind) or Path(os.path.realpath(path)).exists():
        raise CredalError(f"{path} is not a regular file. To fix: save the data in a file.")
    return BytesIO(path.read_bytes())


def numbers(column: pl.Series, *, decimal_commas: bool = False) -> pl.Series:
    """A column as float64, null for other text; ``0,5`` is 0.5, ``1,234`` if commas are decimal."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    text = column.cast(pl.String).str.strip_chars()
    found = text.cast(pl.Float64, strict=False)
    if found.null_count() > text.null_count():
        comma = has_comma(text)
        if decimal_commas or (comma.any() and not text.str.contains(".", literal=True).any()):
            comma = text.str.contains(_COMMA)
        point = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        found = pl.select(pl.when(comma).then(point).otherwise(found)).to_series()
    return found.alias(column.name)


def has_comma(text: pl.Series) -> pl.Series:
    """Which texts are numbers with a decimal comma; ``1,234`` may mean thousands."""
    return text.str.contains(_COMMA) & ~text.str.contains(THOUSANDS)


def texts(table: pl.DataFrame) -> pl.DataFrame:
    """All columns as text: whole numbers without a decimal point, NaN as null."""
    columns = []
    for name, kind in table.schema.items():
        column = pl.col(name)
        text = column if kind == pl.String else column.cast(pl.String, strict=False)
        if kind.is_float():
            whole = (column == column.round()) & (column.abs() < 2**53)
            number = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String))
            text = number.when(column.is_not_nan()).then(text).alias(name)
        columns.append(text)
    return table.select(columns)


class Tabular:
    """What can be taken as a polars or pandas table."""

    __slots__ = ()
    table: Any

    def to_polars(self) -> pl.DataFrame:
        """The table."""
        return self.table

    def to_pandas(self) -> Any:
        """The same as a pandas DataFrame; not by polars, which needs pyarrow for it."""
        return import_module("pandas").DataFrame(self.to_polars().to_dict(as_series=False))


def _opened(path: Path, file: BinaryIO, encoding: str | None, delimiter: str | None) -> Source:
    start = file.read(BLOCK)
    if start.startswith(b"PAR1"):
        return _parquet(path, file)
    if start.startswith(b"\x93NUMPY") or (start.startswith(b"PK") and is_npz(file)):
        return _of_arrays(path, read_arrays(path, file))
    found = find_encoding(path, start, encoding)
    bare = start[:4096].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    if _JSON.match(bare) or (bare[:1] == b"[" and path.suffix.lower() == ".json"):
        file.seek(0)
        content = file.read()
        try:
            text = content.decode(found[0]).removeprefix("\ufeff")
        except UnicodeError as error:
            raise CredalError(f"{path} is not {found[1]}. To fix: save it as UTF-8.") from error
        words, records = json_records(path, text)
        return _of_records(path, f"{words}, {found[1]}", records)
    table = CsvFile(path, file, start, found, delimiter)
    columns = tuple(name for name in table.columns if not _INDEX.fullmatch(name))
    place = lambda row: f"line {table.line_of(row)}"  # noqa: E731
    return Source(path, "table", table.words, columns, place, table.blocks)


def _parquet(path: Path, file: BinaryIO) -> Source:
    # Through the open file: by its path polars opens it several times. Slices keep memory small,
    # where polars' own streaming maps the whole file.
    file.seek(0)
    table = pl.scan_parquet(file, low_memory=True)
    schema = table.collect_schema()
    rows = int(table.select(pl.len()).collect().item())  # as the file states
    check_unpacked(path, file, 8 * rows * len(schema), fix="write it as CSV")
    if any(kind.is_nested() for kind in schema.dtypes()):
        found = table.collect().to_dicts()
        records = [Record(f"row {i}", None, row) for i, row in enumerate(found, 1)]
        return _of_records(path, "Parquet", records)

    def blocks(columns: list[str]) -> Iterator[pl.DataFrame]:
        for part in _parts(rows, len(columns)):
            yield table.select(columns).slice(part.start, part.stop - part.start).collect()

    columns = tuple(name for name in schema.names() if not _INDEX.fullmatch(name))
    return Source(path, "table", "Parquet", columns, _row, blocks)


def _from_frame(data: Any, path: Path) -> Source:
    """A pandas or polars table."""
    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        data = data.reset_index() if any(name is not None for name in data.index.names) else data
        names = list(map(str, data.columns))
        if twice := [name for name in names if names.count(name) > 1]:
            raise CredalError(f"two columns are called {twice[0]!r}. To fix: rename one of them.")
        data = pl.DataFrame({str(name): _series(data[name]) for name in data.columns})
    if not isinstance(data, pl.DataFrame):
        raise CredalError(
            f"data must be a path or a pandas or polars table; got {type(data).__name__}. To fix: "
            "pass one of these, such as pandas.DataFrame(data)."
        )
    table = data
    if any(kind.is_nested() for kind in table.schema.dtypes()):
        rows = [Record(f"row {i}", None, row) for i, row in enumerate(table.to_dicts(), 1)]
        return _of_records(path, "table in memory", rows)
    blocks = lambda columns: iter([] if table.is_empty() else [table.select(columns)])  # noqa: E731
    return Source(path, "table", "table in memory", tuple(table.columns), _row, blocks)


def _series(column: Any) -> pl.Series:
    """A column of a pandas table; what is missing there is null."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        return pl.Series(column.to_numpy())
    cells = zip(column, column.isna(), strict=True)
    known = pl.Series([None if missing else each for each, missing in cells], strict=False)
    if known.dtype not in (pl.Object, pl.Duration):
        return known
    return pl.Series([None if each is None else str(each) for each in known])  # as in a CSV file


def _of_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> Source:
    """The one array (items, features) as columns ``f0``, ``f1``, …, after the others."""
    held = ", ".join(f"{name or 'one'} of shape {each.shape}" for name, each in arrays.items())
    matrices = [each for each in arrays.values() if each.ndim == 2]
    if len(matrices) == 1 and matrices[0].dtype.kind not in "biuf":
        raise CredalError(
            f"{path} must contain numbers; it has the dtype {matrices[0].dtype}. To fix: convert "
            "it with astype(float), or pass a table with named columns."
        )
    if len(matrices) != 1:
        raise CredalError(
            f"{path} must contain one array of numbers of shape (items, features); it has {held}. "
            "To fix: save the features as one array, with the names of the items as 'items', or "
            "pass a pandas or polars table."
        )
    matrix = matrices[0]
    others = {}
    for name, each in arrays.items():
        if each.ndim == 1:
            values = np.char.decode(each, "utf-8") if each.dtype.kind == "S" else each
            cells = [None if value != value else str(value) for value in values]
            others[name] = pl.Series(cells, dtype=pl.String)
    if any(len(each) != len(matrix) for each in others.values()):
        raise CredalError(
            f"the arrays of {path} must have one value per row; it has {held}. To fix: save arrays "
            "of the same length."
        )
    if not others:
        others = {"item": pl.Series([str(row) for row in range(len(matrix))], dtype=pl.String)}
    features = [f"f{number}" for number in range(matrix.shape[1])]

    def blocks(columns: list[str]) -> Iterator[pl.DataFrame]:
        for part in _parts(*matrix.shape):
            some = pl.from_numpy(matrix[part].astype(np.float64), schema=features)
            some = some.with_columns(each[part].alias(name) for name, each in others.items())
            yield some.select(columns)

    return Source(path, "array", "array", (*others, *features), _row, _blocks=blocks)


def _of_records(path: Path, words: str, records: Sequence[Record]) -> Source:
    """Records, with their flat fields as a table; ``meta.id`` is the field of a field."""
    if not records:
        raise CredalError(f"{path} contains no record. To fix: export it again.")
    flat = [dict(_flat(each.value)) for each in records]
    if records[0].key is not None:
        flat = [{"id": record.key} | each for record, each in zip(records, flat, strict=True)]
    names = tuple(dict.fromkeys(name for each in flat for name in each if name))

    def blocks(columns: list[str]) -> Iterator[pl.DataFrame]:
        for part in _parts(len(flat), len(columns)):
            values = {name: [text_of(each.get(name)) for each in flat[part]] for name in columns}
            yield pl.DataFrame(values, schema=dict.fromkeys(columns, pl.String))

    place = lambda row: records[row].place  # noqa: E731
    return Source(path, "records", words, names, place, blocks, tuple(records))


def _flat(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields that are neither lists nor objects, and those of objects with a dotted name."""
    for name, held in value.items():
        if isinstance(held, Mapping):
            yield from (
                (f"{name}.{key}", each)
                for key, each in held.items()
                if not isinstance(each, Mapping | list)
            )
        elif not isinstance(held, list):
            yield name, held


def _parts(rows: int, width: int) -> Iterator[slice]:
    """So many rows in parts of at most 8 MB."""
    step = max(1, _NUMBERS // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))


def _row(row: int) -> str:
    return f"row {row + 1}"


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn what files and polars raise into one message that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise CredalError(f"there is no file {path}. To fix: check the path.") from error
    except OSError as error:
        raise CredalError(f"{path} cannot be read: {error.strerror or error}.") from error
    except _DAMAGE as error:
        raise CredalError(
            f"{path} cannot be read as a table; it may be damaged. To fix: write it again."
        ) from error
