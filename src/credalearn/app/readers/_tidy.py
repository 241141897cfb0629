"""Columns of text, as a reader found them, into ``Annotations``: cleaned and counted."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn._checks import folded
from credalearn._formats import listed, many, shown
from credalearn.app.annotations.class_map import map_classes, parse_map
from credalearn.app.annotations.table import STATED, Annotations, Origin
from credalearn.app.readers._content import ROW, Raw
from credalearn.app.readers._label_checks import NO_VALUE, check_columns, check_labels
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.sources import numbers, texts

_Codes = NDArray[np.int64]
# Items, classes, the table, what was left out by reason, and notes.
_Tidy = tuple[tuple[str, ...], tuple[str, ...], pl.DataFrame, dict[str, int], tuple[str, ...]]
_ROUNDED = 0.02  # how far rounding to two digits takes a sum of probabilities from 1
_NO_LABEL = ("", "nan", "NaN", "<NA>")  # what software writes for "nothing", and no person does
# Zero-width space, word joiner, byte order mark, soft hyphen. Joiners that change letters stay.
_UNSEEN = re.compile("[\u200b\u2060\ufeff\u00ad]")
_WHOLE = re.compile(r"[+-]?\d{1,15}\.0+")
_CONTENT = (
    *("text", "message", "sentence", "tweet", "utterance", "document", "content", "context"),
    *("premise", "hypothesis"),  # no addresses of images: signed ones differ in every export
)
_INSIDE = ("data", "fields", "example", "meta", "input")  # where tools keep what people see


def tidy(raw: Raw, name: str, options: ReaderOptions) -> Annotations:
    """The annotations of what a reader found."""
    items = raw.frame["item"].str.strip_chars()
    if (items.str.len_bytes() != items.str.len_chars()).any():  # ASCII is in form NFC
        items = items.str.normalize("NFC")
    rows = raw.frame.select(items, row=pl.col(ROW).cast(pl.Int64)).drop_nulls()
    contents = _item_contents(raw, rows)  # first: votes on different items are no conflict
    groups = parse_map(options.map) if options.map else {}
    if groups and "top_percent" in raw.frame.columns:
        fix = "rename classes in the file, or read votes with format='long' and label='top'"
        raw.source.refuse("map= cannot change statements", fix=fix)
    make = {"votes": _votes, "bounds": _bounds}.get(raw.kind, _shares)
    reading = replace(options, classes=tuple(groups)) if groups else options
    names, classes, table, left_out, notes = make(raw, reading)
    source = Origin(
        raw.source.path,
        name,
        f"{raw.words} ({raw.source.words})",
        {why: count for why, count in left_out.items() if count},
        item=raw.item,
        notes=notes,
        contents=contents,
        tables=((raw.source, rows),),
        reading=options,
    )
    annotations = Annotations(raw.kind, names, classes, table, source)
    return map_classes(annotations, groups, options.classes) if groups else annotations


def clean_label(label: str) -> str:
    """A label without spaces around it and invisible marks, in Unicode's form NFC; 1.0 is 1."""
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", label).strip())
    return text.split(".")[0] if _WHOLE.fullmatch(text) else text


