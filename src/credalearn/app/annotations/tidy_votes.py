"""Votes as a reader found them into the canonical table: cleaned, checked, counted."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn._checks import nearest
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.coding import Coded, coded, label_names, mended, taken, visible
from credalearn.app.annotations.numbers import as_numbers, plain_number
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.repeats import one_vote_each
from credalearn.app.annotations.table import Annotations, Known, Source

_FREE_TEXT = 1000  # classes, of which most are seen once


def tidy_votes(raw: Raw, path: Path, format: str, asked: Asked) -> Annotations:  # noqa: A002
    """The canonical table of votes.

    Raises:
        CredalError: If an item has no name, a label is not among the classes asked for, an
            annotator votes twice and differently and the last is not to count, no vote is left, or
            all are for one class.
    """
    frame = raw.frame
    with ThreadPoolExecutor(2) as pool:  # most of it runs outside Python
        given = [frame[name] for name in ("item", "annotator", "label")]
        items, annotators, labels = pool.map(coded, given)
    changed = mended(items, annotators, labels)
    names, label_codes, relabeled = label_names(labels)
    changed |= relabeled
    _check_items(raw, path, items.codes, label_codes)
    left_out = Counter(raw.left_out)
    empty = (label_codes < 0) & (items.codes >= 0)
    left_out["empty"] += int(empty.sum())
    kept = np.flatnonzero((label_codes >= 0) & (items.codes >= 0))
    unsure = np.isin(names, [_clean(each) for each in asked.unsure])
    weights = _weights(raw, path)
    if len(kept) == len(label_codes):
        item, who, label = items.codes, annotators.codes, label_codes
    else:
        item, who, label = items.codes[kept], annotators.codes[kept], label_codes[kept]
    found = (items.names, annotators.names, names)
    once, again = one_vote_each(raw, path, kept, (item, who, label), found, asked.repeats)
    left_out.update(again)
    if once is not None:
        kept, item, who, label = kept[once], item[once], who[once], label[once]
    weight = np.ones(len(kept)) if weights is None else weights[kept]
    left_out["unsure"] += int(unsure[label].sum())
    classes, class_of = _classes(raw, path, kept, names, unsure, label, asked)
    label = class_of[label]
    if not (label >= 0).any():
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
        rule = f"no vote is left of {raw.rows:,} answers ({reasons or 'there are none'})"
        refuse(path, "", rule, fix="export answered tasks, or name the column with --label")
    source = Source(
        path,
        format,
        raw.words,
        raw.rows,
        {reason: count for reason, count in left_out.items() if count},
        {how: count for how, count in changed.items() if count},
        unused=tuple(each for each in asked.unsure if _clean(each) not in names),
        unread=raw.unread,
        item=raw.item or asked.item,
        notes=raw.notes,
    )
    columns = [
        items.column("item", item, frame["item"]),
        annotators.column("annotator", who, frame["annotator"]),
        taken("label", label, pl.Series(classes, dtype=pl.String)),
        pl.Series("weight", weight),
    ]
    seen_items, item = _used(items, item)
    seen_annotators, who = _used(annotators, who)
    codes = {"item": item, "annotator": who, "label": label}
    known = Known(tuple(seen_annotators.to_list()), codes)
    seen = tuple(seen_items.to_list())
    return Annotations("votes", seen, classes, pl.DataFrame(columns), source, known)


def _clean(label: str) -> str:
    """A label that the user names, as labels in files are cleaned."""
    text = pl.Series([label]).str.strip_chars().str.normalize("NFC")[0]
    return plain_number(visible(text))


def _check_items(raw: Raw, path: Path, items: NDArray[np.int32], labels: NDArray[np.int32]) -> None:
    """A vote must be for some item; a row without both is a blank line."""
    nameless = (items < 0) & (labels >= 0)
    if nameless.any():
        where = raw.where(int(nameless.argmax()))
        fix = "name the item, or say with --item which column names it"
        refuse(path, where, "the vote names no item", fix=fix)


def _weights(raw: Raw, path: Path) -> NDArray[np.float64] | None:
    if "weight" not in raw.frame.columns:
        return None
    rows = raw.frame["row"] if "row" in raw.frame.columns else None
    numbers = as_numbers(raw.frame["weight"], path, raw.place, "weight", rows=rows)
    wrong = ~((numbers >= 0) & np.isfinite(numbers))
    if wrong.any():
        position = int(wrong.argmax())
        rule = f"a weight is a number of 0 or more; this is {numbers[position]}"
        refuse(path, raw.where(position), rule, fix="correct or delete the row")
    return numbers


def _classes(
    raw: Raw,
    path: Path,
    kept: NDArray[np.int64],
    names: list[str],
    unsure: NDArray[np.bool_],
    label: NDArray[np.int32],
    asked: Asked,
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The classes, sorted or as asked for, and of each label its class; −1 for the unsure."""
    used = np.bincount(label, minlength=len(names)) > 0
    seen = [name for i, name in enumerate(names) if used[i] and not unsure[i]]
    if asked.classes is None:
        classes = tuple(sorted(seen, key=_by_number))
        if len(classes) == 1:
            reasons = ", ".join(f"{count:,} {why}" for why, count in raw.left_out.items() if count)
            without = f" (left out: {reasons})" if reasons else ""
            rule = f"every vote is for one class, {shown(classes[0])}{without}"
            rule += ": there is nothing to learn"
            fix = "export all classes, or name the column of the label with --label"
            refuse(path, "", rule, fix=fix)
        if len(classes) > _FREE_TEXT and len(classes) > len(label) / 5:
            rule = f"{len(classes):,} different labels in {len(label):,} votes are free text"
            refuse(path, "", rule, fix="name the column of the class with --label")
    else:
        classes = tuple(dict.fromkeys(_clean(each) for each in asked.classes))
        strange = set(seen) - set(classes)
        unknown = [i for i, name in enumerate(names) if name in strange]
        if unknown:
            wrong = unknown[0]
            where = raw.where(int(kept[np.argmax(label == wrong)]))
            guess = nearest(names[wrong], classes)
            rule = f"{shown(names[wrong])} is not among the classes {listed(classes)}"
            fix = f"write {guess!r}" if guess else "add it to the classes, or to the unsure labels"
            fix += "" if guess else "; if a class was renamed, write its old name in the file"
            refuse(path, where, rule, fix=fix)
    position = {name: i for i, name in enumerate(classes)}
    lookup = [-1 if unsure[i] else position.get(name, -1) for i, name in enumerate(names)]
    return classes, np.array(lookup, np.int32)


def _by_number(name: str) -> tuple[bool, float, str]:
    """2 before 10, numbers before words."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _used(column: Coded, codes: NDArray[np.int32]) -> tuple[pl.Series, NDArray[np.int32]]:
    """The names that still occur, and the codes among them."""
    names = column.names
    if codes is column.codes:
        return names, codes
    used = np.bincount(codes[codes >= 0], minlength=len(names)) > 0
    lookup = np.append(np.cumsum(used) - 1, -1).astype(np.int32)
    return names.filter(pl.Series(used)), lookup[codes]
