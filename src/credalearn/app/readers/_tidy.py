"""Columns of text, as a reader found them, into ``Annotations``: cleaned and counted."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn._checks import nearest
from credalearn._formats import listed, shown
from credalearn.app.annotations.table import Annotations, Origin
from credalearn.app.readers._content import Raw
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.sources import Source, numbers
from credalearn.errors import CredalError

_Codes = NDArray[np.int64]
_FREE_TEXT = 1000  # classes, if a fifth of the votes or more name another one
_ROUNDED = 0.02  # how far rounding to two digits takes a sum of probabilities from 1
_NO_LABEL = ("", "nan", "NaN", "<NA>")  # what software writes for "nothing", and no person does
# Zero-width space, word joiner, byte order mark, soft hyphen. Joiners that change letters stay.
_UNSEEN = re.compile("[\u200b\u2060\ufeff\u00ad]")
_WHOLE = re.compile(r"[+-]?\d{1,15}\.0+")


def tidy(raw: Raw, source: Source, name: str, options: ReaderOptions) -> Annotations:
    """The annotations of what a reader found."""
    make = {"votes": _votes, "bounds": _bounds}.get(raw.kind, _shares)
    return make(raw, source, name, options)


def clean_label(label: str) -> str:
    """A label without spaces around it and invisible marks, in Unicode's form NFC; 1.0 is 1.

    Example:
        >>> clean_label(" ca\u200bt"), clean_label("1.0"), clean_label("v1.0")
        ('cat', '1', 'v1.0')
    """
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", label).strip())
    return text.split(".")[0] if _WHOLE.fullmatch(text) else text


def _votes(raw: Raw, source: Source, name: str, options: ReaderOptions) -> Annotations:
    frame = raw.frame
    items, item_names = _coded(frame["item"])
    people, person_names = _coded(frame["annotator"])
    labels, label_names = _coded(frame["label"], _label_or_none)
    nameless = (items < 0) & (labels >= 0)
    if nameless.any():
        fix = "name the item, or pass --item COLUMN"
        _refuse(raw, source, int(nameless.argmax()), "the vote names no item", fix)
    left_out = Counter(raw.left_out)
    left_out[raw.empty] += int(((labels < 0) & (items >= 0)).sum())
    kept = np.flatnonzero(labels >= 0)
    kept = _once(raw, source, kept, (items, people, labels), options, left_out)
    unsure = {clean_label(each) for each in options.unsure}
    used = label_names.gather(np.unique(labels[kept])).to_list()
    classes = _classes(raw, source, [each for each in used if each not in unsure], options, kept)
    said = pl.Series([None if each in unsure else each for each in label_names], dtype=pl.String)
    label = said.gather(labels[kept])
    left_out["unsure"] += label.null_count()
    if label.null_count() == len(label):
        reasons = ", ".join(f"{count:,} {why}" for why, count in left_out.items() if count)
        source.refuse(
            f"no vote is left of {_rows(raw):,} answers ({reasons or 'there are none'})",
            fix="export answered tasks, or pass --label COLUMN",
        )
    table = pl.DataFrame(
        {
            "item": item_names.gather(items[kept]),
            "annotator": _names_or_null(person_names, people[kept]),
            "label": label,
            "weight": _weights(raw, source)[kept],
        }
    )
    notes = raw.notes
    unused = [each for each in options.unsure if clean_label(each) not in used]
    if unused:
        notes = (*notes, f"no answer is {listed(unused)}, which --unsure names")
    origin = _origin(raw, source, name, left_out, notes)
    return Annotations("votes", tuple(item_names), classes, table, origin)


def _coded(
    column: pl.Series, clean: Callable[[str], str | None] | None = None
) -> tuple[_Codes, pl.Series]:
    """Which name each row has, from 0 in the order of appearance and −1 for none; the names.

    Only distinct texts are cleaned: of ten million rows a few.
    """
    given = column.drop_nulls().unique(maintain_order=True)
    cleaned = given.str.strip_chars().str.normalize("NFC")
    if clean is not None:
        cleaned = pl.Series([clean(each) for each in given], dtype=pl.String)
    names = cleaned.filter(cleaned != "").unique(maintain_order=True)
    code = cleaned.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64).fill_null(-1)
    lookup = np.append(code.to_numpy(), -1)
    position = column.cast(pl.Enum(given)).to_physical().cast(pl.Int64).fill_null(-1)
    return lookup[position.to_numpy()], names


def _label_or_none(label: str) -> str | None:
    found = clean_label(label)
    return None if found in _NO_LABEL else found


def _once(
    raw: Raw,
    source: Source,
    kept: _Codes,
    codes: tuple[_Codes, _Codes, _Codes],
    options: ReaderOptions,
    left_out: Counter[str],
) -> _Codes:
    """One vote per annotator and item: repeats are left out, changes refused or the last used."""
    item, who, label = (code[kept] for code in codes)
    votes = pl.DataFrame({"row": kept, "item": item, "who": who, "label": label})
    named = votes.filter(pl.col("who") >= 0)  # unnamed votes may be of different people
    if not named.select(pl.struct("item", "who").is_duplicated().any()).item():
        return kept
    counted = pl.all().last() if options.repeats == "last" else pl.all().first()
    single = named.group_by("item", "who", maintain_order=True).agg(counted)
    both = named.join(single, on=["item", "who"], suffix="_counted")
    changed = both.filter(pl.col("label") != pl.col("label_counted")).sort("row")
    if options.repeats == "refuse" and len(changed):
        row, before = (int(changed[name][0]) for name in ("row", "row_counted"))
        frame = raw.frame
        _refuse(
            raw,
            source,
            row,
            f"annotator {shown(frame['annotator'][row])} votes twice on item "
            f"{shown(frame['item'][row])}: {shown(frame['label'][before])} ({raw.where(before)}) "
            f"and {shown(frame['label'][row])}",
            "pass --repeats last if the last answer counts, or --item COLUMN if the items differ",
        )
    left_out["replaced by the annotator's last answer"] += len(changed)
    left_out["repeated"] += len(named) - len(single) - len(changed)
    unnamed = votes.filter(pl.col("who") < 0)
    return np.sort(np.concatenate([single["row"].to_numpy(), unnamed["row"].to_numpy()]))


def _classes(
    raw: Raw, source: Source, seen: list[str], options: ReaderOptions, kept: _Codes
) -> tuple[str, ...]:
    """The classes, sorted or as asked for."""
    if options.classes is not None:
        classes = tuple(dict.fromkeys(map(clean_label, options.classes)))
        unknown = next((each for each in seen if each not in classes), None)
        if unknown is not None:
            row = next(
                i
                for i, each in enumerate(raw.frame["label"])
                if each and clean_label(each) == unknown
            )
            near = nearest(unknown, classes)
            fix = f"write {near!r}" if near else "add it to the classes, or to the unsure labels"
            _refuse(raw, source, row, f"{shown(unknown)} is none of {listed(classes)}", fix)
        return classes
    if len(seen) == 1:
        source.refuse(
            f"every vote is for one class, {shown(seen[0])}",
            fix="export all classes, or pass --label COLUMN",
        )
    if len(seen) > max(_FREE_TEXT, len(kept) / 5):
        source.refuse(
            f"{len(seen):,} different labels in {len(kept):,} votes are free text",
            fix="name the column of the class with --label",
        )
    return tuple(sorted(seen, key=_by_number))


def _by_number(name: str) -> tuple[bool, float, str]:
    """2 before 10, numbers before words."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _weights(raw: Raw, source: Source) -> NDArray[np.float64]:
    if "weight" not in raw.frame.columns:
        return np.ones(raw.frame.height)
    return _numbers(raw, source, "weight")


