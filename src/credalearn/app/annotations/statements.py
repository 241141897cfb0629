"""Votes with statements next to them: percentages, a second class and impossible classes."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from credalearn._formats import many
from credalearn.app.annotations.table import Annotations
from credalearn.labels import from_statements, statement_conflicts
from credalearn.sets import CredalSet

# How ``from_statements`` reads what contradicts itself.
_READ_AS = {
    "second is top": "the second percentage is dropped",
    "second is larger": "both stay",
    "named but impossible": "the percentage stays",
    "above 100 %": "scaled to 100",
    "no other class, below 100 %": "scaled to 100",
}


def as_stated(annotations: Annotations, items: Sequence[str]) -> CredalSet:
    """Labels of these items; any distribution where nobody stated anything."""
    asked = pl.DataFrame({"item": items}, schema={"item": pl.String}).with_row_index("place")
    table = asked.join(annotations.table, on="item", how="left")
    places = table["place"].cast(pl.Int64).to_numpy()
    return from_statements(*_columns(table), classes=annotations.classes, items=places)


def count_conflicts(annotations: Annotations) -> str:
    """How often statements contradict themselves, and how that is read; empty if never."""
    if annotations.contains != "statements":
        return ""
    table = annotations.table
    found = statement_conflicts(*_columns(table), classes=annotations.classes)
    said = [f"{why} {count:,} ({_READ_AS[why]})" for why, count in found.items() if count]
    return f"contradictions in {many(len(table), 'statement')}: {', '.join(said)}" if said else ""


def _columns(table: pl.DataFrame) -> list[Any]:
    """The columns as ``from_statements`` takes them."""
    names, percents = table.select("label", "second"), table.select("^.*_percent$").fill_null(0)
    impossible = [each.split(";") if each else [] for each in table["impossible"]]
    (top, second), (most, next_most) = (each.iter_columns() for each in (names, percents))
    return [top.to_list(), most.to_numpy(), second.to_list(), next_most.to_numpy(), impossible]
