"""Credal sets given by a lower bound on the probability of each class."""

from dataclasses import dataclass
from typing import final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import SUM_TOLERANCE, as_floats, require
from credalearn.sets.base import CredalSet


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class LowerBounds(CredalSet):
    r"""A batch of sets :math:`Q = \{q \in \Delta : q \ge \ell\} = \ell + r\Delta`.

    The free mass :math:`r = 1 - \sum_k \ell_k` may go to any class. A hard label is a unit vector
    (r = 0), "don't know" is all zeros (r = 1).

    Args:
        lower: Lower probabilities, shape (N, K), each at least 0, each row's sum at most 1.
        soft: The soft label that each set was made from, shape (N, K), a member of its set.

    Attributes:
        free: The free mass r, shape (N,).

    Example:
        >>> import torch
        >>> sets = LowerBounds(torch.tensor([[0.7, 0.0, 0.0]]))
        >>> cost = torch.tensor([[0.0, 1.0, 2.0]])
        >>> sets.worst(cost), sets.best(cost), sets.diameter()
        (tensor([0.6000]), tensor([0.]), tensor([0.3000]))
        >>> sets.worst_target(cost), sets.upper
        (tensor([[0.7000, 0.0000, 0.3000]]), tensor([[1.0000, 0.3000, 0.3000]]))
    """

    free: Tensor

    def __init__(self, lower: "ArrayLike", *, soft: "ArrayLike | None" = None) -> None:
        lower = as_floats(lower, name="lower", ndim=2).detach().clone()
        require(
            lower >= 0,
            rule="0 <= lower must hold for every class",
            remedy="clamp the bounds at 0",
            lower=lower,
        )
        require(
            lower.sum(1, keepdim=True) <= 1 + SUM_TOLERANCE,
            rule="sum(lower) <= 1 must hold, or the set is empty",
            remedy="lower the bounds until they sum to 1 or less",
            lower=lower,
        )
        free = (1 - lower.sum(1)).clamp(min=0)
        self._keep(lower=lower, upper=(lower + free[:, None]).clamp(max=1), free=free)
        self._keep_soft(soft)

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """All free mass on the dearest or the cheapest class."""
        chosen = cost.argmax(1, keepdim=True) if largest else cost.argmin(1, keepdim=True)
        return self.lower.scatter_add(1, chosen, self.free[:, None])

    def center(self) -> Tensor:
        r"""The free mass spread evenly, :math:`\ell + r/K`, shape (N, K)."""
        return self.lower + self.free[:, None] / self.num_classes

    def diameter(self) -> Tensor:
        """Largest total-variation distance between two members: exactly r, shape (N,)."""
        return self.free if self.num_classes > 1 else torch.zeros_like(self.free)

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        return (q >= self.lower - tolerance).all(1)