def _shares(raw: Raw, source: Source, name: str, options: ReaderOptions) -> Annotations:
    """Counts or probabilities: one row per item, one column per class."""
    given = [column for column in raw.frame.columns if column not in ("item", "row")]
    classes = list(options.classes or given)
    if set(classes) != set(given) or len(given) < 2:
        source.refuse(
            f"there must be two or more columns of classes, those that --classes names; got "
            f"{listed(given)}",
            fix="name every class column with --classes, and the item's with --item",
        )
    blank = 0.0 if raw.kind == "counts" else None
    values = np.column_stack([_numbers(raw, source, each, blank=blank) for each in classes])
    if raw.kind == "probabilities":
        sums = values.sum(1)
        off = ~(np.abs(sums - 1) <= _ROUNDED)
        if off.any():
            row = int(off.argmax())
            percent = abs(sums[row] - 100) < 100 * _ROUNDED
            fix = "divide percentages by 100" if percent else "name one column per class"
            rule = f"probabilities must sum to 1; these sum to {sums[row]:.4g}"
            _refuse(raw, source, row, rule, fix)
        values = values / sums[:, None]
    items, names = _coded(raw.frame["item"])
    if (items < 0).any():
        _refuse(raw, source, int((items < 0).argmax()), "the row names no item", "name the item")
    columns = {each: values[:, i] for i, each in enumerate(classes)}
    table = pl.DataFrame({"item": names.gather(items), **columns})
    kept = table.unique(maintain_order=True)
    again = kept["item"].is_duplicated()
    if again.any():
        twice = kept["item"][again.arg_max() or 0]
        row = int(np.flatnonzero((table["item"] == twice).to_numpy())[1])
        rule = f"the item {shown(twice)} comes twice with different numbers"
        _refuse(raw, source, row, rule, "keep one row per item")
    left_out = {**raw.left_out, "repeated": len(table) - len(kept)}
    if not kept.select(classes).sum().sum_horizontal().sum():
        source.refuse("no row contains a vote", fix="export the annotations again")
    origin = _origin(raw, source, name, left_out, raw.notes)
    return Annotations(raw.kind, tuple(names), tuple(classes), kept, origin)


