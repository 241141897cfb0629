"""Credal sets from S statements of people about their own certainty."""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn import sets
from credalearn._checks import is_missing
from credalearn.errors import CredalError
from credalearn.sets._checks import as_floats, as_tensor, require


def from_statements(
    top: Sequence[Any],
    top_percent: "ArrayLike",
    second: Sequence[Any] | None = None,
    second_percent: "ArrayLike | None" = None,
    impossible: Sequence[Collection[Any] | None] | None = None,
    *,
    classes: Sequence[Any],
    items: "ArrayLike | None" = None,
) -> "sets.Intervals | sets.MeanIntervals":
    r"""Credal labels from statements such as "cat 70 %, then dog 20 %, certainly no ship".

    A statement is the box of all distributions with at least these percentages and nothing on the
    impossible classes; everything else is open. Several people's sets about one item are averaged
    (Minkowski): a worst or best case is the mean of theirs. Contradictions, which
    :func:`~credalearn.statement_conflicts` counts, are read like this:

    - the second class is the top class: the second percentage is dropped;
    - the second percentage is the larger one: both bounds stay;
    - a named class is also called impossible: its percentage stays, and it may have more;
    - the percentages exceed 100: they are scaled to 100;
    - no other class is possible and the percentages stay below 100: they are scaled to 100.

    Args:
        top: The most probable class of each statement, length S; None, "" or NaN for "don't know".
        top_percent: Its percentage, 0 to 100, shape (S,); NaN counts as 0.
        second: The second most probable class, likewise; None, "" or NaN for no such class.
        second_percent: Its percentage.
        impossible: The classes without any probability, a list of names per statement, or None.
        classes: The K class names, in the order of the columns.
        items: Number of the item that each statement is about, 0 to N − 1, shape (S,). Default: one
            statement per item. Several give :class:`MeanIntervals`.

    Example:
        >>> sets = from_statements(["cat"], [70], ["dog"], [20], [["ship"]],
        ...                        classes=["cat", "dog", "fox", "ship"])
        >>> sets.upper
        tensor([[0.8000, 0.3000, 0.1000, 0.0000]])
        >>> from_statements(["cat", "dog"], [60, 80], classes=["cat", "dog"], items=[0, 0]).lower
        tensor([[0.3000, 0.4000]])
    """
    columns = (top, top_percent, second, second_percent, impossible)
    both, percent, excluded = _read(columns, classes)
    percent[1] = torch.where((both[0] & both[1]).any(1), 0, percent[1])
    lower, named = (percent[:, :, None] / 100 * both).sum(0), both.any(0)
    total, is_full = lower.sum(1, keepdim=True), (named | excluded).all(1, keepdim=True)
    lower = torch.where((total > 1) | (is_full & (total > 0)), lower / total, lower)
    upper = (~excluded | named).to(lower.dtype)
    if items is None:
        return sets.Intervals(lower, upper)
    number = as_tensor(items, name="items")
    count = int(number.max()) + 1 if len(number) else 0
    whole = not number.is_floating_point() and number.shape == (len(lower),)
    if not whole or set(number.tolist()) != set(range(count)):
        rule = f"items must number the item of each of the {len(lower)} statements"
        fix = "pass whole numbers, such as numpy.unique(names, return_inverse=True)[1]"
        raise CredalError(f"{rule}, from 0 on without gaps. To fix: {fix}.")
    order = number.argsort(stable=True)
    item = number[order]
    place = torch.arange(len(order)) - torch.searchsorted(item, item)  # among those of its item
    if not place.any():
        return sets.Intervals(lower[order], upper[order])
    boxes = torch.zeros(3, count, int(place.max()) + 1, len(classes), dtype=lower.dtype)
    boxes[:, item, place] = torch.stack([lower, upper, torch.ones_like(lower)])[:, order]
    return sets.MeanIntervals(boxes[0], boxes[1], boxes[2, :, :, 0])


