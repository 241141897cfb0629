"""How a reader refuses: one line with the place, the value, the rule and the nearest remedy."""

from collections.abc import Sequence
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


def enumerated(names: Sequence[str]) -> str:
    """All of some names, as a sentence has them.

    Example:
        >>> enumerated(["cat", "dog", "owl"]), enumerated(["cat"])
        ('cat, dog and owl', 'cat')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def many(count: int, one: str, more: str | None = None) -> str:
    """So many things.

    Example:
        >>> many(1, "item"), many(2000, "item"), many(2, "class", "classes")
        ('1 item', '2,000 items', '2 classes')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
