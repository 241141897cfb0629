"""Columns of text as codes: ten million names are hashed, and each name is cleaned once."""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn.app.annotations.numbers import plain_number

Codes = NDArray[np.int32]
_NOT_A_LABEL = ("nan", "NaN", "<NA>")  # what software writes for "nothing", and no person does
# Zero-width space, word joiner, byte order mark, soft hyphen. Joiners that change letters stay.
_UNSEEN = re.compile("[\u200b\u2060\ufeff\u00ad]")


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of names.

    Args:
        codes: Of each row, which name, from 0 in the order of first appearance; −1 where empty.
        names: Those names, trimmed and normalized (NFC).
        trimmed: How many values had spaces around them.
        normalized: How many values were not in Unicode's normal form.
    """

    codes: Codes
    names: pl.Series
    trimmed: int = 0
    normalized: int = 0

    def column(self, name: str, codes: Codes, given: pl.Series) -> pl.Series:
        """The names of these codes, null for −1; the given column itself where nothing changed."""
        changed = self.trimmed or self.normalized or len(codes) < len(given)
        if not changed and (codes is self.codes or bool((codes == self.codes).all())):
            return given.cast(pl.String).alias(name)
        return taken(name, codes, self.names)


def taken(name: str, codes: Codes, names: pl.Series) -> pl.Series:
    """The names of these codes, null for −1."""
    rows = pl.Series(codes)
    if len(codes) and codes.min() < 0:
        rows = pl.select(pl.when(rows >= 0).then(rows)).to_series()
    return names.gather(rows).alias(name)


def coded(column: pl.Series) -> Coded:
    """The column's names and their codes.

    Rows are the same name if two hashes of 64 bits are: one decides, the other makes sure. On ten
    million rows of two million names it takes two thirds of the time of the texts themselves.
    """
    given = column.cast(pl.String)
    first = _first_row(given)
    starts = np.flatnonzero(first == np.arange(len(given), dtype=np.uint32))
    code_of = np.empty(len(given), np.int32)
    code_of[starts] = np.arange(len(starts), dtype=np.int32)
    codes = code_of[first]
    texts = given.gather(starts)
    trimmed = texts.str.strip_chars()
    # Characters that take a byte each are in normal form.
    plain = bool((trimmed.str.len_bytes() == trimmed.str.len_chars()).all())
    names = trimmed if plain else trimmed.str.normalize("NFC")
    kept = names.is_not_null() & (names != "")
    if kept.all() and (texts == names).all():
        return Coded(codes, names)
    unique = names.filter(kept).unique(maintain_order=True)
    position = {name: i for i, name in enumerate(unique.to_list())}
    lookup = np.array([position.get(name, -1) for name in names.to_list()], np.int32)
    had_spaces, had_other_form = (texts != trimmed) & kept, trimmed != names
    return Coded(
        lookup[codes] if len(lookup) else codes,
        unique,
        trimmed=_rows(codes, had_spaces),
        normalized=_rows(codes, had_other_form),
    )


def label_names(labels: Coded) -> tuple[list[str], Codes, dict[str, int]]:
    """Labels without unseen marks, with 1.0 as 1 and software's words for nothing as empty.

    Returns:
        The names, of each row which of them, and how many rows were changed, by how.
    """
    given = labels.names.to_list()
    seen = [visible(name) for name in given]
    plain = [plain_number(name) for name in seen]
    names = [name for name in dict.fromkeys(plain) if name and name not in _NOT_A_LABEL]
    position = {name: i for i, name in enumerate(names)}
    if names == given:
        return names, labels.codes, {}
    lookup = np.array([*(position.get(name, -1) for name in plain), -1], np.int32)
    changed = {}
    steps = {
        "unseen marks taken out": (given, seen),
        "numbers such as 1.0 read as 1": (seen, plain),
    }
    for how, (before, after) in steps.items():
        differs = np.array([*(a != b for a, b in zip(before, after, strict=True)), False])
        changed[how] = int(differs[labels.codes].sum())
    return names, lookup[labels.codes], changed


def visible(name: str) -> str:
    r"""A name without marks that nobody sees, which would make two classes of one.

    Example:
        >>> visible("ca\u200bt")
        'cat'
    """
    return _UNSEEN.sub("", name).strip()


def mended(*columns: Coded) -> dict[str, int]:
    """How many values were changed without loss, by how."""
    return {
        "spaces trimmed": sum(column.trimmed for column in columns),
        "Unicode normalized (NFC)": sum(column.normalized for column in columns),
    }


def _first_row(column: pl.Series) -> NDArray[np.uint32]:
    """Of each row, the first that holds the same."""
    found = _first_of(column.hash(1))
    check = column.hash(2).to_numpy()
    if (check != check[found]).any():  # once in 10^7 tables of two million names
        found = _first_of(column)
    return found


def _first_of(values: pl.Series) -> NDArray[np.uint32]:
    rows = pl.DataFrame({"value": values}).with_row_index("row")
    found: NDArray[np.uint32] = rows.select(pl.col("row").min().over("value"))["row"].to_numpy()
    return found


def _rows(codes: Codes, changed: pl.Series) -> int:
    """How many rows hold one of the changed names."""
    if not changed.any():
        return 0
    return int(
        np.bincount(codes, minlength=len(changed))[changed.fill_null(False).to_numpy()].sum()
    )
