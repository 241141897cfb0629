"""Credal sets given by one probability interval per class."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets.base import CredalSet
from credalearn.sets.checks import SUM_TOLERANCE, as_floats, require, require_bounds
from credalearn.sets.diameter import ENUMERATED_SPLITS, evenest_split

_FLOAT32_ROUNDING = torch.finfo(torch.float32).eps / 2  # 0.1 in float32 exceeds 0.1 in float64
# Numbers sorted at once on a CPU: they stay in the cache. With several threads torch would split a
# larger block, and the threads wait for each other: three times slower on a busy machine.
_BLOCK, _BLOCK_OF_SEVERAL_THREADS = 2**17, 2**15


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Intervals(CredalSet):
    r"""A batch of sets :math:`Q = \{q \in \Delta : \ell \le q \le u\}`.

    The bounds are tightened to the reachable ones, which changes no set: :math:`u_k \leftarrow
    \min(u_k, 1 - \sum_{i \ne k} \ell_i)` and :math:`\ell_k \leftarrow \max(\ell_k, 1 - \sum_{i \ne
    k} u_i)` (de Campos, Huete and Moral, 1994).

    Args:
        lower: Lower probabilities in [0, 1], shape (N, K).
        upper: Upper probabilities, same shape. Bounds of float32 and float64 give float64 sets.
        soft: The soft label that each set was made from, shape (N, K), a member of its set.

    Example:
        An upper bound of 0.9 cannot be reached with lower bounds of 0.1 and 0.1: it becomes 0.8.

        >>> import torch
        >>> sets = Intervals(torch.tensor([[0.2, 0.1, 0.1]]), torch.tensor([[0.9, 0.5, 0.4]]))
        >>> sets.worst(torch.tensor([[1.0, 0.0, 0.0]])), sets.upper
        (tensor([0.8000]), tensor([[0.8000, 0.5000, 0.4000]]))
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, *, soft: ArrayLike | None = None
    ) -> None:
        lower = as_floats(lower, name="lower", ndim=2).detach()
        upper = as_floats(upper, name="upper", ndim=2).detach().to(lower.device)
        if lower.dtype != upper.dtype and lower.shape == upper.shape:
            lower, upper = lower.double(), upper.double()
            rounded = (lower - upper).abs() <= _FLOAT32_ROUNDING
            upper = torch.where(rounded, upper.maximum(lower), upper)
        require_bounds(lower, upper)
        require(
            (lower.sum(1, keepdim=True) <= 1 + SUM_TOLERANCE)
            & (upper.sum(1, keepdim=True) >= 1 - SUM_TOLERANCE),
            rule="sum(lower) <= 1 <= sum(upper) must hold, or the set is empty",
            remedy="widen the intervals",
            lower=lower,
            upper=upper,
        )
        reachable_upper = 1 - (lower.sum(1, keepdim=True) - lower)
        reachable_lower = 1 - (upper.sum(1, keepdim=True) - upper)
        # Rounding never makes the bounds cross or leave the given ones.
        lower = torch.minimum(torch.maximum(lower, reachable_lower), upper)
        self._keep(lower=lower, upper=torch.maximum(torch.minimum(upper, reachable_upper), lower))
        self._keep_soft(soft)

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """Free mass poured into the dearest (or cheapest) classes first (de Campos et al.)."""
        return poured(self.lower, self.upper, cost, largest=largest)

    def center(self) -> Tensor:
        r"""The same share of the way up per class, :math:`\ell + t(u - \ell)`, shape (N, K)."""
        return middle(self.lower, self.upper)

    def diameter(self) -> Tensor:
        r"""Largest total-variation distance between two members, shape (N,).

        With widths :math:`w = u - \ell` it is the maximum over class sets S of
        :math:`\min(\sum_S w, \sum_{S^c} w, 1 - \sum\ell, \sum u - 1)`. Exact up to 12 classes,
        where every S is tried; beyond, the upper bound :math:`\min(1 - \sum\ell, \sum u - 1)`.
        """
        bound = torch.minimum(1 - self.lower.sum(1), self.upper.sum(1) - 1).clamp(min=0)
        if self.num_classes > ENUMERATED_SPLITS:
            return bound
        return torch.minimum(bound, evenest_split(self.upper - self.lower))

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        return ((q >= self.lower - tolerance) & (q <= self.upper + tolerance)).all(1)


def poured(lower: Tensor, upper: Tensor, cost: Tensor, *, largest: bool) -> Tensor:
    """The member of largest or smallest expected cost of each box (N, ..., K), by one sort."""
    found, size = lower.clone(), max(1, len(cost))
    if cost.device.type == "cpu":
        block = _BLOCK if torch.get_num_threads() == 1 else _BLOCK_OF_SEVERAL_THREADS
        size = max(1, size * block // max(1, cost.numel()))
    for low, high, costs in zip(*(torch.split(x, size) for x in (found, upper, cost)), strict=True):
        order = _ranked(costs, largest=largest)
        room = (high - low).gather(-1, order)
        left = (room - room.cumsum(-1)).add_(1 - low.sum(-1, keepdim=True))
        low.scatter_add_(-1, order, torch.minimum(left, room, out=left).clamp_(min=0))
    return found


def _ranked(cost: Tensor, *, largest: bool) -> Tensor:
    """The classes by cost (..., K), the dearest or the cheapest first; ties by index."""
    # NumPy sorts whole numbers, the bits of a cost and then its index, 20 times as fast as torch.
    plain = type(cost) is Tensor and cost.device.type == "cpu"  # subclasses have no NumPy array
    if not plain or cost.dtype != torch.float32:
        return cost.argsort(dim=-1, descending=largest, stable=True)
    rising = 0.0 - cost if largest else cost + 0.0  # no −0.0, whose bits are not those of 0.0
    bits = rising.numpy().view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF  # negative numbers in the order of their values
    keys = bits.astype(np.int64)
    keys <<= 32
    keys |= np.arange(cost.shape[-1])
    keys.sort(axis=-1)
    keys &= 0xFFFFFFFF
    return torch.from_numpy(keys)


def middle(lower: Tensor, upper: Tensor) -> Tensor:
    """The same share of the way up for each class of boxes (..., K)."""
    width = upper - lower
    total = width.sum(-1, keepdim=True)
    free = (1 - lower.sum(-1, keepdim=True)).clamp(min=0)
    return lower + torch.where(total > 0, free / total, 0).clamp(max=1) * width
