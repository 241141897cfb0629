"""Which classes people confuse, and which class names are probably slips of the pen.

Shapes: N items, K classes.
"""

import re
from dataclasses import dataclass

import numpy as np

from credalearn._checks import edit_distance, folded
from credalearn.app.annotations.agreement import vote_counts
from credalearn.app.annotations.table import Annotations

_SEEN_ENOUGH = 3  # votes of a class that another could be a misspelling of
_RARE = 4  # a slip of the same hand comes back, but not once in four times
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two classes that people take for each other.

    Args:
        classes: The two.
        pairs: Pairs of votes on the same item, one for each of the two.
        share: Of all pairs of votes on the same item that disagree.

    Example:
        Two people disagree about each of two items, and nobody about the third.

        >>> from credalearn.app.annotations.examples import three_items
        >>> confused_pairs(three_items())[0].classes
        ('cat', 'dog')
    """

    classes: tuple[str, str]
    pairs: int
    share: float


@dataclass(frozen=True, slots=True)
class Typo:
    r"""A class that looks like a slip of the pen.

    Args:
        label: As it stands in the file.
        votes: For it.
        like: What was probably meant.
        like_votes: For that.
        why: How the two names differ.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from credalearn.app.annotations import read_annotations
        >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
        >>> _ = path.write_text("item,horse,hrose\na,4,0\nb,5,1\n")
        >>> (found,) = typo_classes(read_annotations(path, format="counts"))
        >>> found.label, found.like, found.why
        ('hrose', 'horse', '1 letter differs')
    """

    label: str
    votes: int
    like: str
    like_votes: int
    why: str


def confused_pairs(annotations: Annotations, most: int = 10) -> tuple[Confusion, ...]:
    """The pairs of classes on which people disagree most, the largest share first.

    Raises:
        CredalError: If the annotations are no votes or counts.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> confused_pairs(three_items())
        (Confusion(classes=('cat', 'dog'), pairs=2, share=1.0),)
    """
    counts = vote_counts(annotations)
    pairs = np.triu(counts.T @ counts, k=1)  # votes for one times votes for the other, by item
    total = pairs.sum()
    if total == 0:
        return ()
    order = np.argsort(-pairs, axis=None, kind="stable")[:most]
    found = []
    for first, second in zip(*np.unravel_index(order, pairs.shape), strict=True):
        number = int(pairs[first, second])
        if number:
            names = (annotations.classes[first], annotations.classes[second])
            found.append(Confusion(names, number, float(number / total)))
    return tuple(found)


def typo_classes(annotations: Annotations) -> tuple[Typo, ...]:
    """Classes that are probably another class misspelt, the fewest votes first.

    A class that differs from a more frequent one only in case, spaces, hyphens or underscores; or
    that is seen once and is one letter from another (two letters where the name has eight or more);
    or that swaps two letters of one with four times its votes. Names that differ in a digit are not
    misspelt, nor are numbers.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> typo_classes(three_items())
        ()
    """
    votes = annotations.counts().sum(0).tolist()
    names = annotations.classes
    rising = sorted(range(len(names)), key=lambda i: (votes[i], -i))
    leader = {_bare(names[i]): i for i in rising}  # of those that fold alike, the most frequent
    often: dict[str, list[tuple[str, float]]] = {}
    for name, number in zip(names, votes, strict=True):
        if number >= _SEEN_ENOUGH:
            often.setdefault(_digits(name), []).append((name, number))
    words = {names[i].casefold(): (names[i], votes[i]) for i in rising if votes[i] >= _SEEN_ENOUGH}
    found = []
    for i in sorted(range(len(names)), key=votes.__getitem__):
        like = leader[_bare(names[i])]
        if like != i:
            pair = names[i], int(votes[i]), names[like], int(votes[like])
            found.append(Typo(*pair, "only case or spaces differ"))
        elif not _NUMBER.fullmatch(names[i]):
            others = often.get(_digits(names[i]), []) if votes[i] <= 1 else []
            near = _misspelt(names[i], votes[i], others)
            found += near or _swapped(names[i], votes[i], words)
    return tuple(found)


def _bare(name: str) -> str:
    """Without case and spaces; the sign and the point of a number stay."""
    return name if _NUMBER.fullmatch(name) else folded(name)


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)


def _misspelt(name: str, votes: float, others: list[tuple[str, float]]) -> list[Typo]:
    """The other class it was meant to be, if one is near enough."""
    allowed = 0 if len(name) < 4 else 1 if len(name) < 8 else 2
    near = []
    for other, other_votes in others if allowed else ():
        distance = edit_distance(name.casefold(), other.casefold(), most=allowed)
        if distance <= allowed:
            near.append((distance, -other_votes, other))
    if not near:
        return []
    distance, other_votes, other = min(near)
    why = f"{distance} letter{'s' * (distance > 1)} differ{'s' * (distance == 1)}"
    return [Typo(name, int(votes), other, int(-other_votes), why)]


def _swapped(name: str, votes: float, words: dict[str, tuple[str, float]]) -> list[Typo]:
    """The far more frequent class with two neighboring letters the other way round."""
    if len(name) < 3 or name.isupper():  # codes such as ACT and ATC
        return []
    word = name.casefold()
    near = []
    for i in range(len(word) - 1):
        if word[i].isalpha() and word[i + 1].isalpha():
            other = words.get(word[:i] + word[i + 1] + word[i] + word[i + 2 :], (name, 0.0))
            if other[0] != name and other[1] >= _RARE * votes:
                near.append((-other[1], other[0]))
    if not near:
        return []
    other_votes, like = min(near)
    return [Typo(name, int(votes), like, int(-other_votes), "two letters are swapped")]
