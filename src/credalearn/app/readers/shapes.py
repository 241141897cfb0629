"""Tables with one row an item: whether their columns are annotators or classes."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from credalearn._checks import folded
from credalearn.app.annotations import columns as known
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.numbers import parsed
from credalearn.app.annotations.text_tables import Table

# Columns that stand beside votes and are none.
_BESIDE = (
    *("text", "title", "description", "comment", "url", "image", "split", "fold", "group", "gold"),
    *("goldlabel", "hardlabel", "majority", "consensus", "truth", "date", "time", "timestamp"),
    *("index", "source", "total", "sum", "nvotes", "numvotes", "patient", "patientid"),
    *("unnamed:0", "indexlevel0"),  # pandas' numbers of the rows, saved twice or in Parquet
)
_PEOPLE = (*known.ANNOTATOR, "ann", "person")
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
        numbers: A column that is left out, as it numbers the rows; None if there is none.
    """

    item: str
    others: tuple[str, ...]
    shape: Shape
    numbers: str | None = None

    @property
    def aside(self) -> str:
        """What is to be said of a column that is left out."""
        left = f"; left out: {self.numbers!r}, which numbers the rows"
        return "" if self.numbers is None else left


def layout(table: Table, asked: Asked) -> Layout | None:
    """The layout by names and by the first 200 rows; None if there is none to see."""
    item = known.item_column(table, asked) or _first_if_distinct(table)
    if item is None:
        return None
    others = tuple(n for n in table.columns if n != item and folded(n) not in _BESIDE)
    people = tuple(name for name in others if _begins(name, _PEOPLE))
    if len(people) >= 2:
        return Layout(item, people, "wide")
    numbers = table.columns[0] if _numbers_rows(table, item, asked) else None
    others = tuple(name for name in others if name != numbers)
    shape = _shape(table, others)
    return None if shape is None else Layout(item, others, shape, numbers)


def _shape(table: Table, others: tuple[str, ...]) -> Shape | None:
    if len(others) < 2 or not table.head.height:
        return None
    if known.find(others, known.NAMED_ANNOTATOR) or known.find(others, known.LABEL):
        return None  # a long table that lacks a column; a doctor and a nurse may be two columns
    cells = pl.concat([table.head[name].alias("cell") for name in others])
    filled = cells.drop_nulls().str.strip_chars()
    filled = filled.filter(filled != "")
    numbers = parsed(filled).drop_nulls()
    mostly = len(filled) > 0 and len(numbers) > 0.5 * len(filled)
    finite = numbers.filter(numbers.is_finite())
    if mostly and all(_begins(name, _COUNTS) for name in others):
        return "counts"
    decimals = (finite != finite.round()).any()
    if mostly and (decimals or all(_begins(name, _PROBABILITIES) for name in others)):
        return "probabilities"
    if len(numbers) < 0.9 * len(filled) or not len(filled):
        return "wide" if _few_labels(filled) else None
    if len(filled) < len(cells):
        return "ambiguous"  # no vote of that annotator, or a 0 that a pivot table leaves out
    rows = table.head.select(pl.sum_horizontal(parsed(table.head[name]) for name in others))
    sums = rows.to_series()
    varied = table.head.select(others).n_unique() > 1
    # As many votes for each item, shared out differently: nobody's labels sum up like that.
    same = sums.n_unique() == 1 and float(sums[0] or 0) > 1 and varied and table.head.height > 2
    return "counts" if same else "ambiguous"


def _begins(name: str, words: tuple[str, ...]) -> bool:
    """Whether a column is called like one of the words, with a number or a name behind it."""
    start = name.casefold().replace("-", "_").replace(" ", "_").split("_")[0].rstrip("0123456789")
    return start in words and folded(name) != start


def _first_if_distinct(table: Table) -> str | None:
    """The first column, if it names each row differently."""
    first = table.head[table.columns[0]].drop_nulls()
    return table.columns[0] if len(first) and first.n_unique() == table.head.height else None


def _numbers_rows(table: Table, item: str, asked: Asked) -> bool:
    """Whether the first column counts 0, 1, 2, … or 1, 2, 3, …, and is nothing asked for."""
    first = table.columns[0]
    if first == item or first in (asked.classes or ()):
        return False
    cells = table.head[first].drop_nulls().str.strip_chars()
    found = parsed(cells.filter(cells != "")).to_list()
    # In two rows 0 and 1 may be votes.
    return len(found) > 2 and found in ([*range(len(found))], [*range(1, len(found) + 1)])


def _few_labels(filled: pl.Series) -> bool:
    """Cells that are nearly all different are free text, not labels."""
    return filled.n_unique() <= max(20, len(filled) / 4)
