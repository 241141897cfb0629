"""Columns of a table as numbers: missing values filled, categories one-hot."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any, Self

import numpy as np

from credalearn._formats import listed, shown
from credalearn.errors import CredalError

_MOST_VALUES = 100  # different texts of a category column; more are free text or names
_MANY_ROWS = 20  # from here on, texts that differ in most rows are free text or names
_NUMBERS = (Real, Decimal, np.bool_)
_FIX = "correct the value, or leave the column out"


class _ValueKindError(CredalError, TypeError):
    """A value that is neither a string nor a number; scikit-learn demands a TypeError."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An array or a data frame, opened: names of the columns, and float64 (N, D) or D columns."""

    names: list[str]
    data: np.ndarray | list[np.ndarray]

    @classmethod
    def of(cls, X: Any) -> Self:
        """Open a table; anything else is refused."""
        if hasattr(X, "columns"):
            columns = list(X.columns)
            names = [str(name) for name in columns]
            if len(set(names)) < len(names):
                raise CredalError(f"columns must have different names; got {listed(columns)}.")
            shape = (len(X), len(names))
            table = cls(names, [X[name].to_numpy() for name in columns])
        else:
            array = np.asarray(X)
            if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
                array = np.asarray(X, dtype=object)  # NumPy made texts of numbers
            if array.ndim != 2:
                texts = array.ndim == 1 and array.dtype.kind in "UO"
                fix = "For texts: encoder='tfidf'." if texts else "Reshape your data."
                raise CredalError(f"X must have two dimensions; got shape {array.shape}. {fix}")
            shape, is_numeric = array.shape, array.dtype.kind in "biuf"
            data = array.astype(np.float64, copy=False) if is_numeric else list(array.T)
            table = cls([f"x{number}" for number in range(array.shape[1])], data)
        for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
            if not count:
                raise CredalError(
                    f"X has 0 {what} (shape={shape}) while a minimum of 1 is required."
                )
        return table

    def __getitem__(self, rows: np.ndarray) -> "Table":
        array = isinstance(self.data, np.ndarray)
        return Table(self.names, self.data[rows] if array else [each[rows] for each in self.data])

    @property
    def is_plain(self) -> bool:
        """Whether all values are finite numbers."""
        return isinstance(self.data, np.ndarray) and bool(np.isfinite(self.data).all())

    def columns(self, names: list[str]) -> Iterator[np.ndarray]:
        """Each column as ``column_values`` gives it; messages call them by these names."""
        columns = self.data.T if isinstance(self.data, np.ndarray) else self.data
        return map(column_values, names, columns)


def column_values(name: str, column: np.ndarray) -> np.ndarray:
    """A column (N,) as float64 with NaN where values are missing, or as texts with ""."""
    if column.dtype.kind == "c":
        raise CredalError(f"column {name!r}: Complex data not supported.")
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64, copy=False)
    else:
        cells = [_value(each) for each in column]
        if None in cells:
            row = cells.index(None)
            raise _ValueKindError(
                f"column {name!r}, row {row}: the argument must be a string or a number; got "
                f"{shown(column[row])}. To fix: {_FIX}."
            )
        is_text = np.array([isinstance(each, str) and each != "" for each in cells])
        if is_text.any():
            is_number = np.array([isinstance(each, float) and each == each for each in cells])
            if is_number.any():
                rows = sorted((int(is_text.argmax()), int(is_number.argmax())))
                texts = " and ".join(f"row {row} is {shown(cells[row])}" for row in rows)
                raise CredalError(
                    f"a column must contain only numbers or only texts; in {name!r}, {texts}. To "
                    f"fix: {_FIX}."
                )
            return np.array([each if isinstance(each, str) else "" for each in cells], dtype=object)
        values = np.array([nan if each == "" else each for each in cells], dtype=np.float64)
    if np.isinf(values).any():
        raise refusal(name, values, np.isinf(values), "finite numbers, or NaN if missing")
    return values


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


