"""Tables with one row an item: whether their columns are annotators or classes."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from credalearn.annotations import columns as known
from credalearn.annotations.asked import Asked
from credalearn.annotations.numbers import parsed
from credalearn.annotations.places import folded
from credalearn.annotations.tables import Table

# Columns that stand beside votes and are none.
_BESIDE = (
    *("text", "title", "description", "comment", "url", "image", "split", "fold", "group", "gold"),
    *("goldlabel", "hardlabel", "majority", "consensus", "truth", "date", "time", "timestamp"),
    *("index", "source", "total", "sum", "nvotes", "numvotes", "patient", "patientid"),
)
_PEOPLE = tuple(sorted(set(known.ANNOTATOR) | {"ann", "person", "expert", "doctor", "radiologist"}))
_COUNTS = ("count", "counts", "n", "num", "votes", "vote")
_PROBABILITIES = ("p", "prob", "probability", "share", "soft")

Shape = Literal["wide", "counts", "probabilities", "ambiguous"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of such a table are.

    Args:
        item: The column that names the item.
        others: Annotators or classes.
        shape: Which of both.
    """

    item: str
    others: tuple[str, ...]
    shape: Shape


def layout(table: Table, asked: Asked) -> Layout | None:
    """The layout by names and by the first 200 rows; None if there is none to see."""
    item = known.item_column(table, asked) or _first_if_distinct(table)
    if item is None:
        return None
    others = tuple(n for n in table.columns if n != item and folded(n) not in _BESIDE)
    people = tuple(name for name in others if _begins(name, _PEOPLE))
    if len(people) >= 2:
        return Layout(item, people, "wide")
    if len(others) < 2 or not table.head.height:
        return None
    if known.find(others, known.ANNOTATOR) or known.find(others, known.LABEL):
        return None  # a long table that lacks a column
    cells = pl.concat([table.head[name].alias("cell") for name in others])
    filled = cells.drop_nulls().str.strip_chars()
    filled = filled.filter(filled != "")
    numbers = parsed(filled).drop_nulls()
    mostly = len(filled) > 0 and len(numbers) > 0.5 * len(filled)
    finite = numbers.filter(numbers.is_finite())
    if mostly and all(_begins(name, _COUNTS) for name in others):
        return Layout(item, others, "counts")
    decimals = (finite != finite.round()).any()
    if mostly and (decimals or all(_begins(name, _PROBABILITIES) for name in others)):
        return Layout(item, others, "probabilities")
    if len(numbers) < 0.9 * len(filled) or not len(filled):
        return _if_few_labels(Layout(item, others, "wide"), filled)
    if len(filled) < len(cells):
        return Layout(item, others, "wide")  # an empty cell is no vote; a count would be 0
    rows = table.head.select(pl.sum_horizontal(parsed(table.head[name]) for name in others))
    sums = rows.to_series()
    varied = table.head.select(others).n_unique() > 1
    # As many votes for each item, shared out differently: nobody's labels sum up like that.
    same = sums.n_unique() == 1 and float(sums[0] or 0) > 1 and varied and table.head.height > 2
    return Layout(item, others, "counts" if same else "ambiguous")


def _begins(name: str, words: tuple[str, ...]) -> bool:
    """Whether a column is called like one of the words, with a number or a name behind it."""
    start = name.casefold().replace("-", "_").replace(" ", "_").split("_")[0].rstrip("0123456789")
    return start in words and folded(name) != start


def _first_if_distinct(table: Table) -> str | None:
    """The first column, if it names each row differently."""
    first = table.head[table.columns[0]].drop_nulls()
    return table.columns[0] if len(first) and first.n_unique() == table.head.height else None


def _if_few_labels(found: Layout, filled: pl.Series) -> Layout | None:
    """Cells that are nearly all different are free text, not labels."""
    return found if filled.n_unique() <= max(20, len(filled) / 4) else None