def _votes(raw: Raw, options: ReaderOptions) -> _Tidy:
    frame = raw.frame
    items, item_names = _coded(frame["item"])
    people, person_names = _coded(frame["annotator"])
    missing = {*_NO_LABEL, *map(clean_label, options.missing)}
    labels, label_names = _coded(frame["label"], missing)
    nameless = (items < 0) & (labels >= 0)
    if nameless.any():
        fix = "name the item, or pass item='COLUMN'"
        raw.refuse(int(nameless.argmax()), "the vote names no item", fix)
    left_out = Counter(raw.left_out)
    left_out[raw.empty] += int(((labels < 0) & (items >= 0)).sum())
    kept = np.flatnonzero(labels >= 0)
    unsure = {clean_label(each) for each in options.unsure}
    groups = parse_map(options.map) if options.map else {}
    first = dict[str, int]()  # labels of one class are one answer
    codes = [first.setdefault(groups.get(x, x), number) for number, x in enumerate(label_names)]
    stated, answers = pl.DataFrame(), np.array([*codes, -1])[labels]
    if "top_percent" in frame.columns:
        stated = _statements(raw, missing | unsure, set(label_names))
        answers = stated.with_columns(label=labels).hash_rows().to_numpy().astype(np.int64)
    kept = _once(raw, kept, (items, people, answers), options, left_out)
    if raw.empty == "empty cells" and options.classes is None:
        check_columns(raw, person_names.gather(people[kept]), label_names.gather(labels[kept]))
    used = label_names.gather(np.unique(labels[kept])).to_list()
    seen = [each for each in used if each not in unsure]
    if len(stated):
        stated = stated[kept]
        more = [name for each in stated["impossible"] for name in each.split(";") if name]
        seen = list(dict.fromkeys((*seen, *stated["second"].drop_nulls(), *more)))
    classes = _classes(raw, seen, options, len(kept))
    said = pl.Series([None if each in unsure else each for each in label_names], dtype=pl.String)
    label = said.gather(labels[kept])
    left_out["unsure"] += label.null_count()
    if label.null_count() == len(label):
        reasons = ", ".join(f"{count:,} {why}" for why, count in left_out.items() if count)
        number = frame.height + sum(raw.left_out.values())
        rule = f"no vote is left of {many(number, 'answer')} ({reasons})"
        raw.source.refuse(
            rule if number else "there are no answers",
            fix="export answered tasks, or pass label='COLUMN'",
        )
    weighted = "weight" in frame.columns
    weight = _numbers(raw, "weight")[:, 0] if weighted else np.ones(frame.height)
    table = pl.DataFrame(
        {
            "item": item_names.gather(items[kept]),
            "annotator": pl.Series([*person_names, None], dtype=pl.String)[people[kept]],
            "label": label,
            "weight": weight[kept],
        }
    ).hstack(stated)
    notes = raw.notes
    by_letters: dict[str, list[str]] = {}
    for each in classes if options.classes is None else ():
        by_letters.setdefault("".join(each.casefold().split()), []).append(each)
    if several := [listed(each) for each in by_letters.values() if len(each) > 1]:
        whole = [f"{','.join(each)}={each[-1]}" for each in by_letters.values()]
        how = f"to count them as one, pass map={' '.join(whole)!r}"
        if any(" " in each for each in whole):  # which part the groups of a map
            largest = max(whole, key=len)
            how = f"to count them as one, pass map={largest!r}, and name every other class likewise"
        if "top_percent" in frame.columns:  # statements take no map
            how = "write them alike to count them as one"
        names = "; ".join(several)
        notes = (*notes, f"classes that differ only in case or spaces: {names}; {how}")
    for each in classes if options.classes is None else ():
        if each.casefold() in NO_VALUE:
            notes = (*notes, f"class {shown(each)}: if it means 'no answer', pass missing={each!r}")
    unused = [each for each in options.unsure if clean_label(each) not in used]
    if unused:
        notes = (*notes, f"no answer is {listed(unused)}, which unsure= names")
    return (tuple(item_names.to_list()), classes, table, left_out, notes)


def _statements(raw: Raw, none: Collection[str], tops: Collection[str]) -> pl.DataFrame:
    """What is stated next to the top classes; "No" is no class unless it is a top class."""

    def name_of(row: int, text: str | None) -> str:
        name = clean_label(text or "")
        name = "" if name in none else name
        if name not in tops and ("," in name or name.startswith("[")):
            raw.refuse(row, f"{shown(name)} is not one class", "separate classes by ';'")
        return "" if name.casefold() == "no" and name not in tops else name

    percent = _numbers(raw, "top_percent", "second_percent", blank=0.0)
    if 0 < percent.max(initial=0) <= 1:
        raw.source.refuse("no percentage is above 1", fix="multiply shares by 100")
    second = [name_of(row, each) or None for row, each in enumerate(raw.frame["second"])]
    impossible = [
        ";".join(sorted({name_of(row, part) for part in re.split("[;|]", each or "")} - {""}))
        for row, each in enumerate(raw.frame["impossible"])
    ]
    columns = (percent[:, 0], second, percent[:, 1], impossible)
    return pl.DataFrame(columns, schema=dict(zip(STATED, (pl.Float64, pl.String) * 2, strict=True)))


def _coded(column: pl.Series, missing: Collection[str] | None = None) -> tuple[_Codes, pl.Series]:
    """Which name each row has, −1 for none; the names, as labels if ``missing`` is given."""
    given = column.drop_nulls().unique(maintain_order=True)
    if missing is not None:
        labels = [clean_label(each) for each in given]
        cleaned = pl.Series([None if x in missing else x for x in labels], dtype=pl.String)
    else:
        cleaned = given.str.strip_chars().str.normalize("NFC")
    position = column.cast(pl.Enum(given)).to_physical().cast(pl.Int64).fill_null(-1)
    if cleaned.equals(given) and "" not in given:
        return position.to_numpy(), given
    names = cleaned.filter(cleaned != "").unique(maintain_order=True)
    code = cleaned.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64).fill_null(-1)
    lookup = np.append(code.to_numpy(), -1)
    return lookup[position.to_numpy()], names