def _bounds(raw: Raw, source: Source, name: str, options: ReaderOptions) -> Annotations:
    """Statements "at least so much of this class"."""
    bounds = _numbers(raw, source, "at_least")
    items, item_names = _coded(raw.frame["item"])
    labels, label_names = _coded(raw.frame["label"], _label_or_none)
    missing = (items < 0) | (labels < 0)
    if missing.any():
        rule = "a lower bound needs an item and a label"
        _refuse(raw, source, int(missing.argmax()), rule, "name them, or delete the row")
    classes = _classes(raw, source, list(label_names), options, np.arange(len(bounds)))
    table = pl.DataFrame(
        {
            "item": item_names.gather(items),
            "label": label_names.gather(labels),
            "at_least": bounds,
        }
    )
    kept = table.unique(maintain_order=True)
    again = kept.select(pl.struct("item", "label").is_duplicated()).to_series()
    if again.any():
        twice = kept.row(again.arg_max() or 0)
        rows = (table["item"] == twice[0]) & (table["label"] == twice[1])
        row = int(np.flatnonzero(rows.to_numpy())[1])
        rule = f"there are two bounds for item {shown(twice[0])} and class {shown(twice[1])}"
        _refuse(raw, source, row, rule, "keep one of them")
    left_out = {**raw.left_out, "repeated": len(table) - len(kept)}
    origin = _origin(raw, source, name, left_out, raw.notes)
    return Annotations("bounds", tuple(item_names), classes, kept, origin)


def _numbers(
    raw: Raw, source: Source, name: str, *, blank: float | None = None
) -> NDArray[np.float64]:
    """A column as float64; a text that is no number is refused, an empty cell unless it has one."""
    column = raw.frame[name]
    found = numbers(column)
    wrong = found.is_null()
    if blank is not None:
        empty = column.is_null() | (column.str.strip_chars() == "")
        found, wrong = found.fill_null(blank), wrong & ~empty
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        rule = f"{shown(name)} must be a number; got {shown(column[row])}"
        _refuse(raw, source, row, rule, "write it as 0.25, or delete the row")
    return found.to_numpy()


def _names_or_null(names: pl.Series, codes: _Codes) -> pl.Series:
    found = pl.Series(codes)
    return names.gather(pl.select(pl.when(found >= 0).then(found)).to_series())


def _rows(raw: Raw) -> int:
    return raw.frame.height + sum(raw.left_out.values())


def _origin(
    raw: Raw, source: Source, name: str, left_out: dict[str, int], notes: tuple[str, ...]
) -> Origin:
    counted = {why: count for why, count in left_out.items() if count}
    return Origin(source.path, name, raw.words, _rows(raw), counted, item=raw.item, notes=notes)


def _refuse(raw: Raw, source: Source, position: int, rule: str, fix: str) -> None:
    raise CredalError(f"{source.path}, {raw.where(position)}: {rule}. To fix: {fix}.")
