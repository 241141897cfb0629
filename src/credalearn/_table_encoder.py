"""Columns of a table as numbers: missing values filled, categories one-hot.

Shapes: N items, D columns, D' encoded features.
"""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Self

import numpy as np

from credalearn._formats import listed, shown
from credalearn._table_columns import default_names, open_table, read_columns, refusal
from credalearn.errors import CredalError

_MOST_VALUES = 100  # different texts of a category column; more are free text or names
_MANY_ROWS = 20  # from here on, texts that differ in most rows are free text or names


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers; missing values become ``fill``.

    The fill is the mean of the training values, which standardization maps to 0: a missing value
    adds nothing to a linear score, and the indicator alone says what its absence means.
    """

    name: str
    fill: float | None  # None: training had no value, and the feature is always 0
    indicator: bool  # training had missing values: one more feature, 1 where the value is missing

    def __post_init__(self) -> None:
        ok = self.fill is None or (type(self.fill) is float and isfinite(self.fill))
        if not (ok and type(self.name) is str and type(self.indicator) is bool):
            raise CredalError(f"a number column needs a finite fill; got {shown(self)}.")

    @property
    def names(self) -> list[str]:
        """Names of the encoded features."""
        return [self.name, f"{self.name} missing"] if self.indicator else [self.name]

    def encode(self, values: np.ndarray) -> np.ndarray:
        """A column (N,) as features (N, 1) or (N, 2)."""
        if self.fill is None:
            return np.zeros((len(values), 1))  # whatever it contains now
        if values.dtype == object:
            raise refusal(self.name, values, values != "", "numbers, as in training")
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing] if self.indicator else [filled])


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """A column of texts: one 0/1 feature per value seen in training, all 0 for other values."""

    name: str
    values: tuple[str, ...]  # sorted; "" means missing, where training had missing values

    def __post_init__(self) -> None:
        ok = type(self.name) is str and all(type(value) is str for value in self.values)
        if not (ok and self.values and list(self.values) == sorted(set(self.values))):
            raise CredalError(f"a category column needs sorted, different values; got {self}.")

    @property
    def names(self) -> list[str]:
        """Names of the encoded features."""
        return [f"{self.name}={text}" if text else f"{self.name} missing" for text in self.values]

    def encode(self, values: np.ndarray) -> np.ndarray:
        """A column (N,) as features (N, number of values)."""
        if values.dtype != object:
            if not np.isnan(values).all():
                raise refusal(self.name, values, ~np.isnan(values), "texts, as in training")
            values = np.full(len(values), "", dtype=object)
        position = {text: number for number, text in enumerate(self.values)}
        found = np.array([position.get(text, -1) for text in values])
        return np.asarray(found[:, None] == np.arange(len(self.values)))


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """How each column of a table becomes numbers, learned from the training items."""

    columns: tuple[NumberColumn | CategoryColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise CredalError("a table needs at least one column.")

    @classmethod
    def fit(cls, X: Any) -> Self:
        """Learn fills, indicators and categories from the table of the training items."""
        names, table = open_table(X)
        if isinstance(table, np.ndarray) and np.isfinite(table).all():  # ten times as fast
            means = np.full(len(table), 1 / len(table)) @ table  # a plain sum may exceed float64
            return cls(tuple(map(NumberColumn, names, means.tolist(), [False] * len(names))))
        return cls(tuple(map(_fitted, names, read_columns(names, table))))

    def transform(self, X: Any) -> np.ndarray:
        """The encoded features, float64 (N, D'), finite, in C order; X itself where it is that."""
        names, table = open_table(X)
        own = [column.name for column in self.columns]
        arrays = default_names(len(own))  # an array has positions only
        if names != own and (len(names) != len(own) or arrays not in (names, own)):
            raise CredalError(
                f"X must have the {len(own)} columns used in training, in this order: "
                f"{listed(own)}; got {listed(names)}. To fix: select these columns."
            )
        if isinstance(table, np.ndarray) and self.is_plain and np.isfinite(table).all():
            return np.ascontiguousarray(table)
        found = zip(self.columns, read_columns(own, table), strict=True)
        parts = [column.encode(values) for column, values in found]
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)

    @property
    def names(self) -> list[str]:
        """Names of the D' encoded features, such as ``site=London`` and ``age missing``."""
        return [name for column in self.columns for name in column.names]

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers that are encoded as they are."""
        numbers = (column for column in self.columns if isinstance(column, NumberColumn))
        plain = [column.fill is not None and not column.indicator for column in numbers]
        return len(plain) == len(self.columns) and all(plain)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain content for a JSON file."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The encoder with this content, checked."""
        try:
            columns = [
                CategoryColumn(**{**each, "values": tuple(each["values"])})
                if "values" in each
                else NumberColumn(**each)
                for each in content
            ]
            return cls(tuple(columns))
        except (CredalError, TypeError) as error:
            raise CredalError(
                f"the encoder of the table is damaged: {error} To fix: save the model again."
            ) from error


def _fitted(name: str, values: np.ndarray) -> NumberColumn | CategoryColumn:
    if values.dtype == object:
        texts, num_rows = sorted(set(values)), len(values)
        count = len(texts) - ("" in texts)
        if count > _MOST_VALUES or (num_rows >= _MANY_ROWS and count > num_rows / 2):
            raise CredalError(
                f"column {name!r} has {count:,} different texts in {num_rows:,} rows, so it looks "
                "like free text or names, not a category. To fix: leave the column out, convert it "
                "to numbers, or pass it alone with encoder='tfidf'."
            )
        return CategoryColumn(name, tuple(texts))
    known = values[~np.isnan(values)]
    if not len(known):
        return NumberColumn(name, None, False)
    mean = float((known / len(known)).sum())
    return NumberColumn(name, mean, len(known) < len(values))
