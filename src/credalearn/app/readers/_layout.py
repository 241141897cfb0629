"""Tables with one row per item: whether their columns are annotators or classes."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from credalearn._checks import folded
from credalearn.app import column_names
from credalearn.app._json_file import Record
from credalearn.app.readers._content import Content
from credalearn.app.sources import numbers

# Columns that are often next to votes and are not votes.
_BESIDE = (
    *("text", "title", "description", "comment", "url", "image", "split", "fold", "group", "gold"),
    *("goldlabel", "hardlabel", "majority", "consensus", "truth", "date", "time", "timestamp"),
    *("index", "source", "total", "sum", "nvotes", "numvotes", "patient", "patientid"),
)
_PEOPLE = (*column_names.ANNOTATOR, "ann", "person")
_COUNTS = ("count", "counts", "n", "num", "votes", "vote")
_PROBABILITIES = ("p", "prob", "probability", "share", "soft")

Shape = Literal["wide", "counts", "probabilities", "ambiguous"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The column of the item, the other columns, and what these are."""

    item: str
    others: tuple[str, ...]
    shape: Shape


def find_layout(content: Content) -> Layout | None:
    """The layout by the names and the first rows; None if there is none to see."""
    if not content.columns or content.options.label is not None:
        return None
    if any(map(_is_nested, content.records)):
        return None
    first = content.columns[0]
    item = content.column("item", column_names.ITEM)
    if item is None and content.head[first].n_unique() == content.head.height > 0:
        item = first
    if item is None:
        return None
    others = tuple(name for name in content.columns if name != item and folded(name) not in _BESIDE)
    people = tuple(name for name in others if _begins(name, _PEOPLE))
    if len(people) >= 2:
        return Layout(item, people, "wide")
    shape = _shape(content.head, others)
    return None if shape is None else Layout(item, others, shape)


def _shape(head: pl.DataFrame, others: tuple[str, ...]) -> Shape | None:
    if len(others) < 2 or not head.height:
        return None
    if column_names.find(others, (*column_names.ANNOTATOR, *column_names.LABEL)):
        return None  # a long table that lacks a column
    cells = pl.concat([head[name].alias("cell") for name in others]).str.strip_chars()
    filled = cells.filter(cells != "")
    found = numbers(filled).drop_nulls()
    if len(found) > len(filled) / 2:
        if all(_begins(name, _COUNTS) for name in others):
            return "counts"
        if all(_begins(name, _PROBABILITIES) for name in others) or (found != found.round()).any():
            return "probabilities"
    if len(found) < 0.9 * len(filled) or not len(filled):
        return "wide" if filled.n_unique() <= max(20, len(filled) / 4) else None
    if (found < 0).any():  # no count is negative
        return "wide"
    # All cells at once: 20,000 columns one by one take seconds.
    sums = numbers(cells).fill_null(0).to_numpy().reshape(len(others), head.height).sum(0)
    varied = head.select(others).n_unique() > 1 and head.height > 2
    # The same number of votes for each item, distributed differently: no labels sum up like that.
    same = len(filled) == len(cells) and len(set(sums.tolist())) == 1 and sums[0] > 1
    return "counts" if same and varied else "ambiguous"


def _is_nested(record: Record) -> bool:
    return any(isinstance(value, dict | list) for value in record.value.values())


def _begins(name: str, words: tuple[str, ...]) -> bool:
    """Whether a column is called like one of the words, followed by a number or a name."""
    start = name.casefold().replace("-", "_").replace(" ", "_").split("_")[0].rstrip("0123456789")
    return start in words and folded(name) != start


def need_layout(content: Content) -> Layout:
    """The layout, which must be there."""
    found = find_layout(content)
    if found is None:
        content.source.refuse(
            "a table with one row per item needs a column that names the item and two or more "
            "columns of votes",
            fix="name the item's column with --item",
        )
    return found
