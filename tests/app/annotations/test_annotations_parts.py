"""The parts that readers are made of, against loops: codes, the canonical table, near names."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation_exports import clean
from credalearn._checks import edit_distance, nearest
from credalearn.app.annotations import Annotations, Source
from credalearn.app.annotations.coding import coded
from credalearn.errors import CredalError

TEXTS = st.text(st.sampled_from("ab \u0301e\u00e9\t1.0"), max_size=4)


@settings(max_examples=200)
@given(st.lists(st.none() | TEXTS, max_size=12))
def test_codes_are_those_of_a_loop(values: list[str | None]) -> None:
    found = coded(pl.Series(values, dtype=pl.String))
    names = list(dict.fromkeys(clean(value) for value in values if clean(value)))
    assert found.names.to_list() == names
    slow = [names.index(clean(value)) if clean(value) else -1 for value in values]
    assert found.codes.tolist() == slow


@pytest.mark.parametrize("num_names", [3, 150_000])
def test_codes_of_long_columns_are_those_of_a_loop(num_names: int) -> None:
    dice = np.random.default_rng(num_names)
    values = [f"name {n}" if n else None for n in dice.integers(0, num_names, 200_000)]
    found = coded(pl.Series(values, dtype=pl.String))
    position: dict[str | None, int] = {None: -1}
    for value in values:
        position.setdefault(value, len(position) - 1)
    assert found.codes.tolist() == [position[value] for value in values]
    assert found.names.to_list() == [name for name in position if name is not None]


def test_the_canonical_table_checks_what_it_is_given() -> None:
    source = Source(Path("votes.csv"), "long", "by hand", 1)
    table = pl.DataFrame({"item": ["x"], "annotator": ["a"], "label": ["cat"], "weight": [1.0]})
    made = Annotations("votes", ("x",), ("cat", "dog"), table, source)
    assert made.counts().tolist() == [[1, 0]]
    assert made.annotators == ("a",)
    with pytest.raises(
        CredalError, match=r"every label of the table must be one of 'dog'; got 'cat'"
    ):
        Annotations("votes", ("x",), ("dog",), table, source)
    with pytest.raises(CredalError, match="every item of the table must be one of 'y'; got 'x'"):
        Annotations("votes", ("y",), ("cat",), table, source)
    with pytest.raises(CredalError, match="a table of bounds has the columns"):
        Annotations("bounds", ("x",), ("cat",), table, source)
    wrong = table.with_columns(weight=-1.0)
    with pytest.raises(
        CredalError, match=r"weight must be a number of 0 or more; item 'x' has -1.0"
    ):
        Annotations("votes", ("x",), ("cat",), wrong, source)


WORDS = st.text("abc", max_size=5)


@given(WORDS, WORDS)
def test_the_edit_distance_is_the_shortest_way(first: str, second: str) -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        best = min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))
        if len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0]:
            best = min(best, slow(a[2:], b[2:]) + 1)
        return best

    assert edit_distance(first, second, most=9) == slow(first, second)
    assert edit_distance(first, second, most=1) == min(slow(first, second), 2)


def test_the_nearest_name_is_only_suggested_when_it_is_near() -> None:
    assert nearest("itme", ["item", "label"]) == "item"
    assert nearest("weather", ["item", "label"]) is None
