"""Numbers, values and names as messages show them."""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

_LONGEST = 60  # characters of a value that a message shows


def percent(share: float | None, *, digits: int = 3, decimals: int | None = None) -> str:
    """A share as a percentage.

    Args:
        share: The share; None for one that is not known.
        digits: Significant digits; a share below 1 gets more of them rather than reading 100 %.
        decimals: Decimal places instead, halves rounded away from zero.

    Example:
        >>> percent(0.1), percent(0.0125), percent(0.99999), percent(None)
        ('10 %', '1.25 %', '99.999 %', '–')
        >>> percent(0.1, decimals=1), percent(0.125, decimals=0)
        ('10.0 %', '13 %')
    """
    if share is None:
        return "–"
    if decimals is not None:  # as JavaScript's toFixed: the exact value of the double
        rounded = Decimal(100 * share).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        return f"{rounded} %"
    texts = (f"{100 * share:.{each}g}" for each in range(digits, 18))  # 17 tell all floats apart
    return next(text for text in texts if not share < 1 or float(text) < 100) + " %"


def number(value: float, *, digits: int = 4) -> str:
    """A number for people: whole numbers in full, others to so many significant digits.

    Example:
        >>> number(12345), number(0.123456), number(2.0)
        ('12,345', '0.1235', '2')
    """
    return f"{int(value):,}" if value == int(value) else f"{value:,.{digits}g}"


def shown(value: object) -> str:
    """A value in a message: quoted, on one line, at most 60 characters.

    Example:
        >>> shown("cat")
        "'cat'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def listed(values: Sequence[object], most: int = 8) -> str:
    """The first few values of a sequence, in a message.

    Example:
        >>> listed(["cat", "dog", "owl"], most=2)
        "'cat', 'dog' and 1 more"
    """
    text = ", ".join(shown(value) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most:,} more"


def enumerated(names: Sequence[str]) -> str:
    """All names, as they stand in a sentence.

    Example:
        >>> enumerated(["cat", "dog", "owl"]), enumerated(["cat"])
        ('cat, dog and owl', 'cat')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def many(count: int, one: str, more: str | None = None) -> str:
    """A count with its noun.

    Example:
        >>> many(1, "item"), many(2000, "item"), many(2, "class", "classes")
        ('1 item', '2,000 items', '2 classes')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
