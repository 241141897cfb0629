"""Class names that are probably misspelled."""

import re
from dataclasses import dataclass

from credalearn._checks import folded, nearest
from credalearn.app.annotations.table import Annotations

_SEEN_ENOUGH = 3  # votes of a class that another one could be a misspelling of
_SHORTEST = 4  # letters: shorter names are too close to each other


@dataclass(frozen=True, slots=True)
class Typo:
    """A class that is probably another one misspelled, with the votes for both."""

    label: str
    votes: int
    like: str
    like_votes: int


def typo_classes(annotations: Annotations) -> tuple[Typo, ...]:
    """Classes that are probably another class misspelled, the fewest votes first.

    A class that differs from a more frequent one only in case, spaces, hyphens or underscores; or
    that one vote names and that is close to a class with three votes or more. Numbers, and names
    that differ in a digit, are not misspelled.
    """
    votes = dict(zip(annotations.classes, annotations.counts().sum(0).tolist(), strict=True))
    names = sorted(votes, key=lambda name: votes[name])
    leader = {folded(name): name for name in names}  # of those that fold alike, the most frequent
    often = [name for name in names if votes[name] >= _SEEN_ENOUGH]
    found = []
    for name in names:
        if _is_number(name):
            continue
        like: str | None = leader[folded(name)]
        if like == name:
            same_digits = [each for each in often if _digits(each) == _digits(name)]
            rare = votes[name] <= 1 and len(name) >= _SHORTEST
            like = nearest(name, same_digits) if rare else None
        if like is not None and like != name:
            found.append(Typo(name, int(votes[name]), like, int(votes[like])))
    return tuple(found)


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[+-]?\d+([.,]\d+)?", name) is not None


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
