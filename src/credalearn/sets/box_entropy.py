"""The largest and the smallest entropy among the distributions between two bounds."""

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.special import entr

from credalearn.sets.diameter import class_sets
from credalearn.sets.hull_entropy import bits
from credalearn.sets.intervals import Intervals

ENUMERATED_CLASSES = 10  # 10 · 2^9 vertices: a few seconds for 10,000 boxes
_CHUNK = 2**20  # numbers stored at once: 8 MB
_ROUNDING = 1e-12
_MAX_STEPS = 100  # a bracket halved 60 times is exact in float64; Newton needs about four


def max_entropy_box(lower: "ArrayLike", upper: "ArrayLike") -> Tensor:
    r"""Largest entropy over :math:`\{p \in \Delta : \ell \le p \le u\}`, in bits, shape (N,).

    Exact: the maximum is :math:`p_k = \min(\max(t, \ell_k), u_k)` with the level t at which p sums
    to 1, found by Newton's steps within a bracket.

    Both bounds have shape (N, K).

    Example:
        >>> import torch
        >>> max_entropy_box(torch.tensor([[0.6, 0.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0]]))
        tensor([1.3710])
    """
    box = Intervals(lower, upper)
    low, high = box.lower.amin(1, keepdim=True), box.upper.amax(1, keepdim=True)
    level = torch.full_like(low, 1 / box.num_classes).clamp(low, high)
    rounding = math.sqrt(box.num_classes) * torch.finfo(low.dtype).eps  # of a sum of K terms
    for _ in range(_MAX_STEPS):
        point = torch.minimum(torch.maximum(level, box.lower), box.upper)
        missing = 1 - point.sum(1, keepdim=True)
        low, high = torch.where(missing > 0, level, low), torch.where(missing > 0, high, level)
        done = (missing.abs() <= rounding) | (high - low <= rounding)
        if bool(done.all()):
            break
        slope = (point == level).sum(1, keepdim=True)  # classes free to follow the level
        step = level + missing / slope  # none free: ±inf, and the middle of the bracket serves
        step = torch.where((low < step) & (step < high), step, (low + high) / 2)
        level = torch.where(done, level, step)
    return bits(point)


def min_entropy_box(lower: "ArrayLike", upper: "ArrayLike") -> Tensor:
    r"""Smallest entropy over :math:`\{p \in \Delta : \ell \le p \le u\}`, in bits, shape (N,).

    Exact up to 10 classes, where every vertex is tried, and for any number of classes when
    :math:`\ell` and :math:`u` are ordered alike. Beyond, the entropy of a member of the box: never
    below the minimum, and never above those of the greedy orders by :math:`\ell`, :math:`u` and
    :math:`\ell + u`, each improved by exchanges. With 10 classes that missed the minimum on about
    1 % of 6,000 random boxes, by at most 0.13 bits.

    Both bounds have shape (N, K).

    Example:
        >>> import torch
        >>> min_entropy_box(torch.tensor([[0.4, 0.1]]), torch.tensor([[0.9, 0.6]]))
        tensor([0.4690])
    """
    box = Intervals(lower, upper)
    few = box.num_classes <= ENUMERATED_CLASSES
    solve = _enumerated if few else _searched
    width = box.num_classes * (2**box.num_classes if few else 1)
    rows = max(1, _CHUNK // width)
    chunks = (torch.split(bound.double(), rows) for bound in (box.lower, box.upper))
    nats = torch.cat([solve(low, high) for low, high in zip(*chunks, strict=True)])
    return (nats / math.log(2)).to(box.lower.dtype)


def _enumerated(lower: Tensor, upper: Tensor) -> Tensor:
    """Least entropy (in nats) over all vertices: all classes at a bound but one, shape (N,)."""
    raised = class_sets(lower.shape[1]).to(lower)  # (2^K, K): which classes stand at their upper
    width = upper - lower
    # What is left to pour, which rounding must not push out of the box.
    free = (1 - lower.sum(1, keepdim=True)).clamp(min=0).minimum(width.sum(1, keepdim=True))
    at_lower, gain = entr(lower), entr(upper) - entr(lower)
    rest = free - width @ raised.T  # (N, 2^K): what is left for the one class in between
    widest = width.amax(1, keepdim=True)
    row, subset = ((rest >= -_ROUNDING) & (rest <= widest + _ROUNDING)).nonzero(as_tuple=True)
    rest = rest[row, subset][:, None]
    between = (lower[row] + rest.clamp(min=0)).minimum(upper[row])
    values = at_lower.sum(1)[row] + (gain[row] * raised[subset]).sum(1)
    values = values[:, None] + entr(between) - at_lower[row]
    possible = (rest <= width[row] + _ROUNDING) & (raised[subset] == 0)
    least = values.masked_fill(~possible, torch.inf).amin(1)
    return lower.new_full((len(lower),), torch.inf).scatter_reduce(0, row, least, "amin")


def _searched(lower: Tensor, upper: Tensor) -> Tensor:
    """Entropy (in nats) of the best vertex found by greedy orders and exchanges, shape (N,)."""
    box = Intervals(lower, upper)
    starts = (box.worst_target(key) for key in (lower, upper, lower + upper))
    return torch.stack([entr(_exchanged(lower, upper, start)).sum(1) for start in starts]).amin(0)


def _exchanged(lower: Tensor, upper: Tensor, point: Tensor) -> Tensor:
    """Move mass between the class in between and another for as long as entropy falls, (N, K)."""
    point = point.clone()
    running = torch.arange(len(point), device=point.device)
    while len(running):
        low, high, here = lower[running], upper[running], point[running]
        between = torch.minimum(high - here, here - low).argmax(1, keepdim=True)
        own, own_low, own_high = (x.gather(1, between) for x in (here, low, high))
        # Entropy is concave along a move, so only its two ends count.
        out = torch.minimum(high - here, own - own_low)
        back = torch.minimum(here - low, own_high - own)
        after_out = entr(here + out) + entr((own - out).clamp(min=0))
        after_back = entr((here - back).clamp(min=0)) + entr(own + back)
        change = torch.minimum(after_out, after_back) - entr(here) - entr(own)
        change = change.scatter(1, between, 0)  # a class has nothing to exchange with itself
        fall, other = change.min(1, keepdim=True)
        moved = torch.where(after_out <= after_back, out, -back).gather(1, other)
        here = here.scatter_add(1, other, moved).scatter_add(1, between, -moved).clamp(min=0)
        falls = fall[:, 0] < -_ROUNDING
        running = running[falls]
        point[running] = here[falls]
    return point
