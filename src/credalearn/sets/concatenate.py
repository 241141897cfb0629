"""Batches of credal sets, one after the other, as one batch.

Shapes: N items, V vertices, K classes.
"""

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets.base import CredalSet
from credalearn.sets.intervals import Intervals
from credalearn.sets.lower_bounds import LowerBounds
from credalearn.sets.mean_intervals import MeanIntervals
from credalearn.sets.possibility import Possibility
from credalearn.sets.total_variation import TotalVariationBall
from credalearn.sets.vertices import Vertices

# The most classes with which every set of a kind is the box between its bounds.
_BOX_CLASSES: dict[type[CredalSet], float] = {
    LowerBounds: float("inf"),
    Intervals: float("inf"),
    TotalVariationBall: 3,
    Possibility: 3,
    MeanIntervals: 3,
    Vertices: 2,
}


def concatenate(sets: Sequence[CredalSet]) -> CredalSet:
    """Several batches of credal sets as one, in order: each set and its ``reference`` are kept.

    Batches of one kind give that kind. Different kinds give :class:`Intervals` where that is exact:
    :class:`LowerBounds` and :class:`Intervals` always, :class:`TotalVariationBall` and
    :class:`Possibility` up to three classes, :class:`Vertices` of two.

    Example:
        >>> import credalearn as cl
        >>> monday, friday = cl.from_votes([[1, 3]]), cl.from_votes([[2, 0], [1, 1]])
        >>> cl.concatenate([monday, friday])
        LowerBounds(3 sets, 2 classes, float32 on cpu)
    """
    batches = list(sets)
    kinds = _check(batches)
    with_soft = len(kinds) > 1 or any(each.soft is not None for each in batches)
    soft = torch.cat([each.reference for each in batches]) if with_soft else None
    if len(kinds) > 1:
        lower, upper = (torch.cat([getattr(x, at) for x in batches]) for at in ("lower", "upper"))
        return Intervals(lower, upper, soft=soft)
    joined: CredalSet = object.__new__(kinds[0])  # of sets that are checked already
    for each in fields(kinds[0]):
        parts = [getattr(batch, each.name) for batch in batches]
        parts = parts if each.name in ("lower", "upper", "soft") else _as_many(parts, each.name)
        joined._keep(**{each.name: soft if each.name == "soft" else torch.cat(parts)})
    return joined


def _check(batches: list[CredalSet]) -> list[type[CredalSet]]:
    """The kinds, in order of appearance, of batches that can be joined."""
    if not batches or not all(isinstance(each, CredalSet) for each in batches):
        raise CredalError("concatenate takes a list of one or more credal sets.")
    counts = list(dict.fromkeys(each.num_classes for each in batches))
    if len(counts) > 1:
        raise CredalError(f"the sets must be over the same classes; got {counts} classes.")
    kinds = list(dict.fromkeys(type(each) for each in batches))
    other = [kind.__name__ for kind in kinds if counts[0] > _BOX_CLASSES[kind]]
    if len(kinds) > 1 and other:
        raise CredalError(
            f"{' and '.join(kind.__name__ for kind in kinds)} of {counts[0]} classes have no kind "
            f"in common: {other[0]} is not a box. To fix: make all labels with one rule."
        )
    return kinds


def _as_many(parts: list[Tensor], name: str) -> list[Tensor]:
    """Parts (N, V, …) of one V, with points or people added that change neither set nor center."""
    if parts[0].ndim == 1 or len({part.shape[1] for part in parts}) == 1:
        return parts
    most = max(part.shape[1] for part in parts)
    more = [part.mean(1, keepdim=True) if name == "points" else 0 * part[:, :1] for part in parts]
    fill = [
        each.repeat_interleave(most - len(part[0]), 1)
        for each, part in zip(more, parts, strict=True)
    ]
    return [torch.cat(pair, 1) for pair in zip(parts, fill, strict=True)]
