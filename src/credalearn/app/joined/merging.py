"""Two rounds of annotations as one."""

from collections import Counter
from pathlib import Path
from typing import Literal

import polars as pl

from credalearn._checks import check_choice
from credalearn.app.annotations import Annotations
from credalearn.app.annotations.places import many, shown
from credalearn.app.annotations.table import Source
from credalearn.app.joined.same_people import same_people
from credalearn.errors import CredalError

_KEYS = {"votes": ["item", "annotator"], "bounds": ["item", "label"]}


def merge(
    first: Annotations,
    second: Annotations,
    *,
    conflicts: Literal["refuse", "newest", "add"] = "refuse",
) -> Annotations:
    """What was said in the first round and in the second.

    Exports repeat: a statement that is in both, word for word, counts once. Votes without an
    annotator cannot be known again: those of the second round are added. So are votes to counts,
    and the sum is counts. Items and classes that are new in the second come after those of the
    first; sorted classes stay sorted.

    Args:
        first: The earlier round.
        second: The later one, of the same kind, or votes beside counts.
        conflicts: Where both say something different of the same item, by the same annotator (of
            votes), of the same class (of bounds), or at all (of counts and probabilities):
            ``"refuse"``, or the ``"newest"`` holds, which is the second: no date is read. Counts
            may ``"add"`` too, equal ones as well: a second round of other people.

    Raises:
        CredalError: If the kinds do not fit, or statements differ and are not to be replaced.

    Example:
        >>> from pathlib import Path
        >>> def votes(*rows: tuple[str, str, str]) -> Annotations:
        ...     table = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
        ...     items = tuple(dict.fromkeys(row[0] for row in rows))
        ...     classes = tuple(sorted({row[2] for row in rows}))
        ...     source = Source(Path("votes.csv"), "long", "one row a vote", len(rows))
        ...     return Annotations("votes", items, classes, table.with_columns(weight=1.0), source)
        >>> both = merge(votes(("x", "ann", "cat")), votes(("x", "ann", "cat"), ("x", "bo", "dog")))
        >>> both.counts().tolist(), both.classes
        ([[1.0, 1.0]], ('cat', 'dog'))
    """
    check_choice(conflicts, ("refuse", "newest", "add"), name="conflicts")
    classes = _classes(first, second)
    kinds = {first.kind, second.kind}
    if kinds == {"counts", "votes"} or (kinds == {"counts"} and conflicts == "add"):
        return _added(first, second, classes)
    if first.kind != second.kind:
        raise CredalError(
            f"{first.source.path} holds {first.kind} and {second.source.path} {second.kind}; they "
            "cannot be merged. To fix: give the same kind in both rounds."
        )
    if conflicts == "add":
        raise CredalError(
            f"counts can be added, and {first.source.path} holds {first.kind}. To fix: leave "
            "--merge-conflicts add out."
        )
    keys = _KEYS.get(first.kind, ["item"])
    old, new = (_whole(each, classes) for each in (first, second))
    again = new.join(old, on=keys, how="semi").select(keys).unique()  # never without an annotator
    if conflicts == "refuse" and len(again):
        theirs, ours = (each.join(again, on=keys, how="semi") for each in (old, new))
        _refuse_changes(first, second, theirs, ours)
    items = tuple(dict.fromkeys((*first.items, *second.items)))
    # In the order of the items, so that the rows are what one export would have held.
    place = pl.DataFrame({"item": items, "_place": range(len(items))})
    table = pl.concat([old.join(again, on=keys, how="anti"), new])
    table = table.join(place, on="item", how="left").sort("_place", maintain_order=True)
    repeated = new.join(again, on=keys, how="semi")
    before = repeated.join(old, on=old.columns, how="semi", nulls_equal=True).height
    told = _told(
        second,
        items=len(items) - len(first.items),
        added=new.height - repeated.height,
        before=before,
        replaced=repeated.height - before,
    )
    people: list[str] = []
    if first.annotators and second.annotators and not {*first.annotators} & {*second.annotators}:
        told += "; no annotator is in both"
        people = same_people(old, new)
    source = _source(first, second, told, *people)
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
    items = tuple(both["item"])
    num_votes = round(float(second.counts().sum()))
    told = _told(second, items=len(items) - len(first.items), added=num_votes, unit="vote")
    return Annotations("counts", items, classes, both, _source(first, second, told))


