"""Checks of arguments: numbers within a range and names among the known ones."""

import math
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from credalearn._formats import percent
from credalearn.errors import CredalError


def check_number(
    value: Any,
    *,
    name: str,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> None:
    """Raise unless ``value`` is a finite number within its range; True and False are no numbers.

    Raises:
        CredalError: If it is not; the message names the range.

    Example:
        >>> check_number("2", name="temperature", above=0)
        Traceback (most recent call last):
        credalearn.errors.CredalError: temperature must be a number above 0; got '2'.
        >>> check_number(95, name="confidence", above=0, below=1)
        Traceback (most recent call last):
        credalearn.errors.CredalError: confidence must be above 0 and below 1; got 95. To fix: write
        95 % as 0.95.
    """
    kind = Integral if whole else Real
    ok = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if (
        ok
        and (least is None or value >= least)
        and (most is None or value <= most)
        and (above is None or value > above)
        and (below is None or value < below)
    ):
        return
    rules = [f"{least:g} or more"] if least is not None else []
    limits = (("above", above), ("at most", most), ("below", below))
    rules += [f"{word} {limit:g}" for word, limit in limits if limit is not None]
    what = "" if ok else "a whole number " if whole else "a number "
    of = "of " if what and least is not None else ""
    share = ok and 1 in (most, below) and 2 <= value <= 100
    remedy = f" To fix: write {percent(value / 100)} as {value / 100:g}." if share else ""
    rule = f"{what}{of}{' and '.join(rules)}".strip()
    raise CredalError(f"{name} must be {rule}; got {value!r}.{remedy}")


def check_choice(value: object, choices: Collection[str], *, name: str) -> None:
    """Refuse a name that is not among those there are.

    Raises:
        CredalError: If it is not.

    Example:
        >>> check_choice("poc", ("pocc", "softmax"), name="method")
        Traceback (most recent call last):
        credalearn.errors.CredalError: method must be one of 'pocc', 'softmax'; got 'poc'. To fix:
        take 'pocc'.
    """
    if isinstance(value, str) and value in choices:
        return
    near = nearest(value, choices) if isinstance(value, str) else None
    raise CredalError(
        f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}. To fix: take "
        f"{'one of these' if near is None else repr(near)}."
    )


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` was probably meant to be; None if none is close.

    Example:
        >>> nearest("lable", ["item", "label"]), nearest("cat", ["zebra"])
        ('label', None)
    """
    close = {folded(each): each for each in words}
    found = get_close_matches(folded(word), close, n=1, cutoff=0.7)
    return close[found[0]] if found else None


def folded(word: str) -> str:
    """A name without case, spaces, hyphens, underscores and dots."""
    return "".join(letter for letter in word.casefold() if letter not in " \t-_.")


def refuse_masked(values: Any, *, name: str) -> None:
    """Refuse an array of NumPy with a masked value, which an array without a mask would show."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = tuple(int(each[0]) for each in np.nonzero(np.ma.getmaskarray(values)))
        raise CredalError(
            f"{name} must have no masked value; that at {place} is. To fix: fill or drop it."
        )


def check_option(
    value: float, inside: Callable[[Any], bool], *, name: str, rule: str, remedy: str
) -> None:
    """Refuse what is no number, such as a text or an array, or out of range; NaN always is.

    Raises:
        CredalError: If it is.

    Example:
        >>> above_0 = lambda number: number > 0
        >>> check_option("2", above_0, name="temperature", rule="above 0", remedy="give 1.0")
        Traceback (most recent call last):
        credalearn.errors.CredalError: temperature must be above 0; got '2'. To fix: give 1.0.
    """
    if not isinstance(value, Real) or not inside(value):
        raise CredalError(f"{name} must be {rule}; got {value!r}. To fix: {remedy}.")


def check_whole(value: int, *, least: int, name: str, remedy: str) -> None:
    """Refuse what is no whole number of ``least`` or more; 2.0 and True are none.

    Raises:
        CredalError: If it is none.

    Example:
        >>> check_whole(2.0, least=1, name="splits", remedy="give 20")
        Traceback (most recent call last):
        credalearn.errors.CredalError: splits must be a whole number of 1 or more; got 2.0. To fix:
        give 20.
    """
    check_option(
        value,
        lambda number: (
            number >= least and isinstance(number, Integral) and not isinstance(number, bool)
        ),
        name=name,
        rule=f"a whole number of {least} or more",
        remedy=remedy,
    )


def near(word: str, words: Iterable[str]) -> list[str]:
    """Those of ``words`` that ``word`` may be a slip of, the nearest first.

    Capital letters, spaces, hyphens, underscores and dots aside, a slip is one letter of up to
    five, two of up to eleven, a quarter of the letters of longer words.

    Example:
        >>> near("Votes-CSV", ["items.csv", "vote.csv", "votes.csv"])
        ['votes.csv', 'vote.csv']
    """
    most = 1 if len(word) <= 5 else max(2, len(word) // 4)
    close = sorted((edit_distance(folded(word), folded(each), most), each) for each in words)
    return [each for distance, each in close if distance <= most]


def edit_distance(first: str, second: str, most: int = 3) -> int:
    """Letters to insert, delete, replace or swap with their neighbor; ``most + 1`` if more.

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
