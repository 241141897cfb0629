"""Labels that are no classes: codes for "no answer", measurements, free text, several at once."""

import re
from collections import Counter

import polars as pl

from credalearn._formats import listed, shown
from credalearn.app.readers._content import Raw
from credalearn.app.sources import numbers

_NO_ANSWER = ("-1", "-9", "-99", "-999", "99", "999", "9999", "na", "n/a", "null", "?", "-", ".")
_MANY = {100: 2, 1000: 5}  # labels, of which each has fewer votes than this
_MEASURED = 20  # different numbers, of which half or more have decimals, or few votes each
_RATED = 10  # votes per number, from which on whole numbers may be classes
_SEVERAL = re.compile(r"[,;|]")


def check_labels(raw: Raw, labels: list[str], votes: int) -> None:
    """Refuse labels, found in so many votes, that are no names of classes."""
    codes = [each for each in labels if each.casefold() in _NO_ANSWER]
    if raw.empty == "empty cells" and codes and len(labels) - len(codes) >= 2:
        raw.source.refuse(
            f"{listed(codes)} may mean 'no answer' in a table with one column per annotator",
            fix=f"pass --missing={codes[0]}, or name all classes with --classes if it is one",
        )
    found = numbers(pl.Series(labels, dtype=pl.String)).drop_nulls()
    decimals = int((found != found.round()).sum())
    rare = len(found) == len(labels) > votes / _RATED
    if len(labels) > _MEASURED and (decimals > len(labels) / 2 or rare):
        raw.source.refuse(
            f"{len(labels):,} different numbers in {votes:,} votes, such as {listed(labels, 3)}, "
            "are measurements, not classes",
            fix="round them to a few classes, or name the column of the class with --label",
        )
    if any(len(labels) > max(least, votes / share) for least, share in _MANY.items()):
        raw.source.refuse(
            f"{len(labels):,} different labels in {votes:,} votes are free text or names, not "
            "classes",
            fix="name the column of the class with --label",
        )
    parts = {each: [part.strip("[]{} '\"") for part in _SEVERAL.split(each)] for each in labels}
    known = Counter(part for each in parts.values() for part in set(each))
    several = [
        each for each, of in parts.items() if len(of) > 1 and min(known[part] for part in of) > 1
    ]
    if several:
        raw.source.refuse(
            f"{shown(several[0])} names several classes, and a vote is for one",
            fix="ask one question per class, or name all classes with --classes if it is one",
        )