def statement_conflicts(
    top: Sequence[Any],
    top_percent: "ArrayLike",
    second: Sequence[Any] | None = None,
    second_percent: "ArrayLike | None" = None,
    impossible: Sequence[Collection[Any] | None] | None = None,
    *,
    classes: Sequence[Any],
) -> dict[str, int]:
    """How many statements, as ``from_statements`` takes them, contradict themselves, by kind.

    Counted as stated, before any rule is applied; a statement may count more than once.

    Example:
        >>> statement_conflicts(["cat"], [60], ["cat"], [30], classes=["cat", "dog"])["above 100 %"]
        0
    """
    columns = (top, top_percent, second, second_percent, impossible)
    both, percent, excluded = _read(columns, classes)
    named, total, is_full = both.any(2), percent.sum(0), (both.any(0) | excluded).all(1)
    conflicts = {
        "second is top": (both[0] & both[1]).any(1),
        "second is larger": named[1] & (percent[1] > percent[0]),
        "named but impossible": both & excluded,
        "above 100 %": total > 100,
        "no other class, below 100 %": named.any(0) & is_full & (total < 100),
    }
    return {kind: int(found.sum()) for kind, found in conflicts.items()}


def _read(columns: Sequence[Any], classes: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Named classes, one-hot or all 0 (2, S, K), percentages (2, S), impossible classes (S, K)."""
    top, top_percent, second, second_percent, impossible = columns
    number = {name: place for place, name in enumerate(classes)}
    if len(number) < len(classes):
        raise CredalError(f"classes must be different; got {list(classes)}. To fix: drop repeats.")
    if isinstance(top, str):
        raise CredalError(f"top must be a list of classes; got {top!r}. To fix: pass [{top!r}].")
    count = len(top)
    second = [None] * count if second is None else second
    impossible = [()] * count if impossible is None else impossible
    second_percent = torch.zeros(count) if second_percent is None else second_percent
    if {len(second), len(impossible)} != {count}:
        rule = f"second and impossible must have one entry for each of the {count} statements"
        raise CredalError(f"{rule}; got {len(second)} and {len(impossible)}.")
    percents = []
    for name, values in (("top_percent", top_percent), ("second_percent", second_percent)):
        given = as_floats(values, name=name, ndim=1, finite=False).detach()
        if given.shape != (count,):
            raise CredalError(
                f"{name} must have one number per statement, {count}; got {len(given)}."
            )
        percents.append(given.nan_to_num(nan=0.0))
        require(
            ((percents[-1] >= 0) & (percents[-1] <= 100))[:, None],
            rule=f"{name} must lie between 0 and 100",
            remedy="correct the statement",
            **{name: given[:, None]},
        )
    percent = torch.stack(percents)
    if count and 0 < percent.max() <= 1:
        raise CredalError("no percentage is above 1. To fix: multiply shares by 100.")
    places = torch.tensor([[_place(name, number) for name in each] for each in (top, second)])
    named = one_hot(places + 1, len(number) + 1)[..., 1:].bool()
    text = next((each for each in impossible if isinstance(each, str) and each), None)
    if text is not None:
        fix = f"pass [{text!r}]"
        raise CredalError(
            f"impossible must have a list per statement; got {text!r}. To fix: {fix}."
        )
    lists = [() if is_missing(each) else each for each in impossible]
    excluded = [{_place(name, number) for name in each} for each in lists]
    ruled_out = torch.tensor([[k in each for k in range(len(number))] for each in excluded])
    require(
        ~ruled_out.all(1, keepdim=True) | named.any(0).any(1, keepdim=True),
        rule="a statement must leave a class possible",
        remedy="drop the statement",
        impossible=ruled_out.int(),
    )
    return named, torch.where(named.any(2), percent, 0), ruled_out


def _place(name: Any, number: dict[Any, int]) -> int:
    """The number of a class, −1 for none."""
    if is_missing(name):
        return -1
    if name not in number:
        raise CredalError(
            f"a statement names the class {name!r}; the classes are {list(number)}. To fix: "
            "correct it, or add it to the classes."
        )
    return number[name]
