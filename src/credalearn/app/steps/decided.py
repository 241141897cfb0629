"""What ``predict`` wrote, read again and checked."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from credalearn.app.annotations.places import shown
from credalearn.app.items.names import unescaped
from credalearn.app.steps.predicting import SET_SCHEMA, class_schema
from credalearn.app.tables.arrays import is_array
from credalearn.app.tables.blocks import blocks, columns_of
from credalearn.app.tables.naming import naming
from credalearn.errors import CredalError

NUMBERS = ("probability", "lower", "upper", "score")


def is_decisions(path: Path) -> bool:
    """Whether a file is what ``predict`` wrote, by its columns.

    Raises:
        CredalError: If it is, but without decisions.
    """
    if path.is_dir() or is_array(path):
        return False
    if path.suffix.lower() == ".jsonl":
        with naming(path):
            columns = pl.scan_ndjson(path).collect_schema().names()
    else:
        columns = columns_of(path)
    if not {"item", "label", *NUMBERS} <= set(columns):
        return False
    if "decision" not in columns:
        raise CredalError(
            f"{path} holds predictions without decisions. To fix: predict again with a rule or a "
            "threshold."
        )
    return True


def read_decisions(path: Path, classes: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """What ``predict`` wrote, checked, without bounds that are not those of ``SCHEMA``.

    Raises:
        CredalError: If a value cannot be one of ``predict``'s, or an item comes twice.
    """
    seen: set[str] = set()
    bounds = [*SET_SCHEMA, *class_schema(classes)]  # else annotators would be shown them
    jsonl = path.suffix.lower() == ".jsonl"
    with naming(path):
        frames = iter([pl.read_ndjson(path)]) if jsonl else blocks(path)
        for frame in frames:
            frame = _typed(path, frame).drop(bounds, strict=False)
            _check(path, frame, "decision", pl.col("decision").is_in(["predict", "defer"]))
            _check(path, frame, "label", pl.col("label").is_in(list(classes)))
            _check(path, frame, "score", pl.col("score").is_between(0, 1))
            _check(path, frame, "item", pl.col("item") != "")
            for name in frame.filter(pl.col("decision") == "defer")["item"]:
                if name in seen:
                    raise CredalError(
                        f"{path}: the item {name!r} comes twice. To fix: one row an item."
                    )
                seen.add(name)
            yield frame


def _typed(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    numbers = frame.with_columns(pl.col(*NUMBERS).cast(pl.Float64, strict=False))
    texts = ["item", "label", "decision"]
    frame = numbers.with_columns(pl.col(*texts).cast(pl.String))
    if path.suffix.lower() in (".csv", ".tsv"):
        suspects = pl.col("item", "label").str.starts_with("'")
        if frame.select(suspects.any()).row(0) != (False, False):
            frame = frame.with_columns(
                pl.col("item", "label").map_elements(unescaped, return_dtype=pl.String)
            )
    return frame


def _check(path: Path, frame: pl.DataFrame, column: str, ok: pl.Expr) -> None:
    good = frame.select(ok.fill_null(False)).to_series()
    if not good.all():
        row = (~good).arg_max() or 0
        raise CredalError(
            f"{path} is not what predict wrote with this run: {column} {shown(frame[column][row])} "
            f"of item {shown(frame['item'][row])}. To fix: predict again."
        )
