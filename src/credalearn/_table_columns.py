"""A table read as columns of numbers or of texts, from an array or a data frame.

A column is float64 with NaN for missing values, or an array of texts with "" for missing values.
Shapes: N items, D columns.
"""

from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

import numpy as np

from credalearn._checks import refuse_masked
from credalearn._formats import listed, shown
from credalearn.errors import CredalError

_NUMBERS = (Real, Decimal, np.bool_)
_FIX = "correct the value, or leave the column out"


class _ValueKindError(CredalError, TypeError):
    """A value that is neither a string nor a number; scikit-learn demands a TypeError."""


def open_table(X: Any) -> tuple[list[str], np.ndarray | list[np.ndarray]]:
    """Names of the columns, and the table: float64 (N, D), or D columns (N,) of any type."""
    table: np.ndarray | list[np.ndarray]
    if hasattr(X, "columns"):
        names = list(X.columns)
        if len(set(map(str, names))) < len(names):
            raise CredalError(f"columns must have different names; got {listed(names)}.")
        shape, table = (len(X), len(names)), [X[name].to_numpy() for name in names]
    else:
        refuse_masked(X, name="X")
        array = np.asarray(X)
        if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
            array = np.asarray(X, dtype=object)  # NumPy made texts of numbers
        if array.ndim != 2:
            texts = array.ndim == 1 and array.dtype.kind in "UO"
            fix = "For texts: encoder='tfidf'." if texts else "Reshape your data."
            raise CredalError(
                f"X must have two dimensions, items and features; got shape {array.shape}. {fix}"
            )
        shape, names = array.shape, default_names(array.shape[1])
        is_numeric = array.dtype.kind in "biuf"
        table = array.astype(np.float64, copy=False) if is_numeric else list(array.T)
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if not count:
            raise CredalError(f"X has 0 {what} (shape={shape}) while a minimum of 1 is required.")
    return [str(name) for name in names], table


def default_names(count: int) -> list[str]:
    """Names of the columns of an array, as scikit-learn has them."""
    return [f"x{number}" for number in range(count)]


def read_columns(names: list[str], table: np.ndarray | list[np.ndarray]) -> list[np.ndarray]:
    """The columns, each as float64 with NaN or as texts with ""; infinity is refused."""
    columns = table.T if isinstance(table, np.ndarray) else table
    found = [_values(name, column) for name, column in zip(names, columns, strict=True)]
    for name, values in zip(names, found, strict=True):
        if values.dtype != object and np.isinf(values).any():
            raise refusal(name, values, np.isinf(values), "finite numbers, or NaN if missing")
    return found


def _values(name: str, column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64, copy=False)
    if column.dtype.kind == "c":
        raise CredalError(f"column {name!r}: Complex data not supported.")
    found = [_value(each) for each in column]
    if None in found:
        row = found.index(None)
        raise _ValueKindError(
            f"column {name!r}, row {row}: the argument must be a string or a number; got "
            f"{shown(column[row])}. To fix: {_FIX}."
        )
    is_text = np.array([isinstance(each, str) and each != "" for each in found])
    if not is_text.any():
        return np.array([nan if each == "" else each for each in found], dtype=np.float64)
    is_number = np.array([isinstance(each, float) and each == each for each in found])
    if is_number.any():
        rows = (int(is_text.argmax()), int(is_number.argmax()))
        texts = " and ".join(f"row {row} is {shown(found[row])}" for row in sorted(rows))
        raise CredalError(
            f"a column must contain only numbers or only texts; in {name!r}, {texts}. To fix: "
            f"{_FIX}."
        )
    return np.array([each if isinstance(each, str) else "" for each in found], dtype=object)


def _value(value: object) -> str | float | None:
    """A text, a number with NaN for missing, or None for anything else."""
    if isinstance(value, str):
        return str(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return nan
    if not isinstance(value, _NUMBERS) or isinstance(value, np.timedelta64):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number beyond float64
        return inf


def refusal(name: str, values: np.ndarray, wrong: np.ndarray, rule: str) -> CredalError:
    """The error about the first wrong value of a column."""
    row = int(wrong.argmax())
    value = shown(values[row : row + 1].tolist()[0])
    return CredalError(
        f"column {name!r} must contain {rule}; row {row} is {value}. To fix: {_FIX}."
    )
