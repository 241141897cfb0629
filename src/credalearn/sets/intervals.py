"""Credal sets given by one probability interval per class."""

from dataclasses import dataclass
from typing import final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import SUM_TOLERANCE, as_floats, require, require_bounds
from credalearn.sets._greedy import greedy
from credalearn.sets.base import CredalSet
from credalearn.sets.diameter import ENUMERATED_SPLITS, evenest_split

_FLOAT32_ROUNDING = torch.finfo(torch.float32).eps / 2  # 0.1 in float32 exceeds 0.1 in float64


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
        self, lower: "ArrayLike", upper: "ArrayLike", *, soft: "ArrayLike | None" = None
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
        return greedy(poured, cost, self.lower, self.upper, largest=largest)

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


def poured(order: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """The member of each box (N, ..., K) with as much as possible on the first classes in order."""
    room = (upper - lower).gather(-1, order)
    left = (room - room.cumsum(-1)).add_(1 - lower.sum(-1, keepdim=True))
    return lower.scatter_add(-1, order, torch.minimum(left, room, out=left).clamp_(min=0))


def middle(lower: Tensor, upper: Tensor) -> Tensor:
    """The same share of the way up for each class of boxes (..., K)."""
    width = upper - lower
    total = width.sum(-1, keepdim=True)
    free = (1 - lower.sum(-1, keepdim=True)).clamp(min=0)
    return lower + torch.where(total > 0, free / total, 0).clamp(max=1) * width
