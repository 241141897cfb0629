"""Tables: one row per vote or bound, or one per item with columns of annotators or classes."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import polars as pl

from credalearn._checks import folded
from credalearn._formats import listed
from credalearn.app.column_names import ANNOTATOR, AT_LEAST, ITEM, LABEL, TOP, TOP_PERCENT, find
from credalearn.app.readers._content import ROW, Content, Raw
from credalearn.app.sources import numbers

# Columns that are often next to votes and are not votes.
_BESIDE = (
    *("text", "title", "description", "comment", "url", "image", "split", "fold", "group", "gold"),
    *("goldlabel", "hardlabel", "majority", "consensus", "truth", "date", "time", "timestamp"),
    *("index", "source", "total", "sum", "nvotes", "numvotes", "patient", "patientid"),
)
_PEOPLE = (*ANNOTATOR, "ann", "person")
_COUNTS = ("count", "counts", "n", "num", "votes", "vote")
_PROBABILITIES = ("p", "prob", "probability", "share", "soft")
_UPPER = ("upper", "upperbound", "maximum", "maxprobability")
_STATED_TOO = ("second", "second_percent", "impossible")


Reader = tuple[Callable[[Content], bool], Callable[[Content], Raw]]  # recognize, read
_Shape = Literal["wide", "counts", "probabilities", "ambiguous"]
# Of a table with one row per item: its column, the others, and what these are.
_Layout = tuple[str, tuple[str, ...], _Shape | None]
_NO_LAYOUT: _Layout = "", (), None


def _is_long(content: Content) -> bool:
    """A table with a column for the item and one for the label."""
    item, label = content.column("item", ITEM), content.column("label", LABEL)
    return item is not None and label is not None and item != label


def _read_long(content: Content) -> Raw:
    """One vote per row, as crowd-kit, Toloka and most scripts write them."""
    item, label = content.need("item", ITEM), content.need("label", LABEL)
    annotator = content.column("annotator", ANNOTATOR)
    weight = content.column("weight", ("weight",))
    if len({item, label, annotator}) < 3:
        content.source.refuse(
            f"item {item!r}, annotator {annotator!r} and label {label!r} must be three columns",
            fix="name them with item=, annotator= and label=",
        )
    columns = {"item": item, "annotator": annotator, "label": label, "weight": weight}
    frame = content.text(**{name: column for name, column in columns.items() if column})
    notes: tuple[str, ...] = ()
    who = f"annotator {annotator!r}"
    if annotator is None:
        who = "no annotator"
        frame = frame.with_columns(annotator=pl.lit(None, pl.String))
        others = [name for name in content.columns if name not in (item, label, weight)]
        if others:
            which = f"{'one of ' * (len(others) > 1)}{listed(others)}"
            notes = (f"if {which} names the annotator, pass it with annotator=",)
    words = f"one row per vote: item {item!r}, {who}, label {label!r}"
    return Raw("votes", frame, content.source, words, item=item, notes=notes)


def _read_bounds(content: Content) -> Raw:
    """One statement per row: the least probability that an annotator gives a label."""
    item, label = content.need("item", ITEM), content.need("label", LABEL)
    bound, upper = _numbers_of("at_least", content, AT_LEAST), find(content.columns, _UPPER)
    if upper is not None and content.options.format is None:
        content.source.refuse(
            f"column {upper!r} would be ignored: these are not lower bounds alone",
            fix="pass format='bounds' to read them all the same; predictions are read by import",
        )
    frame = content.text(item=item, label=label, at_least=bound)
    words = f"one row per lower bound: item {item!r}, label {label!r}"
    return Raw("bounds", frame, content.source, words, item=item)


def _numbers_of(name: str, content: Content, names: tuple[str, ...]) -> str:
    """The column of bounds or percentages."""
    found = find(content.columns, names)
    if found is None:
        content.source.refuse(f"there is no column {name!r}", fix=f"rename the column to {name}")
    return found


def _read_statements(content: Content) -> Raw:
    """One row per person and item: "cat 70 %, then dog 20 %, certainly no ship"."""
    item, top = content.need("item", ITEM), content.need("label", TOP)
    percent = _numbers_of("top_percent", content, TOP_PERCENT)
    if any(isinstance(each.value.get("impossible"), list) for each in content.records):
        fix = "write its classes as one text, separated by ';'"
        content.source.refuse("'impossible' is a list", fix=fix)
    others = {name: find(content.columns, (folded(name),)) for name in _STATED_TOO}
    others["annotator"] = content.column("annotator", ANNOTATOR)
    there = {name: column for name, column in others.items() if column}
    frame = content.text(item=item, label=top, top_percent=percent, **there)
    frame = frame.with_columns(pl.lit("").alias(name) for name in others if name not in there)
    frame = frame.with_columns(pl.col("top_percent", "second_percent").str.strip_chars(" %"))
    words = f"one row per statement: item {item!r}, top class {top!r} with {percent!r}"
    return Raw("votes", frame, content.source, words, item=item)


def _is_wide(content: Content) -> bool:
    """Columns named like annotators, or cells that are labels."""
    shape = _layout(content)[2]
    if shape == "ambiguous":
        content.source.refuse(
            "the columns could be annotators with their labels, or counts by class",
            fix="pass format='wide', or format='counts' and each class with classes=",
        )
    return shape == "wide"


def _read_wide(content: Content) -> Raw:
    """One vote per filled cell."""
    item, people, _ = _need_layout(content)
    frame = content.text(**{"\0item": item}, **{name: name for name in people})
    repeated = int(frame["\0item"].is_duplicated().sum()) > len(frame) / 2
    if repeated and content.options.format is None and not _begins(people[0], _PEOPLE):
        content.source.refuse(
            f"most items of {item!r} occur in several rows, as in a table with one row per vote",
            fix=f"name the columns of the votes with annotator= and label=, or pass "
            f"format='wide' if {listed(people, 3)} are annotators",
        )
    # By rows, as a person reads: the votes of the first item first.
    long = (
        frame.unpivot(people, index=["\0item", ROW])
        .sort(ROW, maintain_order=True)
        .rename({"\0item": "item", "variable": "annotator", "value": "label"})
    )
    words = f"one row per item {item!r}, one column per annotator: {listed(people, 6)}"
    return Raw("votes", long, content.source, words, item=item, empty="empty cells")


def _read_shares(kind: Literal["counts", "probabilities"], content: Content) -> Raw:
    """One row per item, one column per class; these columns lose a prefix that all share."""
    item, columns, _ = _need_layout(content)
    named = set(columns) == set(content.options.classes or ())
    classes = columns if named else without_prefix(columns)
    if "item" in classes:
        content.source.refuse(
            "no class can be called 'item'", fix="name the item's column with item="
        )
    frame = content.text(item=item, **dict(zip(classes, columns, strict=True)))
    words = f"one row per item {item!r}, one column per class with its {kind}"
    known = {item, *columns, *content.options.ignore, *content.options.elsewhere}
    others = [x for x in content.columns if named and x not in known and folded(x) not in _BESIDE]
    notes = (f"not named by classes=, and left out: {listed(others)}",) if others else ()
    return Raw(kind, frame, content.source, words, item=item, notes=notes)


TABLES: dict[str, Reader] = {
    "statements": (
        lambda content: find(content.columns, TOP_PERCENT) is not None,
        _read_statements,
    ),
    "bounds": (
        lambda content: _is_long(content) and find(content.columns, AT_LEAST) is not None,
        _read_bounds,
    ),
    "long": (_is_long, _read_long),
    "counts": (lambda content: _layout(content)[2] == "counts", partial(_read_shares, "counts")),
    "probabilities": (
        lambda content: _layout(content)[2] == "probabilities",
        partial(_read_shares, "probabilities"),
    ),
    "wide": (_is_wide, _read_wide),
}


def without_prefix(names: Sequence[str]) -> list[str]:
    """The names of columns without a prefix such as ``p_`` or ``probs.`` that all share."""
    found = re.match(r"[^\W\d_]+[_.]", names[0])
    prefix = "" if found is None else found[0]
    same = all(name.startswith(prefix) and len(name) > len(prefix) for name in names)
    return [name.removeprefix(prefix) for name in names] if same else list(names)


def _layout(content: Content) -> _Layout:
    """The layout by the names and the first rows."""
    if not content.columns or {content.options.annotator, content.options.label} != {None}:
        return _NO_LAYOUT
    values = (value for record in content.records for value in record.value.values())
    if any(isinstance(value, dict | list) for value in values):
        return _NO_LAYOUT
    first = content.columns[0]
    item = content.column("item", ITEM)
    if item is None and content.head[first].n_unique() == content.head.height > 0:
        item = first
    if item is None:
        return _NO_LAYOUT
    used = {folded(name) for name in (item, *content.options.ignore, *content.options.elsewhere)}
    used |= set(_BESIDE)
    others = tuple(name for name in content.columns if folded(name) not in used)
    people = tuple(name for name in others if _begins(name, _PEOPLE))
    if len(people) >= 2:
        return item, people, "wide"
    classes = content.options.classes or ()
    others = classes if len(classes) > 1 and set(classes) <= set(others) else others
    return item, others, _shape_of(content.head, others)


def _need_layout(content: Content) -> _Layout:
    found = _layout(content)
    if len(found[1]) < 2 or find(found[1], (*ANNOTATOR, *LABEL)):  # the latter: a long table
        content.source.refuse(
            "a table with one row per item needs a column that names the item and two or more "
            "columns of votes",
            fix="name the item's column with item=",
        )
    return found


def _shape_of(head: pl.DataFrame, others: tuple[str, ...]) -> _Shape | None:
    if len(others) < 2 or not head.height:
        return None
    if find(others, (*ANNOTATOR, *LABEL)):
        return None  # a long table that lacks a column
    cells = pl.concat([head[name].alias("cell") for name in others]).str.strip_chars()
    filled = cells.filter(cells != "")
    found = numbers(filled).drop_nulls()
    if len(found) > len(filled) / 2:
        if all(_begins(name, _COUNTS) for name in others):
            return "counts"
        if all(_begins(name, _PROBABILITIES) for name in others) or (found != found.round()).any():
            return "probabilities"
    if len(found) < 0.9 * len(filled) or not len(filled):
        # One column of words next to columns of numbers is a group or a site, and no annotator.
        known, some = (
            x.to_numpy().reshape(len(others), -1).any(1)
            for x in (numbers(cells).is_not_null(), cells.fill_null("") != "")
        )
        if known.any() and (some & ~known).any():
            return "ambiguous"
        return "wide" if filled.n_unique() <= max(20, len(filled) / 4) else None
    if (found < 0).any():  # no count is negative
        return "wide"
    # All cells at once: 20,000 columns one by one take seconds.
    sums = numbers(cells).fill_null(0).to_numpy().reshape(len(others), head.height).sum(0)
    varied = head.select(others).n_unique() > 1 and head.height > 2
    # The same number of votes for each item, distributed differently: no labels sum up like that.
    same = len(filled) == len(cells) and len(set(sums.tolist())) == 1 and sums[0] > 1
    return "counts" if same and varied else "ambiguous"


def _begins(name: str, words: tuple[str, ...]) -> bool:
    """Whether a column is named like one of the words, followed by a number or a name."""
    start = name.casefold().replace("-", "_").replace(" ", "_").split("_")[0].rstrip("0123456789")
    return start in words and folded(name) != start
