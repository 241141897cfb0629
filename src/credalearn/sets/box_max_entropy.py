"""The largest entropy among the distributions between two bounds.

Shapes: N items, K classes.
"""

from __future__ import annotations

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets.hull_entropy import bits
from credalearn.sets.intervals import Intervals

_MAX_STEPS = 100  # a bracket halved 60 times is exact in float64; Newton needs about four


def max_entropy_box(lower: ArrayLike, upper: ArrayLike) -> Tensor:
    r"""Largest entropy over :math:`\{p \in \Delta : \ell \le p \le u\}`, in bits, shape (N,).

    Exact: the maximum is :math:`p_k = \min(\max(t, \ell_k), u_k)` with the level t at which p sums
    to 1. The sum is piecewise linear in t, so Newton's step lands on the level once it stands on
    the right piece; a bracket keeps it from going astray.

    Args:
        lower: Lower probabilities, shape (N, K).
        upper: Upper probabilities, shape (N, K).

    Example:
        The first class holds at least 0.6; the rest is shared evenly.

        >>> import torch
        >>> max_entropy_box(torch.tensor([[0.6, 0.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0]]))
        tensor([1.3710])
    """
    box = Intervals(lower, upper)
    return bits(_flattest(box.lower, box.upper))


def _flattest(lower: Tensor, upper: Tensor) -> Tensor:
    """The member of each box nearest to uniform: p = clip(t, l, u) with sum 1, shape (N, K)."""
    low, high = lower.amin(1, keepdim=True), upper.amax(1, keepdim=True)
    level = torch.full_like(low, 1 / lower.shape[1]).clamp(low, high)
    rounding = math.sqrt(lower.shape[1]) * torch.finfo(lower.dtype).eps  # of a sum of K terms
    for _ in range(_MAX_STEPS):
        point = torch.minimum(torch.maximum(level, lower), upper)
        missing = 1 - point.sum(1, keepdim=True)
        low, high = torch.where(missing > 0, level, low), torch.where(missing > 0, high, level)
        done = (missing.abs() <= rounding) | (high - low <= rounding)
        if bool(done.all()):
            break
        slope = (point == level).sum(1, keepdim=True)  # classes free to follow the level
        step = level + missing / slope  # none free: ±inf, and the middle of the bracket serves
        step = torch.where((low < step) & (step < high), step, (low + high) / 2)
        level = torch.where(done, level, step)
    return point
