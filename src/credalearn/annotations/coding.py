"""Columns of text as codes: ten million names are hashed, and each name is cleaned once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Codes = NDArray[np.int32]
_FEW_BITS = 20  # a table of 4 MB
_BITS = 7  # 128 parts: ten million rows of two million names are 80,000 of 16,000 each


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of names.

    Args:
        codes: Of each row, which name, from 0 in the order of first appearance; −1 where empty.
        names: Those names, trimmed and normalised (NFC).
        trimmed: How many values had spaces around them.
        normalised: How many values were not in Unicode's normal form.
    """

    codes: Codes
    names: pl.Series
    trimmed: int = 0
    normalised: int = 0

    def column(self, name: str, codes: Codes, given: pl.Series) -> pl.Series:
        """The names of these codes, null for −1; the given column itself where nothing changed."""
        changed = self.trimmed or self.normalised or len(codes) < len(given)
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

    Rows are the same name if two hashes of 64 bits are: one decides, the other makes sure. It takes
    1 s for two million names on ten million rows in any order, where a table of categories takes 5.
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
        normalised=_rows(codes, had_other_form),
    )


def _first_row(column: pl.Series) -> NDArray[np.uint32]:
    """Of each row, the first that holds the same."""
    hashes = column.hash(1).to_numpy()
    found = None
    if len(hashes) > 100_000:
        found = _first_of_few(hashes)
        found = _first_by_parts(hashes) if found is None else found
    if found is None:
        found = _first_of(hashes)
    check = column.hash(2).to_numpy()
    if (check != check[found]).any():  # once in 10^7 tables of two million names
        found = _first_of(column)
    return found


def _first_of(
    values: NDArray[np.uint64] | pl.Series, rows: NDArray[np.uint32] | None = None
) -> NDArray[np.uint32]:
    """Of each value, the first row with the same; ``rows`` are 0, 1, … unless given."""
    frame = pl.DataFrame({"value": values})
    row = pl.int_range(pl.len(), dtype=pl.UInt32) if rows is None else pl.lit(pl.Series(rows))
    first = frame.with_columns(row=row).select(pl.col("row").min().over("value"))
    found: NDArray[np.uint32] = first.to_series().to_numpy()
    return found


def _first_of_few(hashes: NDArray[np.uint64]) -> NDArray[np.uint32] | None:
    """The same for a few thousand names, by a table of their hashes' first bits; None for more."""
    sample = hashes[:: len(hashes) // 10_000]
    if len(np.unique(sample)) > len(sample) / 3:
        return None
    bits = hashes >> np.uint64(64 - _FEW_BITS)
    rows = np.zeros(1 << _FEW_BITS, np.uint32)
    rows[bits[::-1]] = np.arange(len(bits) - 1, -1, -1, dtype=np.uint32)  # the last one stays
    found: NDArray[np.uint32] = rows[bits]
    odd = np.flatnonzero(hashes[found] != hashes)  # two names with the same bits
    if len(odd):
        same = np.flatnonzero(np.isin(bits, np.unique(bits[odd])))
        found[same] = _first_of(hashes[same], same.astype(np.uint32))
    return found


def _first_by_parts(hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The same, part by part of the hashes, each small enough for the processor's cache.

    In one piece, two million names in any order take twice as long.
    """
    part = (hashes >> np.uint64(64 - _BITS)).astype(np.uint8)
    order = np.argsort(part, kind="stable").astype(np.uint32)  # by counting, as they are bytes
    ordered = hashes[order]
    edges = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=1 << _BITS))])
    found = np.empty(len(hashes), np.uint32)

    def fill(start: int, end: int) -> None:
        if start < end:
            found[order[start:end]] = _first_of(ordered[start:end], order[start:end])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, edges[:-1], edges[1:]))
    return found


def _rows(codes: Codes, changed: pl.Series) -> int:
    """How many rows hold one of the changed names."""
    if not changed.any():
        return 0
    return int(
        np.bincount(codes, minlength=len(changed))[changed.fill_null(False).to_numpy()].sum()
    )
