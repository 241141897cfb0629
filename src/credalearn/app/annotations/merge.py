"""Annotations of two rounds as one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from credalearn._formats import many, shown
from credalearn.app._csv_file import escape_csv
from credalearn.app.annotations.table import Annotations, Conflicts, Origin
from credalearn.errors import CredalError

_KEYS = {"votes": ["item", "annotator"], "bounds": ["item", "label"]}
_START_AGAIN = "if the names start again in each file, give every item its own; else "
_UNITS = {"votes": "vote", "bounds": "bound"}


def merge(
    first: Annotations, second: Annotations, *, conflicts: Conflicts = "refuse"
) -> Annotations:
    """What was said in two rounds; what both say counts once, unless nobody is named."""
    second = _with_names_of(first, second)
    known, pairs = first.source.contents, second.source.contents.items()
    others = [item for item, content in pairs if known.get(item, content) != content]
    if others:  # their votes would be mixed up
        raise CredalError(
            f"{second.source.path}: {many(len(others), 'item has', 'items have')} the name of a "
            f"different item of {first.source.path}, such as {shown(others[0])}: the names start "
            "again in each file. To fix: give every item a name of its own, or pass a file of "
            "another split as validation or test items."
        )
    classes = tuple(dict.fromkeys((*first.classes, *second.classes)))
    if all(list(each.classes) == sorted(each.classes) for each in (first, second)):
        classes = tuple(sorted(classes))
    kinds = {first.contains, second.contains}
    if kinds == {"counts", "votes"} or (kinds == {"counts"} and conflicts == "add"):
        return _added(first, second, classes)
    if len(kinds) > 1 or conflicts == "add":
        rule = "only counts can be added" if len(kinds) == 1 else "both rounds must be of one kind"
        raise CredalError(
            f"{rule}; {first.source.path} contains {first.contains}, {second.source.path} "
            f"{second.contains}. To fix: pass the same kind, without merge_conflicts='add'."
        )
    keys = _KEYS.get(first.kind, ["item"])
    old, new = (_complete(each, classes) for each in (first, second))
    again = new.join(old, on=keys, how="semi").select(keys).unique()  # never without an annotator
    theirs, ours = (each.join(again, on=keys, how="semi") for each in (old, new))
    changed = ours.join(theirs, on=old.columns, how="anti", nulls_equal=True)
    if conflicts == "refuse" and len(changed):
        _refuse(first, second, theirs, changed.row(0, named=True))
    items = tuple(dict.fromkeys((*first.items, *second.items)))
    # In the order of the items, so that the rows are those of one export.
    order = pl.DataFrame({"item": items, "_place": range(len(items))})
    table = pl.concat([old.join(again, on=keys, how="anti"), new])
    table = table.join(order, on="item", how="left").sort("_place", maintain_order=True)
    unit = _UNITS.get(first.kind, "row")
    note = many(len(new) - len(ours), unit)
    if len(ours) > len(changed):
        note += f"; {many(len(ours) - len(changed), unit)} repeated"
    note += f"; {many(len(changed), unit)} replaced" if len(changed) else ""
    source = _origin(first, second, note)
    return Annotations(first.kind, items, classes, table.drop("_place"), source)


def _added(first: Annotations, second: Annotations, classes: tuple[str, ...]) -> Annotations:
    """Counts and votes as counts."""
    tables = []
    for each in (first, second):
        counts = pl.DataFrame(each.counts(), schema=list(each.classes), orient="row")
        missing = [pl.lit(0.0).alias(name) for name in classes if name not in each.classes]
        named = counts.with_columns(missing).select(classes)
        tables.append(named.insert_column(0, pl.Series("item", each.items, dtype=pl.String)))
    both = pl.concat(tables).group_by("item", maintain_order=True).sum()
    votes = many(round(float(second.counts().sum())), "vote")
    source = _origin(first, second, votes)
    return Annotations("counts", tuple(both["item"]), classes, both, source)


def _with_names_of(first: Annotations, second: Annotations) -> Annotations:
    """The second round, without the apostrophes that keep a spreadsheet from running a name."""
    known, taken = set(first.items), set(second.items)
    escaped = {escape_csv(name): name for name in known if escape_csv(name) != name}
    names = {
        name: escaped[name]
        for name in second.items
        if name in escaped and name not in known and escaped[name] not in taken
    }
    return _renamed(second, names) if names else second


def _renamed(annotations: Annotations, names: Mapping[str, str]) -> Annotations:
    """The annotations with other names of some items."""
    source, renamed = annotations.source, pl.col("item").replace(names)
    tables = [(each, rows.with_columns(renamed)) for each, rows in source.tables]
    contents = {names.get(item, item): each for item, each in source.contents.items()}
    return Annotations(
        annotations.kind,
        tuple(names.get(item, item) for item in annotations.items),
        annotations.classes,
        annotations.table.with_columns(renamed),
        replace(source, contents=contents, tables=tuple(tables)),
    )


def join_splits(train: Annotations, **splits: Annotations) -> Annotations:
    """Annotations with those of official splits; ids that start again become ``test:1``."""
    found, split_of = train, dict(train.source.splits)
    known = set(train.source.contents.items())
    for name, part in splits.items():
        if same := known & set(part.source.contents.items()):
            have = many(len(same), "item has", "items have")
            raise CredalError(
                f"{part.source.path}: {have} the name and content of an item of another split, "
                f"such as {shown(min(same)[0])}. To fix: take them out of one of the files."
            )
        known |= set(part.source.contents.items())
        if not set(found.items).isdisjoint(part.items):
            part = _renamed(part, {item: f"{name}:{item}" for item in part.items})
        split_of |= dict.fromkeys(part.items, name)
        found = merge(found, part)
    return replace(found, source=replace(found.source, splits=split_of))


def _complete(annotations: Annotations, classes: tuple[str, ...]) -> pl.DataFrame:
    """The table, with a column for every class of both rounds where classes are columns."""
    table = annotations.table
    if annotations.kind in _KEYS:
        return table
    missing = [pl.lit(0.0).alias(name) for name in classes if name not in table.columns]
    return table.with_columns(missing).select("item", pl.col(*classes).cast(pl.Float64))


def _refuse(
    first: Annotations, second: Annotations, old: pl.DataFrame, row: dict[str, object]
) -> None:
    keys = _KEYS.get(first.kind, ["item"])
    same = pl.all_horizontal(pl.col(key) == pl.lit(row[key]) for key in keys)
    before = old.filter(same).row(0, named=True)
    said = [{name: each[name] for name in row if name not in keys} for each in (before, row)]
    one, two = (
        shown(each["label"]) if first.contains == "votes" else ", ".join(map(str, each.values()))
        for each in said
    )
    about = " and ".join(f"{key} {shown(row[key])}" for key in keys)
    known = row["item"] in first.source.contents and row["item"] in second.source.contents
    raise CredalError(
        f"{about} have {one} in {first.source.path} and {two} in {second.source.path}. To fix: "
        f"{'' if known else _START_AGAIN}take out one of them, or pass merge_conflicts='newest'"
        f"{' or add' * (first.kind == 'counts')}."
    )


def _origin(first: Annotations, second: Annotations, added: str) -> Origin:
    one, two = first.source, second.source
    new = len(set(second.items) - set(first.items))
    note = f"{two.path} adds {many(new, 'item')} and {added}"
    return replace(
        one,
        left_out=Counter(one.left_out) + Counter(two.left_out),
        first_items=len(first.items) if one.first_items is None else one.first_items,
        later=(*one.later, two.path, *two.later),
        notes=(*one.notes, note, *(f"{two.path}: {each}" for each in two.notes)),
        contents={**two.contents, **one.contents},
        tables=(*one.tables, *two.tables),
    )
