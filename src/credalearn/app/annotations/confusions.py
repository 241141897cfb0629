"""Which classes people confuse, and which class names are probably misspelled.

Shapes: N items, K classes.
"""

import re
from dataclasses import dataclass

import numpy as np

from credalearn._checks import folded, nearest
from credalearn.app.annotations.agreement import vote_counts
from credalearn.app.annotations.table import Annotations

_SEEN_ENOUGH = 3  # votes of a class that another one could be a misspelling of
_SHORTEST = 4  # letters of a name that can be told to be misspelled


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two classes that people confuse.

    Args:
        classes: The two classes.
        pairs: Pairs of votes on the same item, one for each of the two.
        share: Share of these among all pairs of votes on the same item that disagree.
    """

    classes: tuple[str, str]
    pairs: int
    share: float


@dataclass(frozen=True, slots=True)
class Typo:
    """A class that is probably another one misspelled.

    Args:
        label: The class as it is in the file.
        votes: Votes for it.
        like: The class that was probably meant.
        like_votes: Votes for that class.
    """

    label: str
    votes: int
    like: str
    like_votes: int


def confused_pairs(annotations: Annotations, most: int = 10) -> tuple[Confusion, ...]:
    """The pairs of classes on which people disagree, the largest share first.

    Raises:
        CredalError: If the annotations are neither votes nor counts.

    Example:
        >>> from credalearn.app.annotations.table import three_items
        >>> confused_pairs(three_items())
        (Confusion(classes=('cat', 'dog'), pairs=2, share=1.0),)
    """
    counts = vote_counts(annotations)
    pairs = np.triu(counts.T @ counts, k=1)  # votes for one times votes for the other, by item
    total = pairs.sum()
    order = np.argsort(-pairs, axis=None, kind="stable")[:most]
    found = []
    for first, second in zip(*np.unravel_index(order, pairs.shape), strict=True):
        if pairs[first, second]:
            names = (annotations.classes[first], annotations.classes[second])
            number = int(pairs[first, second])
            found.append(Confusion(names, number, float(number / total)))
    return tuple(found)


def typo_classes(annotations: Annotations) -> tuple[Typo, ...]:
    """Classes that are probably another class misspelled, the fewest votes first.

    A class that differs from a more frequent one only in case, spaces, hyphens or underscores; or
    that one vote names and that is close to a class with three votes or more. Numbers, and names
    that differ in a digit, are not misspelled.

    Example:
        >>> from credalearn.app.annotations.table import three_items
        >>> typo_classes(three_items())
        ()
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
            like = nearest(name, same_digits) if _may_be_misspelled(name, votes[name]) else None
        if like is not None and like != name:
            found.append(Typo(name, int(votes[name]), like, int(votes[like])))
    return tuple(found)


def _may_be_misspelled(name: str, votes: float) -> bool:
    return votes <= 1 and len(name) >= _SHORTEST


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[+-]?\d+([.,]\d+)?", name) is not None


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
