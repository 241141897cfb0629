"""Checks of arguments: numbers within a range and names among the known ones."""

import math
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from operator import ge, gt, le, lt
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
    """Raise unless ``value`` is a finite number within its range; True and False are no numbers."""
    kind = Integral if whole else Real
    ok = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    limits = (
        *((least, ge, "{:g} or more"), (above, gt, "above {:g}")),
        *((most, le, "at most {:g}"), (below, lt, "below {:g}")),
    )
    if ok and all(limit is None or within(value, limit) for limit, within, _ in limits):
        return
    rules = [text.format(limit) for limit, _, text in limits if limit is not None]
    what = "" if ok else "a whole number " if whole else "a number "
    of = "of " if what and least is not None else ""
    # A threshold of scores is no percentage.
    share = ok and 1 in (most, below) and 2 <= value <= 100 and name != "threshold"
    remedy = f" To fix: write {percent(value / 100)} as {value / 100:g}." if share else ""
    rule = f"{what}{of}{' and '.join(rules)}".strip()
    raise CredalError(f"{name} must be {rule}; got {value!r}.{remedy}")


def check_choice(value: object, choices: Collection[str], *, name: str) -> None:
    """Raise unless ``value`` is one of the names; the message suggests the nearest."""
    if isinstance(value, str) and value in choices:
        return
    near = nearest(value, choices) if isinstance(value, str) else None
    raise CredalError(
        f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}. To fix: take "
        f"{'one of these' if near is None else repr(near)}."
    )


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The most similar of ``words``; None if none is close."""
    close = {folded(each): each for each in words}
    matches = get_close_matches(folded(word), close, n=1, cutoff=0.7)
    return close[matches[0]] if matches else None


def folded(word: str) -> str:
    """A name without case, spaces, hyphens, underscores and dots."""
    return "".join(letter for letter in word.casefold() if letter not in " \t-_.")


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, "", NaN, NaT or the NA of pandas."""
    return not value if isinstance(value, str) else str(value) in ("None", "nan", "NaT", "<NA>")


def check_present(values: Iterable[object], *, name: str) -> None:
    """Raise if an item has no class, or no group: all of these would count as one large group."""
    what, fix = "class", "leave out items without one"
    if name == "groups":
        what, fix = "group", "give an item that stands alone a group of its own"
    missing = next((item for item, value in enumerate(values) if is_missing(value)), None)
    if missing is not None:
        rule = f"{name} must name a {what} for every item; item {missing} has none"
        raise CredalError(f"{rule}. To fix: {fix}.")


def refuse_masked(values: Any, *, name: str) -> None:
    """Raise if a NumPy array has a masked value, which conversion would reveal."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = tuple(int(each[0]) for each in np.nonzero(np.ma.getmaskarray(values)))
        raise CredalError(
            f"{name} must have no masked value; that at {place} is. To fix: fill or drop it."
        )
