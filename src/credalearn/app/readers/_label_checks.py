"""What is no name of a class: codes, percentages, measurements, free text, several classes."""

import re
from collections import Counter

import polars as pl

from credalearn._formats import listed, shown
from credalearn.app.readers._content import Raw
from credalearn.app.sources import numbers

NO_VALUE = ("na", "n/a", "#n/a", "#nv", "null")
_NO_ANSWER = ("-1", "-9", "-99", "-999", "99", "999", "9999", *NO_VALUE, "?", "-", ".")
_PERCENTAGE = re.compile(r"[\d.,]+ ?%")
_MANY = {100: 2, 1000: 5}  # labels, each with fewer votes than this
_MEASURED = 20  # different numbers, half or more with decimals, or few votes each
_RATED = 10  # votes per number, from which on whole numbers may be classes
_SEVERAL = re.compile(r"[,;|]")


def check_columns(raw: Raw, person: pl.Series, label: pl.Series) -> None:
    """Refuse some columns of a wide table whose cells are free text or measurements."""
    found = pl.DataFrame({"column": person, "label": label})
    found = found.group_by("column", "label", maintain_order=True).len("votes")
    number, own = numbers(found["label"]), pl.col("label").is_unique()  # nobody else gives it
    found = found.with_columns(own=own, decimal=(number != number.round()).fill_null(False))
    # Half of the cells are texts of their own, or half of the texts are decimals.
    foreign = (pl.col("own").sum() > pl.col("votes").sum() / 2) | (pl.col("decimal").mean() > 0.5)
    columns = found.group_by("column", maintain_order=True)
    such = columns.agg(pl.col("label").first(), odd=foreign & (pl.len() > _MEASURED))
    odd = such.filter("odd")
    if 0 < len(odd) < len(such):
        ignored = " and ".join(f"ignore={name!r}" for name in odd["column"][:8])
        raw.source.refuse(
            f"free text or measurements are not classes, such as {shown(odd['label'][0])} in "
            f"{listed(odd['column'].to_list())}",
            fix=f"pass {ignored}, or name all classes with classes= if these are",
        )


def check_labels(raw: Raw, labels: list[str], votes: int) -> None:
    """Refuse labels, found in so many votes, that are no names of classes."""
    codes = [each for each in labels if each.casefold() in _NO_ANSWER]
    if raw.empty == "empty cells" and codes and len(labels) - len(codes) >= 2:
        raw.source.refuse(
            f"{listed(codes)} may mean 'no answer' in a table with one column per annotator",
            fix=f"pass missing={codes[0]!r}, or name all classes with classes= if it is one",
        )
    if labels and all(map(_PERCENTAGE.fullmatch, labels)):
        fix = "write them as numbers, 0.7 for 70 %, or name all with classes= if they are classes"
        raw.source.refuse(f"the labels are percentages, such as {listed(labels, 3)}", fix=fix)
    found = numbers(pl.Series(labels, dtype=pl.String)).drop_nulls()
    decimals = int((found != found.round()).sum())
    rare = len(found) == len(labels) > votes / _RATED
    measured = len(labels) > _MEASURED and (decimals > len(labels) / 2 or rare)
    if measured or any(len(labels) > max(least, votes / share) for least, share in _MANY.items()):
        raw.source.refuse(
            f"{len(labels):,} different {'numbers' if measured else 'labels'} in {votes:,} votes, "
            f"such as {listed(labels, 3)}, are {'measurements' if measured else 'free text'}, not "
            "classes",
            fix="name the column of the class with label=",
        )
    parts = {each: [part.strip("[]{} '\"") for part in _SEVERAL.split(each)] for each in labels}
    known = Counter(part for each in parts.values() for part in set(each))
    several = [
        each for each, of in parts.items() if len(of) > 1 and min(known[part] for part in of) > 1
    ]
    if several:
        raw.source.refuse(
            f"{shown(several[0])} names several classes, and a vote is for one",
            fix="ask one question per class, or name all classes with classes= if it is one",
        )