def _once(
    raw: Raw,
    kept: _Codes,
    codes: tuple[_Codes, _Codes, _Codes],
    options: ReaderOptions,
    left_out: Counter[str],
) -> _Codes:
    """One vote per annotator and item: repeats are left out, changes refused or the last used."""
    item, who, label = (code[kept] for code in codes)
    pair = item * (len(who) + 1) + who
    votes = pl.DataFrame({"row": kept, "pair": pair, "label": label})
    named = votes.filter(who >= 0)  # unnamed votes may be of different people
    if named["pair"].n_unique() == len(named):
        return kept
    counted = pl.all().last() if options.repeats == "last" else pl.all().first()
    single = named.group_by("pair", maintain_order=True).agg(counted)
    both = named.join(single, on="pair", suffix="_counted")
    changed = both.filter(pl.col("label") != pl.col("label_counted")).sort("row")
    if options.repeats == "refuse" and len(changed):
        row, before = (int(changed[name][0]) for name in ("row", "row_counted"))
        frame = raw.frame
        cells = frame.drop("item", "annotator", ROW)
        one, two = (" ".join(shown(x) for x in cells.row(n) if x) for n in (before, row))
        raw.refuse(
            row,
            f"annotator {shown(frame['annotator'][row])} votes twice on item "
            f"{shown(frame['item'][row])}: {one} ({raw.where(before)}) and {two}",
            "pass repeats='last' if the last answer counts, or item='COLUMN' if the items differ",
        )
    left_out["replaced by the annotator's last answer"] += len(changed)
    left_out["repeated"] += len(named) - len(single) - len(changed)
    unnamed = votes.filter(who < 0)
    return np.sort(np.concatenate([single["row"].to_numpy(), unnamed["row"].to_numpy()]))


def _classes(raw: Raw, seen: list[str], options: ReaderOptions, votes: int) -> tuple[str, ...]:
    """The classes, sorted or as asked for."""
    if options.classes is not None:
        classes = tuple(dict.fromkeys(map(clean_label, options.classes)))
        unknown = next((each for each in seen if each not in classes), None)
        if unknown is not None:
            row = next(
                i
                for name in ("label", "second", "impossible")
                if name in raw.frame.columns
                for i, each in enumerate(raw.frame[name])
                if each and unknown in map(clean_label, (each, *re.split("[;|]", each)))
            )
            fix = f"correct it, or leave it out with missing={unknown!r}"
            fix += "" if "top_percent" in raw.frame.columns else ", or give it a class with map="
            raw.refuse(row, f"{shown(unknown)} is none of {listed(classes)}", fix)
        return classes
    if len(seen) == 1:
        raw.source.refuse(
            f"every vote is for one class, {shown(seen[0])}",
            fix="export all classes, or pass label='COLUMN'",
        )
    check_labels(raw, seen, votes)
    value = dict(zip(seen, numbers(pl.Series(seen, dtype=pl.String)), strict=True))
    # 2 before 10, numbers before words.
    return tuple(sorted(seen, key=lambda name: (value[name] is None, value[name] or 0.0, name)))


def _shares(raw: Raw, options: ReaderOptions) -> _Tidy:
    """Counts or probabilities: one row per item, one column per class."""
    given = [column for column in raw.frame.columns if column not in ("item", ROW)]
    classes = list(options.classes or given)
    if set(classes) != set(given) or len(given) < 2:
        raw.source.refuse(
            f"there must be two or more columns of classes, those that classes= names; got "
            f"{listed(given)}",
            fix="name every class column with classes=, and the item's with item=",
        )
    blank, notes = 0.0 if raw.kind == "counts" else None, raw.notes
    values = _numbers(raw, *classes, blank=blank)
    if raw.kind == "probabilities":
        sums = values.sum(1)
        off = ~(np.abs(sums - 1) <= _ROUNDED)
        if off.any():
            row = int(off.argmax())
            percent = abs(sums[row] - 100) < 100 * _ROUNDED
            fix = "divide percentages by 100" if percent else "name one column per class"
            rule = f"probabilities must sum to 1; these sum to {sums[row]:.4g}"
            raw.refuse(row, rule, fix)
        values = values / sums[:, None]
    elif len(classes) > 2 and len(values) >= 10 and options.classes is None:  # not by chance
        total = values.sum(1, keepdims=True)
        for name in np.array(classes)[(values * 2 == total).all(0) & (total > 0).any()].tolist():
            rule = f"column {shown(name)} is the sum of the others"
            if np.ptp(total):
                fix = f"pass ignore={name!r}, or name all classes with classes= if it is one"
                raw.source.refuse(rule, fix=fix)
            notes = (*notes, f"{rule}; pass ignore={name!r} if it is no class")
    items, names = _coded(raw.frame["item"])
    if (items < 0).any():
        raw.refuse(int((items < 0).argmax()), "the row names no item", "name the item")
    columns = {each: values[:, i] for i, each in enumerate(classes)}
    table = pl.DataFrame({"item": names.gather(items), **columns})
    kept = _different(raw, table, ["item"])
    left_out = {**raw.left_out, "repeated": len(table) - len(kept)}
    if not kept.select(classes).sum().sum_horizontal().sum():
        raw.source.refuse("no row contains a vote", fix="export the annotations again")
    return (tuple(names.to_list()), tuple(classes), kept, left_out, notes)


