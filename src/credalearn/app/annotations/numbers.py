"""Columns of text that must be numbers."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn.app.annotations.places import refuse, shown

_WHOLE = re.compile(r"[+-]?\d{1,15}\.0+")


def plain_number(label: str) -> str:
    """A whole number without its decimal zeros, as pandas writes them; other labels as they are.

    Example:
        >>> plain_number("1.0"), plain_number("1.5"), plain_number("v1.0")
        ('1', '1.5', 'v1.0')
    """
    return label.split(".")[0] if _WHOLE.fullmatch(label) else label


def parsed(column: pl.Series) -> pl.Series:
    """Numbers, with null where the text is none; a decimal comma is read where no point is."""
    text = column.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() > text.null_count():
        comma = text.str.contains(r"^[+-]?\d*,\d+$")
        numbers = pl.select(
            pl.when(comma)
            .then(text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False))
            .otherwise(numbers)
        ).to_series()
    return numbers


def as_numbers(
    column: pl.Series,
    path: Path,
    place: Callable[[int], str],
    name: str,
    *,
    blank: float | None = None,
    rows: pl.Series | None = None,
) -> NDArray[np.float64]:
    """The column as float64; what is no number is refused, an empty cell too unless it has a value.

    Raises:
        CredalError: With the place and the text of the first that is none.
    """
    numbers = parsed(column)
    wrong = numbers.is_null()
    if blank is not None:
        empty = column.is_null() | (column.cast(pl.String).str.strip_chars() == "")
        numbers, wrong = numbers.fill_null(blank), wrong & ~empty
    if wrong.any():
        position = int(wrong.arg_max() or 0)
        row = position if rows is None else int(rows[position])
        rule = f"{shown(name)} must be a number; this is {shown(column[position])}"
        refuse(path, place(row), rule, fix="write it as 0.25, or delete the row")
    return numbers.to_numpy()
