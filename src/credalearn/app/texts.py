"""Texts of items: which columns contain them, and several columns as one text.

Shapes: N items.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from credalearn._checks import folded
from credalearn.app.sources import texts

# In the order in which they are tried.
_NAMES = ("text", "message", "sentence", "tweet", "comment", "utterance", "post", "document")


def find_texts(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that are called like a text: ``text``, ``data.text``, ``text.post``; or none."""
    for name in _NAMES:
        found = [each for each in columns if folded(each.split(".")[-1]) == name]
        found = found or [each for each in columns if folded(each.split(".")[0]) == name]
        if found:
            return tuple(found)
    return ()


def join_texts(table: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """The text of each row (N,): that of the one column, or of several after their names."""
    columns = [column.fill_null("") for column in texts(table).get_columns()]
    if len(columns) == 1:
        found: Iterable[str] = columns[0]
    else:
        rows = zip(*columns, strict=True)
        found = ("\n".join(f"{n}: {x}" for n, x in zip(names, row, strict=True)) for row in rows)
    return np.array([*found, ""], dtype=object)[:-1]


def text_digests(values: Iterable[str]) -> list[str]:
    """SHA-256 of each text."""
    return [hashlib.sha256(text.encode()).hexdigest() for text in values]