def _bounds(raw: Raw, options: ReaderOptions) -> _Tidy:
    """Statements "at least so much of this class"."""
    if not len(raw.frame):
        raw.source.refuse("no row contains a bound", fix="export the annotations again")
    bounds = _numbers(raw, "at_least")[:, 0]
    items, item_names = _coded(raw.frame["item"])
    labels, label_names = _coded(raw.frame["label"], _NO_LABEL)
    missing = (items < 0) | (labels < 0)
    if missing.any():
        rule = "a lower bound needs an item and a label"
        raw.refuse(int(missing.argmax()), rule, "name them, or delete the row")
    classes = _classes(raw, list(label_names), options, len(bounds))
    names = {"item": item_names.gather(items), "label": label_names.gather(labels)}
    table = pl.DataFrame({**names, "at_least": bounds})
    kept = _different(raw, table, ["item", "label"])
    left_out = {**raw.left_out, "repeated": len(table) - len(kept)}
    return (tuple(item_names.to_list()), classes, kept, left_out, raw.notes)


def _different(raw: Raw, table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The different rows; two that differ about the same keys are refused."""
    kept = table.unique(maintain_order=True)
    twice = kept.filter(pl.struct(keys).is_duplicated()).select(keys)
    if len(twice):
        same = pl.all_horizontal(pl.col(key) == twice[key][0] for key in keys)
        about = " and ".join(f"{key} {shown(twice[key][0])}" for key in keys)
        row = int(table.select(same.arg_true()).to_series()[1])
        raw.refuse(row, f"there are two different rows about {about}", "keep one of them")
    return kept


def _numbers(raw: Raw, *names: str, blank: float | None = None) -> NDArray[np.float64]:
    """Columns as float64, (rows, columns); other text is refused, empty cells unless ``blank``."""
    cells = pl.concat([raw.frame[name].alias("cell") for name in names])
    found = numbers(cells)
    wrong = found.is_null()
    if blank is not None:
        empty = cells.is_null() | (cells.str.strip_chars() == "")
        found, wrong = found.fill_null(blank), wrong & ~empty
    if wrong.any():
        first = wrong.to_numpy().reshape(len(names), -1).T.argmax()
        row, column = divmod(int(first), len(names))
        value = raw.frame[names[column]][row]
        rule = f"{shown(names[column])} must be a number; got {shown(value)}"
        percent = "%" in str(value)
        fix = "divide percentages by 100" if percent else "write it in digits, or delete the row"
        if raw.kind in ("counts", "probabilities") and not percent:
            fix = f"pass ignore={names[column]!r} if it is no class, or write it in digits"
        raw.refuse(row, rule, fix)
    return found.to_numpy().reshape(len(names), -1).T


def _item_contents(raw: Raw, rows: pl.DataFrame) -> dict[str, int]:
    """A digest of each item's content, where the source has it; one name for two is refused."""
    columns = []
    for name in raw.source.columns:
        first, _, rest = name.partition(".")
        seen = rest if folded(first) in _INSIDE else first
        if (name != raw.item or raw.places) and folded(seen) in _CONTENT:
            columns.append(name)
    if not columns or not len(raw.frame):
        return {}
    digests = []  # null where all columns are empty
    for block in raw.source.blocks(columns):
        table = texts(block).select(pl.all().str.strip_chars().fill_null(""))
        filled = ~table.select(pl.all_horizontal(pl.all() == "")).to_series()
        digests.append(pl.select(pl.when(filled).then(table.hash_rows())).to_series())
    pairs = rows.with_columns(content=pl.concat(digests).gather(rows["row"]))
    pairs = pairs.drop_nulls().unique(["item", "content"], keep="first", maintain_order=True)
    twice = pairs.filter(pl.col("item").is_duplicated())
    if len(twice):
        item = twice["item"][0]
        one, two = (raw.source.place(each) for each in twice.filter(item=item)["row"][:2])
        raw.source.refuse(
            f"item {shown(item)} has another {shown(columns[0])} in {two} than in {one}, so these "
            "are different items of one name",
            fix="name them by another column with item=, or give each its own name",
        )
    return dict(pairs.select("item", "content").iter_rows())
