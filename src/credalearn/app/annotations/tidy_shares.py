"""Counts, probabilities and stated bounds into the canonical table: checked row by row."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn._checks import nearest
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.coding import coded, label_names, mended
from credalearn.app.annotations.numbers import as_numbers, parsed
from credalearn.app.annotations.places import refuse, shown
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.table import Annotations, Source

_ROUNDED = 0.02  # how far rounding to two digits takes the sum of a row from 1
_EXACT = 1e-6
_FIRST_ROWS = 200  # in which features are told from probabilities


def tidy_shares(raw: Raw, path: Path, format: str, asked: Asked) -> Annotations:  # noqa: A002
    """The canonical table of counts or probabilities.

    Raises:
        CredalError: If an item has no name or stands twice with different numbers, or a number is
            negative or not finite, a count is not whole, or probabilities do not sum to 1.
    """
    given = [name for name in raw.frame.columns if name != "item"]
    classes = _ordered(path, given, asked)
    if raw.kind == "probabilities" and asked.format is None and asked.classes is None:
        _refuse_features(raw, path, classes)
    blank = 0.0 if raw.kind == "counts" else None
    numbers = np.empty((raw.frame.height, len(classes)))
    for i, name in enumerate(classes):
        numbers[:, i] = as_numbers(raw.frame[name], path, raw.place, name, blank=blank)
    _check_range(raw, path, classes, numbers)
    items = coded(raw.frame["item"])
    changed = mended(items)
    if raw.kind == "probabilities":
        numbers, rescaled = _summing_to_one(raw, path, numbers)
        changed["probabilities rescaled to sum to 1"] = rescaled
    if (items.codes < 0).any():
        where = raw.place(int((items.codes < 0).argmax()))
        refuse(path, where, "the row names no item", fix="name the item, or delete the row")
    kept = _once(raw, path, items.codes, items.names, numbers)
    left_out = {**raw.left_out, "repeated": len(numbers) - len(kept)}
    if raw.kind == "counts":
        left_out["without votes"] = int((numbers[kept].sum(1) == 0).sum())
        kept = kept[numbers[kept].sum(1) > 0]
    if not len(kept):
        refuse(path, "", "no row holds a vote", fix="export the annotations again")
    numbers = numbers[kept]
    _check_not_one(path, classes, numbers, asked)
    names = items.names.gather(items.codes[kept])
    table = pl.DataFrame(
        [names.alias("item"), *(pl.Series(name, numbers[:, i]) for i, name in enumerate(classes))]
    )
    source = _source(raw, path, format, asked, left_out, changed)
    return Annotations(raw.kind, tuple(names.to_list()), tuple(classes), table, source)


def tidy_bounds(raw: Raw, path: Path, format: str, asked: Asked) -> Annotations:  # noqa: A002
    """The canonical table of statements "at least so much of this class".

    Raises:
        CredalError: If a bound leaves [0, 1], two differ, or those of an item sum above 1.
    """
    frame = raw.frame
    blank = frame.select(pl.all_horizontal(pl.all().is_null() | (pl.all() == ""))).to_series()
    bounds = as_numbers(
        frame["at_least"].fill_null("").set(blank, "0"), path, raw.place, "at_least"
    )
    items, labels = coded(frame["item"]), coded(frame["label"])
    changed = mended(items, labels)
    names, label_codes, relabeled = label_names(labels)
    changed |= relabeled
    kept = np.flatnonzero(~blank.to_numpy())
    for name, codes in (("item", items.codes), ("label", label_codes)):
        wrong = kept[codes[kept] < 0]
        if len(wrong):
            where = raw.place(int(wrong[0]))
            refuse(path, where, f"the statement names no {name}", fix=f"name the {name}")
    wrong = kept[~((bounds[kept] >= 0) & (bounds[kept] <= 1))]
    if len(wrong):
        value = bounds[wrong[0]]
        fix = f"write {value / 100:.2f} for {value:g} %" if 1 < value <= 100 else "correct it"
        rule = f"at_least must lie in [0, 1]; this is {value:g}"
        refuse(path, raw.place(int(wrong[0])), rule, fix=fix)
    classes = tuple(sorted(names)) if asked.classes is None else asked.classes
    if asked.classes is None and len(classes) < 2:
        rule = f"every statement is about one class, {shown(classes[0] if classes else '')}"
        refuse(path, "", rule, fix="name all classes with --classes")
    unknown = [i for i, name in enumerate(names) if name not in classes]
    if unknown:
        where = raw.place(int(np.argmax(label_codes == unknown[0])))
        guess = nearest(names[unknown[0]], classes)
        rule = f"{shown(names[unknown[0]])} is not among the classes asked for"
        refuse(path, where, rule, fix=f"write {guess!r}" if guess else "add it to the classes")
    cells = items.codes.astype(np.int64) * len(names) + label_codes
    once = _first_of_each(raw, path, kept, cells, bounds)
    sums = np.bincount(items.codes[once], bounds[once], minlength=len(items.names))
    if (sums > 1 + _EXACT).any():
        worst = int((sums > 1 + _EXACT).argmax())
        rows = [row for row in once if items.codes[row] == worst]
        said = ", ".join(f"{bounds[r]:g} {names[label_codes[r]]}" for r in rows[:6])
        rule = (
            f"the bounds of item {shown(items.names[worst])} contradict each other: they sum to "
            f"{sums[worst]:.3g}, above 1 ({said})"
        )
        refuse(path, raw.place(int(rows[-1])), rule, fix="lower one of them")
    table = pl.DataFrame(
        {
            "item": items.names.gather(items.codes[once]),
            "label": [names[code] for code in label_codes[once]],
            "at_least": bounds[once],
        }
    )
    left_out = {"repeated": len(kept) - len(once)}
    source = _source(raw, path, format, asked, left_out, changed)
    return Annotations("bounds", tuple(items.names.to_list()), classes, table, source)


def _source(
    raw: Raw,
    path: Path,
    format: str,  # noqa: A002
    asked: Asked,
    left_out: Mapping[str, int],
    changed: Mapping[str, int],
) -> Source:
    """Where it was read, with what was left out and changed at least once."""
    left, turned = ({why: n for why, n in each.items() if n} for each in (left_out, changed))
    return Source(
        path, format, raw.words, raw.rows, left, turned, unused=asked.unsure, item=raw.item
    )


def _ordered(path: Path, given: list[str], asked: Asked) -> list[str]:
    """The columns of the classes: as they stand, or as asked for."""
    if asked.classes is None:
        if len(given) < 2:
            rule = f"there is one class only, {shown(given[0] if given else '')}"
            refuse(path, "line 1", rule, fix="give one column a class")
        return given
    if set(asked.classes) != set(given):
        odd = sorted(set(asked.classes) ^ set(given))[0]
        guess = nearest(odd, given if odd in asked.classes else asked.classes)
        rule = f"{shown(odd)} is not both a column and a class asked for"
        refuse(path, "line 1", rule, fix=f"write {guess!r}" if guess else "name every class column")
    return list(asked.classes)


def _refuse_features(raw: Raw, path: Path, classes: list[str]) -> None:
    """Refuse numbers that were taken for probabilities and in most rows do not sum to 1 or 100.

    A row that lacks a number counts for nothing, and so does a column without any.
    """
    head = raw.frame.head(_FIRST_ROWS).select(classes)
    numbers = [column for column in map(parsed, head) if column.count()]
    if not numbers:
        return
    sums = np.column_stack([column.fill_null(np.nan).to_numpy() for column in numbers]).sum(1)
    off = ~((np.abs(sums - 1) <= _ROUNDED) | (np.abs(sums - 100) <= 100 * _ROUNDED))
    off &= ~np.isnan(sums)
    if off.sum() > len(off) / 2:
        row = int(off.argmax())
        rule = f"this looks like features, not votes: the numbers of the row sum to {sums[row]:.4g}"
        fix = "give it to `train` with --features; if they are votes, say --format probabilities"
        refuse(path, raw.place(row), f"{rule}, and probabilities to 1", fix=fix)


def _check_range(raw: Raw, path: Path, classes: list[str], numbers: NDArray[np.float64]) -> None:
    """Every number is finite and not negative; a count is whole."""
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    rule = f"{raw.kind} must be finite numbers of 0 or more"
    if raw.kind == "counts" and not wrong.any():
        wrong = numbers != np.round(numbers)
        rule = "counts must be whole numbers"
    if wrong.any():
        row, column = (int(each) for each in np.argwhere(wrong)[0])
        held = f"{shown(classes[column])} is {numbers[row, column]:g}"
        fix = "correct it, or say --format probabilities" if "whole" in rule else "correct it"
        refuse(path, raw.place(row), f"{rule}; {held}", fix=fix)


def _summing_to_one(
    raw: Raw, path: Path, numbers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int]:
    """Rows that sum to 1 but for rounding, made exact; how many were rounded."""
    sums = numbers.sum(1)
    wrong = np.abs(sums - 1) > _ROUNDED
    if wrong.any():
        row = int(wrong.argmax())
        percent = abs(sums[row] - 100) < 100 * _ROUNDED
        rule = f"probabilities must sum to 1; these sum to {sums[row]:.4g}"
        fix = "divide percentages by 100" if percent else "give all classes of the row"
        refuse(path, raw.place(row), rule, fix=fix)
    rounded = np.abs(sums - 1) > _EXACT
    return numbers / sums[:, None], int(rounded.sum())


def _once(
    raw: Raw,
    path: Path,
    items: NDArray[np.int32],
    names: pl.Series,
    numbers: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The first row of each item; a later one must hold the same numbers."""
    first = np.full(len(names), len(items))
    first[items[::-1]] = np.arange(len(items) - 1, -1, -1)
    differs = (numbers != numbers[first[items]]).any(1)
    if differs.any():
        row = int(differs.argmax())
        name = shown(names[int(items[row])])
        before = raw.place(int(first[items[row]]))
        rule = f"item {name} stands twice with different numbers, first in {before}"
        refuse(path, raw.place(row), rule, fix="keep one row an item")
    return np.sort(first)


def _first_of_each(
    raw: Raw,
    path: Path,
    rows: NDArray[np.int64],
    cells: NDArray[np.int64],
    bounds: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The first statement about each item and class; a later one must say the same."""
    first: dict[int, int] = {}
    for row in rows.tolist():
        before = first.setdefault(int(cells[row]), row)
        if bounds[before] != bounds[row]:
            rule = (
                f"two bounds for the same item and class differ: {bounds[before]:g} "
                f"({raw.place(before)}) and {bounds[row]:g}"
            )
            refuse(path, raw.place(row), rule, fix="keep one of them")
    return np.array(sorted(first.values()), dtype=np.int64)


def _check_not_one(
    path: Path, classes: list[str], numbers: NDArray[np.float64], asked: Asked
) -> None:
    """Some row must hold another class than the others."""
    used = (numbers > 0).any(0)
    if asked.classes is None and used.sum() < 2:
        name = shown(classes[int(used.argmax())])
        rule = f"every vote is for one class, {name}: there is nothing to learn"
        refuse(path, "", rule, fix="export all classes")
