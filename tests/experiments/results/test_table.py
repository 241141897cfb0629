"""The table type, as Markdown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn_experiments.results.table import Column, Table, Value, markdown


@given(
    st.lists(st.none() | st.integers(-30, 30), min_size=1, max_size=6),
    st.sampled_from(["higher", "lower"]),
)
def test_marks_are_those_of_counting(means: list[int | None], better: Any) -> None:
    """Best is what no different value beats, second what just one does; one alone is neither."""
    column = Column("x", better, percent=False)
    rows: dict[str, dict[str, Value]] = {
        str(i): {"x": None if m is None else (m / 20, None)} for i, m in enumerate(means)
    }
    lines = markdown(Table("", [column], rows)).splitlines()
    cells = [line.split(" | ")[1][:-2] for line in lines[2:]]
    printed = {float(f"{m / 20:.1f}") for m in means if m is not None}
    alone = means.count(None) == len(means) - 1
    for mean, cell in zip(means, cells, strict=True):
        if mean is None:
            assert cell == "–"
            continue
        own = float(f"{mean / 20:.1f}")
        beaten_by = sum(x > own if better == "higher" else x < own for x in printed)
        mark = "" if alone else {0: "**", 1: "<u>"}.get(beaten_by, "")
        assert cell[:3].startswith(mark or tuple("−0123456789"))


def test_rounded_zero_has_no_minus_sign() -> None:
    table = Table("", [Column("x")], {"a": {"x": (-1e-6, None)}, "b": {"x": (0, None)}})
    assert markdown(table).count("**0.0**") == 2


@pytest.mark.parametrize(
    ("name", "shown"), [("a|b", r"a\|b"), ("a\nb", "a b"), (r"\input{x}", r"\\input{x}")]
)
def test_names_are_escaped(name: str, shown: str) -> None:
    table = Table("", [Column("x")], {name: {"x": (0.5, 0.1)}}, corner=name)
    lines = markdown(table).splitlines()
    assert lines[2].startswith(f"| {shown} | 50.0 ± 10.0 |")
