"""Wide tables: one row an item, one column an annotator; an empty cell is no vote."""

import polars as pl

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.places import listed, refuse
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table
from credalearn.app.readers.shapes import Layout, layout


def recognize(content: Table | Records, asked: Asked) -> str | None:
    """One column an annotator, by their names or because the cells are labels."""
    if isinstance(content, Records) or asked.label is not None:
        return None
    found = layout(content, asked)
    if found is None or found.shape not in ("wide", "ambiguous"):
        return None
    if found.shape == "ambiguous":
        rule = "the columns could be annotators with numbers for labels, or counts by class"
        fix = "say --format wide or --format counts"
        refuse(content.path, "line 1", rule, fix=fix)
    return _words(found)


def read(content: Table | Records, asked: Asked) -> Raw:
    """One vote a filled cell."""
    assert isinstance(content, Table)
    found = layout(content, asked)
    if found is None:
        rule = "there is no column that names the item, or no columns of votes"
        refuse(content.path, "line 1", rule, fix="name the item's column with --item")
    table = content.take(
        pl.col(found.item).alias("\0item"), *(pl.col(each) for each in found.others)
    ).with_row_index("\0row")
    blank = pl.all_horizontal(
        (pl.col(each).fill_null("").str.strip_chars() == "") for each in found.others
    )
    table = table.filter(~(blank & (pl.col("\0item").fill_null("") == "")))
    # By rows, as a person reads: the votes of the first item first.
    long = (
        table.unpivot(found.others, index=["\0item", "\0row"])
        .sort("\0row", maintain_order=True)
        .rename({"\0item": "item", "variable": "annotator", "value": "label", "\0row": "row"})
    )
    empty = long["label"].fill_null("").str.strip_chars() == ""
    words = f"{_words(found)} ({content.words}){found.aside}"
    left_out = {"no vote in the cell": int(empty.sum())}
    votes, rows = long.filter(~empty), table.height
    return Raw("votes", votes, rows, content.place, words, left_out, item=found.item)


def _words(found: Layout) -> str:
    """The columns by name: where they are no people's, the user sees it."""
    return f"one row an item {found.item!r}, one column an annotator: {listed(found.others, 6)}"
