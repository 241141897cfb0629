"""Tables written a batch at a time, whole or not at all: CSV, Parquet or JSON lines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from credalearn._escape import escape_csv
from credalearn._files import check_file, whole_file

_FORMULA = r"^[=+\-@\t\r]"  # where escape_csv may have to act
_ROWS_A_GROUP = 1 << 15


def check_output(path: str | Path) -> Path:
    """The path, if its suffix says how to write it and it can be written.

    Raises:
        CredalError: If it does not, or cannot.

    Example:
        >>> check_output("decisions.csv").name
        'decisions.csv'
    """
    return check_file(path, WRITERS)


def write_frames(
    path: str | Path, frames: Iterator[pl.DataFrame], schema: dict[str, type[pl.DataType]]
) -> None:
    """Write frames one after the other; if any fails, nothing is left and an old file stays.

    Args:
        path: CSV, TSV, Parquet or JSON lines, by its suffix. In CSV and TSV text that a spreadsheet
            would run as a formula gets an apostrophe before it.
        frames: Each with the columns of ``schema``.
        schema: Name and type of each column.

    Raises:
        CredalError: If the suffix is none of these, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> frames = [pl.DataFrame({"item": ["=1+1"]}), pl.DataFrame({"item": ["b"]})]
        >>> write_frames(path, iter(frames), {"item": pl.String})
        >>> path.read_text().split()
        ['item', "'=1+1", 'b']
    """
    path = check_output(path)
    with whole_file(path) as partial:
        WRITERS[path.suffix.lower()](partial, frames, schema)


def neutral(frame: pl.DataFrame) -> pl.DataFrame:
    """Text that no spreadsheet runs as a formula: :func:`escape_csv` where it may act.

    Example:
        >>> neutral(pl.DataFrame({"item": ["@x", "-1", "a"]}))["item"].to_list()
        ["'@x", '-1', 'a']
    """
    for name, kind in frame.schema.items():
        if kind != pl.String:
            continue
        column = frame[name]
        suspects = column.str.contains(_FORMULA).fill_null(False).arg_true()
        if len(suspects):
            safe = pl.Series([escape_csv(text) for text in column.gather(suspects)])
            frame = frame.with_columns(column.scatter(suspects, safe))
    return frame


_Frames = Iterator[pl.DataFrame]
_Schema = dict[str, type[pl.DataType]]


def _write_csv(path: Path, frames: _Frames, schema: _Schema) -> None:
    _write_separated(path, frames, schema, ",")


def _write_tsv(path: Path, frames: _Frames, schema: _Schema) -> None:
    _write_separated(path, frames, schema, "\t")


def _write_separated(path: Path, frames: _Frames, schema: _Schema, separator: str) -> None:
    names = neutral(pl.DataFrame({"name": list(schema)}))["name"]
    with path.open("wb") as file, _as_os_error():
        pl.DataFrame(schema=names.to_list()).write_csv(file, separator=separator)
        for frame in frames:
            neutral(frame).write_csv(file, separator=separator, include_header=False)


def _write_jsonl(path: Path, frames: _Frames, schema: _Schema) -> None:  # noqa: ARG001
    with path.open("wb") as file, _as_os_error():
        for frame in frames:
            frame.write_ndjson(file)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Polars gives a full disk as an error of its own."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise OSError(str(error)) from error


def _write_parquet(path: Path, frames: _Frames, schema: _Schema) -> None:
    raised: list[Exception] = []

    def source(*_: object) -> _Frames:
        try:
            yield from frames
        except Exception as error:  # polars would wrap it in its own
            raised.append(error)
            raise

    try:
        table = register_io_source(source, schema=dict(schema))
        # A file of ours: by its path, polars could make it anew after a failure has removed it.
        with path.open("wb") as file:
            table.sink_parquet(file, row_group_size=_ROWS_A_GROUP)
    except Exception as error:
        if raised:
            raise raised[0] from None
        raise OSError(str(error)) from error


WRITERS: dict[str, Callable[[Path, _Frames, _Schema], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}