def _classes(first: Annotations, second: Annotations) -> tuple[str, ...]:
    both = tuple(dict.fromkeys((*first.classes, *second.classes)))
    is_sorted = all(list(each.classes) == sorted(each.classes) for each in (first, second))
    return tuple(sorted(both)) if is_sorted else both


def _whole(annotations: Annotations, classes: tuple[str, ...]) -> pl.DataFrame:
    """The table as text and numbers, with a column for every class of both where it has some."""
    table = annotations.table.with_columns(pl.col(pl.Enum).cast(pl.String))
    if annotations.kind not in _KEYS:
        missing = [pl.lit(0.0).alias(name) for name in classes if name not in table.columns]
        table = table.with_columns(missing).select("item", pl.col(*classes).cast(pl.Float64))
    return table


def _refuse_changes(
    first: Annotations, second: Annotations, old: pl.DataFrame, new: pl.DataFrame
) -> None:
    """Raise where the two differ in anything, order aside."""
    columns = old.columns
    changed = _tallied(new).join(
        _tallied(old), on=[*columns, "_times"], how="anti", nulls_equal=True
    )
    gone = _tallied(old).join(_tallied(new), on=[*columns, "_times"], how="anti", nulls_equal=True)
    if not len(changed) and not len(gone):
        return
    row = (changed if len(changed) else gone).row(0, named=True)
    who = f" by {shown(row['annotator'])}" if row.get("annotator") is not None else ""
    before, after = (_said(first.kind, table, row) for table in (old, new))
    raise CredalError(
        f"item {shown(row['item'])} has {before}{who} in {first.source.path} and {after} in "
        f"{second.source.path}. To fix: take out one of them, or let the file named last hold "
        f"with --merge-conflicts newest{', or add them with add' * (first.kind == 'counts')}."
    )


def _tallied(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by(table.columns, maintain_order=True).agg(pl.len().alias("_times"))


def _said(kind: str, table: pl.DataFrame, row: dict[str, object]) -> str:
    """What a table says where both speak of the same, in words."""
    for key in _KEYS.get(kind, ["item"]):
        table = table.filter(pl.col(key).eq_missing(pl.lit(row[key], dtype=pl.String)))
    if kind == "votes":
        labels = [shown(label) if label is not None else "unsure" for label in table["label"]]
        return f"the vote {' and '.join(labels)}"
    if kind == "bounds":
        return f"at least {table['at_least'][0]:g} of {shown(row['label'])}"
    return f"the {kind} {[float(x) for x in table.drop('item').row(0)]}"


def _told(
    second: Annotations,
    *,
    items: int,
    added: int,
    before: int = 0,
    replaced: int = 0,
    unit: str | None = None,
) -> str:
    """What the second adds to the first, in words."""
    unit = unit or {"votes": "vote", "bounds": "bound"}.get(second.kind, "row")
    told = f"{second.source.path} adds {many(items, 'item')} and {many(added, unit)}"
    if before:
        told += f"; {many(before, unit)} {'was' if before == 1 else 'were'} there before"
    if replaced:
        told += f"; {many(replaced, unit)} "
        told += "replaces one" if replaced == 1 else "replace those"
        told += " of the files before"
    return told


def _of_later(path: Path, note: str) -> str:
    return f"{path}: {note.replace('--item ', '--merge-item ')}"


def _source(first: Annotations, second: Annotations, *told: str) -> Source:
    one, two = first.source, second.source
    return Source(
        one.path,
        one.format,
        f"{one.words}, then {two.words} of {two.path}",
        one.rows + two.rows,
        Counter(one.left_out) + Counter(two.left_out),
        Counter(one.mended) + Counter(two.mended),
        len(first.items) if one.first_items is None else one.first_items,
        tuple(each for each in one.unused if each in two.unused),
        (*one.merged, *told),
        (*one.later, two.path, *two.later),
        tuple(dict.fromkeys((*one.unread, *two.unread))),
        one.item,
        (*one.notes, *(_of_later(two.path, each) for each in two.notes)),
    )
