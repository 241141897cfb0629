"""The table type, as Markdown."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn_experiments.results.table import Column, Table, Value, markdown, page

TABLE = Table(
    "Main",
    [Column("ACC"), Column("ECE", "lower", digits=2), Column("net", percent=False, digits=0)],
    {
        "POCC": {"ACC": (0.8704, 0.004), "ECE": (0.029, 0.003), "net": (2, None)},
        "EDL": {"ACC": (0.8699, 0.0), "ECE": (0.0951, 0.003), "net": (-1, None)},
        "softmax": {"ACC": (0.8, 0.01), "net": (-3, None)},
    },
)


def test_markdown_table() -> None:
    assert markdown(TABLE) == (
        "| method | ACC (%) ↑ | ECE (%) ↓ | net ↑ |\n"
        "| :-- | --: | --: | --: |\n"
        "| POCC | **87.0** ± 0.4 | **2.90** ± 0.30 | **2** |\n"
        "| EDL | **87.0** ± 0.0 | <u>9.51</u> ± 0.30 | <u>−1</u> |\n"
        "| softmax | <u>80.0</u> ± 1.0 | – | −3 |\n"
    )


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
    cells = [
        line.split(" | ")[1][:-2] for line in markdown(Table("", [column], rows)).splitlines()[2:]
    ]
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


def test_a_page_separates_tables_from_notes() -> None:
    one, two = replace(TABLE, title="One"), replace(TABLE, title="Two")
    parts: list[Table | str] = [one, "a note", "another", two]
    shown = page(parts)
    assert shown.startswith("### One\n\n| method |")
    assert "−3 |\n\n- a note\n- another\n\n### Two\n\n| method |" in shown
