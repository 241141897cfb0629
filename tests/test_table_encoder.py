"""TableEncoder: missing values, categories, kinds of tables, and refusals."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError
from credalearn._table_encoder import Table, TableEncoder

NUMBERS = st.one_of(st.none(), st.just(float("nan")), st.floats(-1e300, 1e300), st.booleans())
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab"]))


def fit(X: Any) -> TableEncoder:
    return TableEncoder.fit(Table.of(X))


def transform(encoder: TableEncoder, X: Any) -> np.ndarray:
    return encoder.transform(Table.of(X))


def slow(fitted: Any, values: Any) -> np.ndarray:
    """One column encoded value by value."""

    def missing(value: Any) -> bool:
        return value is None or value == "" or value != value

    known = [value for value in fitted if not missing(value)]
    if not known:
        return np.zeros((len(values), 1))
    if isinstance(known[0], str):
        kinds = [None] * any(map(missing, fitted)) + sorted(set(known))
        return np.array([[(None if missing(v) else v) == kind for kind in kinds] for v in values])
    mean = sum(value / len(known) for value in known)
    rows = [[mean if missing(value) else float(value), float(missing(value))] for value in values]
    return np.array(rows if len(known) < len(fitted) else [row[:1] for row in rows])


@given(data=st.data(), num_fitted=st.integers(1, 12), num_new=st.integers(1, 6))
def test_encodes_like_a_slow_reference(data: st.DataObject, num_fitted: int, num_new: int) -> None:
    kinds = data.draw(st.lists(st.sampled_from([NUMBERS, TEXTS]), min_size=1, max_size=4))
    draw = [
        (n, [data.draw(st.lists(k, min_size=n, max_size=n)) for k in kinds])
        for n in (num_fitted, num_new)
    ]
    tables = []
    for rows, columns in draw:
        table = np.empty((rows, len(kinds)), dtype=object)
        for number, column in enumerate(columns):
            table[:, number] = column
        tables.append(table)
    encoder = fit(tables[0])
    for table in tables:
        found = transform(encoder, table)
        wanted = np.hstack([slow(*pair) for pair in zip(tables[0].T, table.T, strict=True)])
        assert found.shape == (len(table), len(encoder.names))
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def frames() -> list[Any]:
    content: dict[str, list[Any]] = {
        "age": [30, None, 50, 40],
        "site": ["London", "Oslo", None, "London"],
        "smokes": [True, False, None, True],
        "empty": [None] * 4,
    }
    plain = pd.DataFrame(content)
    kinds = {"age": "Int64", "site": "category", "smokes": "boolean"}
    polars = pl.DataFrame(content)
    texts = plain.astype({"site": "string"}).fillna({"site": ""})
    return [
        *(plain, plain.astype(kinds), texts, plain.astype(object)),
        *(polars, polars.with_columns(pl.col("site").cast(pl.Categorical))),
        polars.with_columns(pl.col("age").cast(pl.Decimal(5, 2))),
    ]


def test_all_kinds_of_frames_give_the_same_features() -> None:
    for frame in frames():
        encoder = fit(frame)
        names = ["age", "age missing", "site missing", "site=London", "site=Oslo"]
        assert encoder.names == [*names, "smokes", "smokes missing", "empty"]
        assert not encoder.is_plain
        wanted: Any = [
            [30, 0, 0, 1, 0, 1, 0, 0],
            [40, 1, 0, 0, 1, 0, 0, 0],
            [50, 0, 1, 0, 0, 2 / 3, 1, 0],
            [40, 0, 0, 1, 0, 1, 0, 0],
        ]
        np.testing.assert_allclose(transform(encoder, frame), wanted)


def test_plain_numbers_stay_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    encoder = fit(X)
    assert encoder.is_plain
    assert transform(encoder, X) is X
    np.testing.assert_array_equal(transform(encoder, pd.DataFrame(X)), X)
    for table in (X, X.astype(object)):
        fills: Any = [column.fill for column in fit(table).columns]
        np.testing.assert_allclose(fills, X.mean(0))
    assert transform(fit(X > 0), X > 0).tolist() == (X > 0).tolist()
    (huge,) = fit(np.full((9, 1), 1.7e308)).columns
    assert huge.fill == pytest.approx(1.7e308)


def test_rejects_free_text_as_a_category() -> None:
    names = np.array([[f"name {row}"] for row in range(900)], dtype=object)
    with pytest.raises(CredalError, match=r"'x0' has 900 different texts in 900 rows.*leave"):
        fit(names)
    assert len(fit(names[np.arange(900) % 100]).names) == 100
    with pytest.raises(CredalError, match="'x0' has 101 different texts in 900 rows"):
        fit(names[np.arange(900) % 101])
    with pytest.raises(CredalError, match="'x0' has 11 different texts in 20 rows"):
        fit(names[np.arange(20) % 11])
    assert len(fit(names[np.arange(20) % 10]).names) == 10
    assert len(fit(names[:19]).names) == 19


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0], [np.inf]], "'x0' must contain finite numbers, or NaN if missing; row 1 is inf"),
        ([[1], [10**400]], "finite numbers.*row 1 is inf"),
        ([["a"], ["b"], [3]], "'x0', row 0 is 'a' and row 2 is 3.0"),
        ([[1j]], "Complex data not supported"),
        ([1.0, 2.0], r"two dimensions.*\(2,\)"),
        (np.ones((0, 2)), r"0 sample\(s\)"),
        (np.ones((2, 0)), r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1 is required"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "different names"),
    ],
)
def test_rejects_bad_tables(X: Any, message: str) -> None:
    with pytest.raises(CredalError, match=message):
        fit(X)


@pytest.mark.parametrize(
    "value", [{"foo": "bar"}, date(2026, 1, 2), b"text", [1], np.timedelta64(3, "s"), (1, 2)]
)
def test_values_that_are_neither_strings_nor_numbers_are_type_errors(value: Any) -> None:
    column = pd.DataFrame({"a": pd.Series([None, value], dtype=object)})
    with pytest.raises(TypeError, match=r"'a', row 1.* must be .* string.* number") as found:
        fit(column)
    assert isinstance(found.value, CredalError)


def test_rejects_other_columns_than_in_training() -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0], "site": ["a", "b"]})
    encoder = fit(frame)
    for other in (frame[["site", "age"]], frame[["age"]], frame.rename(columns={"age": "Age"})):
        with pytest.raises(CredalError, match=r"columns used in training.* 'age', 'site'; got"):
            transform(encoder, other)
    assert transform(fit(frame.to_numpy()), frame).shape == (2, 3)
