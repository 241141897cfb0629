"""One vote an annotator and item: repeats are left out, and changes refused or the last taken."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn.app.annotations.asked import Repeats
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw

Codes = NDArray[np.int32]
Rows = NDArray[np.int64]


def one_vote_each(
    raw: Raw,
    path: Path,
    kept: Rows,
    codes: tuple[Codes, Codes, Codes],
    names: tuple[pl.Series, pl.Series, list[str]],
    repeats: Repeats,
) -> tuple[Rows | None, dict[str, int]]:
    """Which rows count, None for all, and how many others there are, by why.

    Args:
        raw: What was read.
        path: Of the file.
        kept: Of each row, its place in ``raw``.
        codes: Item, annotator and label of each row.
        names: Those that the codes number.
        repeats: Whether an annotator who votes differently on an item is refused, or the last vote
            in the file counts.

    Raises:
        CredalError: If an annotator votes twice on an item and differently, and that is refused.
    """
    item, who, label = codes
    ends = _first_and_last(item, who)
    if ends is None:
        return None, {}
    first, last = ends
    if repeats == "refuse":
        differs = np.flatnonzero(label != label[first])
        if len(differs):
            _refuse_change(raw, path, kept, codes, names, first, differs)
    counts = last if repeats == "last" else first
    replaced = int((label != label[counts]).sum())
    once = np.flatnonzero(counts == np.arange(len(item)))
    again = len(item) - len(once) - replaced
    return once, {"repeated": again, "replaced by the annotator's last answer": replaced}


def _first_and_last(item: Codes, who: Codes) -> tuple[Rows, Rows] | None:
    """Of each row the first and the last by its annotator on its item; None if nobody repeats."""
    everyone = np.arange(len(item))
    if not len(item) or who.max() < 0:
        return None
    pair = item.astype(np.int64) * (int(who.max()) + 1) + who
    pair[who < 0] = -1 - everyone[who < 0]  # nobody knows whether these are the same person
    if pl.Series(pair).n_unique() == len(pair):  # three times as fast as sorting
        return None
    order = np.argsort(pair, kind="stable")
    begins = np.r_[True, np.diff(pair[order]) != 0]
    ends = np.r_[begins[1:], True]
    group = np.cumsum(begins) - 1
    first, last = np.empty_like(order), np.empty_like(order)
    first[order], last[order] = order[begins][group], order[ends][group]
    return first, last


def _refuse_change(
    raw: Raw,
    path: Path,
    kept: Rows,
    codes: tuple[Codes, Codes, Codes],
    names: tuple[pl.Series, pl.Series, list[str]],
    first: Rows,
    differs: Rows,
) -> None:
    """Refuse with the first change in the file."""
    item, who, label = codes
    row = int(differs[0])
    one, two = (
        f"{shown(names[2][label[each]])} ({raw.where(int(kept[each]))})"
        for each in (first[row], row)
    )
    more = f", and {len(differs) - 1:,} more such votes" if len(differs) > 1 else ""
    rule = (
        f"annotator {shown(names[1][int(who[row])])} votes twice on item "
        f"{shown(names[0][int(item[row])])} and differently: {one} and {two}{more}"
    )
    fix = (
        "say --repeats last if the last answer in the file counts, keep the one that does, or "
        "name the columns with --item and --annotator"
    )
    if raw.apart is not None:
        fix = f"say --item {shlex.quote(raw.apart)}, which differs from task to task, or, if they "
        fix += "are about one item, --repeats last if the last answer in the file counts"
    refuse(path, raw.where(int(kept[row])), rule, fix=fix)
