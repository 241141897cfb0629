"""Checks of options: numbers in a range and names among those there are."""

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from credalearn.errors import CredalError


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
    """Refuse what is no whole number of ``least`` or more; 2.0 is none.

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
        lambda number: number >= least and isinstance(number, Integral),
        name=name,
        rule=f"a whole number of {least} or more",
        remedy=remedy,
    )


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


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that this one may be a slip of, capital letters aside; None if none is near.

    Example:
        >>> nearest("Votes.CSV", ["items.csv", "votes.csv"]), nearest("x", ["items.csv"])
        ('votes.csv', None)
    """
    spelled = {each.casefold(): each for each in names}
    found = get_close_matches(name.casefold(), spelled, n=1)
    return spelled[found[0]] if found else None
