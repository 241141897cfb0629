"""Votes with statements next to them: percentages, a second class and impossible classes."""

from typing import Any

import polars as pl

from credalearn._formats import many
from credalearn.app.annotations.table import Annotations

# How ``from_statements`` reads what contradicts itself.
_READ_AS = {
    "second is top": "the second percentage is dropped",
    "second is larger": "both stay",
    "named but impossible": "the percentage stays",
    "above 100 %": "scaled to 100",
    "no other class, below 100 %": "scaled to 100",
}


def count_conflicts(annotations: Annotations) -> str:
    """How often statements contradict themselves, and how that is read; empty if never."""
    if annotations.contains != "statements":
        return ""
    from credalearn.labels import statement_conflicts  # torch, which plain votes do not need

    table = annotations.table
    found = statement_conflicts(*columns_of(table), classes=annotations.classes)
    said = [f"{why} {count:,} ({_READ_AS[why]})" for why, count in found.items() if count]
    return f"contradictions in {many(len(table), 'statement')}: {', '.join(said)}" if said else ""


def columns_of(table: pl.DataFrame) -> list[Any]:
    """The columns as ``from_statements`` takes them."""
    names, percents = table.select("label", "second"), table.select("^.*_percent$").fill_null(0)
    impossible = [each.split(";") if each else [] for each in table["impossible"]]
    (top, second), (most, next_most) = (each.iter_columns() for each in (names, percents))
    return [top.to_list(), most.to_numpy(), second.to_list(), next_most.to_numpy(), impossible]