@dataclass(frozen=True, slots=True)
class Column:
    """How a column of numbers, or of texts if there are ``values``, becomes features."""

    # Missing numbers become the mean in training, which standardization maps to 0: they add
    # nothing to a linear score, and the indicator alone says what their absence means.

    name: str
    fill: float | None = None  # of numbers; None: training had no value, and the feature is 0
    indicator: bool = False  # training had missing numbers: one more feature, 1 for those
    values: tuple[str, ...] = ()  # one 0/1 feature per text seen in training; "" means missing

    @classmethod
    def fit(cls, name: str, values: np.ndarray) -> Self:
        """Learn from the column of the training items."""
        if values.dtype != object:
            known = values[~np.isnan(values)]
            mean = float((known / len(known)).sum()) if len(known) else None
            return cls(name, mean, 0 < len(known) < len(values))
        texts, num_rows = sorted(set(values)), len(values)
        count = len(texts) - ("" in texts)
        if count > _MOST_VALUES or (num_rows >= _MANY_ROWS and count > num_rows / 2):
            raise CredalError(
                f"column {name!r} has {count:,} different texts in {num_rows:,} rows, so it looks "
                f"like free text or names, not a category. To fix: leave it out (drop={name!r}), "
                f"convert it to numbers, or train on it alone (text={name!r} or encoder='tfidf')."
            )
        return cls(name, values=tuple(texts))

    @property
    def names(self) -> list[str]:
        """Names of the encoded features."""
        if not self.values:
            return [self.name, f"{self.name} missing"] if self.indicator else [self.name]
        return [f"{self.name}={text}" if text else f"{self.name} missing" for text in self.values]

    def encode(self, values: np.ndarray) -> np.ndarray:
        """A column (N,) as features (N, number of names); texts unknown from training give 0."""
        if self.values:
            if values.dtype != object:
                if not np.isnan(values).all():
                    raise refusal(self.name, values, ~np.isnan(values), "texts, as in training")
                values = np.full(len(values), "", dtype=object)
            place_of = {text: number for number, text in enumerate(self.values)}
            places = np.array([place_of.get(text, -1) for text in values])
            return np.asarray(places[:, None] == np.arange(len(place_of)))
        if self.fill is None:
            return np.zeros((len(values), 1))  # whatever it contains now
        if values.dtype == object:
            raise refusal(self.name, values, values != "", "numbers, as in training")
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing] if self.indicator else [filled])


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """How each column of a table becomes numbers, learned from the training items."""

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Learn fills, indicators and categories from the table of the training items."""
        if table.is_plain:  # ten times as fast
            array = np.asarray(table.data)
            means = np.full(len(array), 1 / len(array)) @ array  # a plain sum may exceed float64
            return cls(tuple(map(Column, table.names, means.tolist())))
        return cls(tuple(map(Column.fit, table.names, table.columns(table.names))))

    def transform(self, table: Table) -> np.ndarray:
        """The encoded features, float64 (N, D'), finite, in C order; the data where it is that."""
        own = [column.name for column in self.columns]
        arrays = [f"x{number}" for number in range(len(own))]  # an array has positions only
        if table.names != own and (
            len(table.names) != len(own) or arrays not in (table.names, own)
        ):
            raise CredalError(
                f"X must have the {len(own)} columns used in training, in this order: "
                f"{listed(own)}; got {listed(table.names)}. To fix: select these columns."
            )
        if self.is_plain and table.is_plain:
            return np.ascontiguousarray(table.data)
        pairs = zip(self.columns, table.columns(own), strict=True)
        parts = [column.encode(values) for column, values in pairs]
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)

    @property
    def names(self) -> list[str]:
        """Names of the D' encoded features, such as ``site=London`` and ``age missing``."""
        return [name for column in self.columns for name in column.names]

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers that are encoded as they are."""
        return all(each.fill is not None and not each.indicator for each in self.columns)
