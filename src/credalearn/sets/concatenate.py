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
    with_soft = len(kinds) > 1 or any(each.soft is not None for each in batches)
    soft = torch.cat([each.reference for each in batches]) if with_soft else None
    if len(kinds) > 1:
        lower, upper = (torch.cat([getattr(x, at) for x in batches]) for at in ("lower", "upper"))
        return Intervals(lower, upper, soft=soft)
    joined: CredalSet = object.__new__(kinds[0])  # of sets that are checked already
    for name in (each.name for each in fields(kinds[0]) if each.name != "soft"):
        parts = [getattr(batch, name) for batch in batches]
        parts = parts if name in ("lower", "upper") else _as_many(parts, name)
        joined._keep(**{name: torch.cat(parts)})
    joined._keep(soft=soft)
    return joined


def _as_many(parts: list[Tensor], name: str) -> list[Tensor]:
    """Parts (N, V, …) of one V, with points or people added that change neither set nor center."""
    most = max(part.shape[1] for part in parts) if parts[0].ndim > 1 else 0
    for place, part in enumerate(parts):
        if part.ndim > 1 and part.shape[1] < most:
            more = part.mean(1, keepdim=True) if name == "points" else 0 * part[:, :1]
            parts[place] = torch.cat([part, more.repeat_interleave(most - part.shape[1], 1)], 1)
    return parts
