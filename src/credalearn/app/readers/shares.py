"""Tables with one row an item and one column a class: counts of votes, or probabilities."""

import polars as pl

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.places import refuse
from credalearn.app.annotations.raw import Kind, Raw, check_classes
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table
from credalearn.app.readers.shapes import Layout, layout


def recognize(content: Table | Records, asked: Asked, *, kind: Kind) -> str | None:
    """Counts: whole numbers, as many votes for each item, or columns called so; else decimals."""
    if isinstance(content, Records) or asked.label is not None:
        return None
    found = layout(content, asked)
    if found is None or found.shape != kind:
        return None
    return _words(found, kind)


def read(content: Table | Records, asked: Asked, *, kind: Kind) -> Raw:
    """The columns of the classes; their names lose a prefix that all of them share."""
    assert isinstance(content, Table)
    found = layout(content, asked)
    if found is None:
        rule = "there is no column that names the item, or no columns of classes"
        refuse(content.path, "line 1", rule, fix="name the item's column with --item")
    names = dict(zip(_classes(found.others), found.others, strict=True))
    check_classes(content.path, "line 1", names)
    columns = (pl.col(column).alias(name) for name, column in names.items())
    frame = content.take(pl.col(found.item).alias("item"), *columns)
    rows = frame.height
    while frame.height and not any(str(each or "").strip() for each in frame.row(-1)):
        frame = frame.head(-1)  # blank lines at the end
    words = f"{_words(found, kind)} ({content.words}){found.aside}"
    return Raw(kind, frame, rows, content.place, words, item=found.item)


def _words(found: Layout, kind: Kind) -> str:
    return f"one row an item {found.item!r}, one column a class with its {kind}"


def _classes(columns: tuple[str, ...]) -> list[str]:
    """``p_cat``, ``p_dog`` are the classes cat and dog."""
    first = columns[0].split("_")[0] + "_"
    if all(name.startswith(first) and len(name) > len(first) for name in columns):
        return [name.removeprefix(first) for name in columns]
    return list(columns)
