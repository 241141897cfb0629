"""How a reader refuses: one line with the place, the value, the rule and the nearest remedy."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from credalearn.errors import CredalError

_LONGEST = 60  # characters of a value that a message shows


def refuse(path: Path, where: str, rule: str, *, fix: str) -> NoReturn:
    """Raise the one error of bad input.

    Example:
        >>> refuse(Path("votes.csv"), "line 7", "the item is empty", fix="name it")
        Traceback (most recent call last):
        credalearn.errors.CredalError: votes.csv, line 7: the item is empty. To fix: name it.
    """
    place = f"{path}, {where}" if where else str(path)
    raise CredalError(" ".join(f"{place}: {rule}. To fix: {fix}.".split("\n")))


def shown(value: object) -> str:
    """A value in a message: quoted, on one line, cut where it is long.

    Example:
        >>> shown("cat")
        "'cat'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def listed(values: Sequence[object], most: int = 8) -> str:
    """Values of a message, the first few of them.

    Example:
        >>> listed(["cat", "dog", "owl"], most=2)
        "'cat', 'dog' and 1 more"
    """
    text = ", ".join(shown(value) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most:,} more"


def edit_distance(first: str, second: str, most: int = 3) -> int:
    """Letters to insert, delete, replace or swap with their neighbour; ``most + 1`` if more.

    The optimal string alignment distance, by dynamic programming over two words.

    Example:
        >>> edit_distance("horse", "hrose"), edit_distance("cat", "cart")
        (1, 1)
    """
    if abs(len(first) - len(second)) > most or len(set(first) - set(second)) > most:
        return most + 1  # without looking at all places, an eighth of the time for unlike words
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(second, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                best = min(best, above[j - 2] + 1)
            row.append(best)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def folded(word: str) -> str:
    """A name without case, spaces, hyphens, underscores and dots.

    Example:
        >>> folded("Item_ID") == folded("item id")
        True
    """
    return "".join(letter for letter in word.casefold() if letter not in " \t-_.")


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` was probably meant to be.

    Example:
        >>> nearest("lable", ["item", "label"])
        'label'
        >>> nearest("cat", ["zebra"]) is None
        True
    """
    close = sorted((edit_distance(folded(word), folded(each)), each) for each in words)
    allowed = 1 if len(word) <= 5 else 2
    return close[0][1] if close and close[0][0] <= allowed else None
