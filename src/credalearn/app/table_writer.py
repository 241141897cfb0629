"""Tables written a frame at a time, whole or not at all, and never over an input."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from credalearn._files import check_file, whole_file
from credalearn.app._csv_file import FORMULA_STARTS, escape_csv
from credalearn.app.run import Run
from credalearn.app.staging import MODEL, OWN
from credalearn.errors import CredalError

Schema = Mapping[str, type[pl.DataType] | pl.DataType]
_Frames = Iterator[pl.DataFrame]
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")  # suffixes
_ROWS_PER_GROUP = 1 << 15
_OWN = OWN - {"report.html", "MODEL_CARD.md"} | {
    f"{MODEL}/config.json",
    f"{MODEL}/model.safetensors",
}


def check_output(
    path: str | Path, *runs: Run, data: object = None, suffixes: Sequence[str] = TABLES
) -> Path:
    """The path, if it can be written and is no input of this command and no file of a run."""
    output = check_file(path, suffixes)
    if not output.exists():
        return output
    used = {str(data)} if isinstance(data, str | Path) else set()
    for run in runs:
        used |= {str(run.path / name) for name in _OWN}
        for facts in (run.facts, run.training):
            used |= {facts.annotations.path, *facts.annotations.later}
            used |= {facts.inputs.path, *facts.inputs.later, facts.inputs.table or ""}
    if any(path and Path(path).exists() and output.samefile(path) for path in used):
        raise CredalError(
            f"{output} is an input of this command or of the run. To fix: choose another output."
        )
    return output


def write_frames(path: Path, frames: _Frames, schema: Schema) -> None:
    """Write frames one after the other; if one fails, nothing is left and an old file stays."""
    with whole_file(path) as temporary:
        try:
            _WRITERS[path.suffix.lower()](temporary, frames, schema)
        except pl.exceptions.PolarsError as error:  # on a full disk
            raise OSError(str(error)) from error


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with :func:`escape_csv` applied to text that a spreadsheet might run."""
    for name, kind in frame.schema.items():
        if kind != pl.String:
            continue
        column = frame[name]
        suspects = column.str.head(1).is_in(FORMULA_STARTS).fill_null(False).arg_true()
        if len(suspects):
            safe = pl.Series([escape_csv(text) for text in column.gather(suspects)])
            frame = frame.with_columns(column.scatter(suspects, safe))
    return frame


def _write_separated(path: Path, frames: _Frames, schema: Schema, *, separator: str) -> None:
    names = without_formulas(pl.DataFrame({"name": list(schema)}))["name"]
    with path.open("wb") as file:
        pl.DataFrame(schema=names.to_list()).write_csv(file, separator=separator)
        for frame in frames:
            without_formulas(frame).write_csv(file, separator=separator, include_header=False)


def _write_jsonl(path: Path, frames: _Frames, schema: Schema) -> None:  # noqa: ARG001
    with path.open("wb") as file:
        for frame in frames:
            frame.write_ndjson(file)


def _write_parquet(path: Path, frames: _Frames, schema: Schema) -> None:
    raised: list[Exception] = []

    def source(*_: object) -> _Frames:
        try:
            yield from frames
        except Exception as error:  # polars would wrap it in its own
            raised.append(error)
            raise

    try:
        table = register_io_source(source, schema=dict(schema))
        # An open file: given a path, polars could create it again after a failure has removed it.
        with path.open("wb") as file:
            table.sink_parquet(file, row_group_size=_ROWS_PER_GROUP)
    except Exception as error:
        if raised:
            raise raised[0] from None
        raise OSError(str(error)) from error


_WRITERS: dict[str, Callable[[Path, _Frames, Schema], None]] = {
    ".csv": partial(_write_separated, separator=","),
    ".tsv": partial(_write_separated, separator="\t"),
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}
