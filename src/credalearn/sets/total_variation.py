"""Credal sets given by a distribution and how far from it others may lie."""

from dataclasses import dataclass
from typing import final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import as_distributions, as_one_per_item, require
from credalearn.sets._greedy import greedy
from credalearn.sets.base import CredalSet
from credalearn.sets.diameter import ENUMERATED_SPLITS, evenest_split


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TotalVariationBall(CredalSet):
    r"""A batch of sets :math:`Q = \{p \in \Delta : \frac12\sum_k |p_k - q_k| \le \rho\}`.

    ρ = 0 is q alone, ρ = 1 all distributions. Up to three classes this is the box between its
    bounds; from four on it is smaller: the box allows +ρ for two classes and −ρ for two others.

    Args:
        q: The distribution in the middle, shape (N, K); also the ``soft`` label.
        radius: ρ in [0, 1], shape (N,), or one number for all items.

    Example:
        The dearest class gains 0.2, taken from the cheapest, which has 0.1, then from the next.

        >>> import torch
        >>> sets = TotalVariationBall(torch.tensor([[0.6, 0.3, 0.1]]), 0.2)
        >>> sets.worst_target(torch.tensor([[2.0, 1.0, 0.0]])), sets.diameter()
        (tensor([[0.8000, 0.2000, 0.0000]]), tensor([0.4000]))
        >>> sets.lower, sets.upper
        (tensor([[0.4000, 0.1000, 0.0000]]), tensor([[0.8000, 0.5000, 0.3000]]))
    """

    q: Tensor
    radius: Tensor

    def __init__(self, q: "ArrayLike", radius: "ArrayLike") -> None:
        q = as_distributions(q, name="q", ndim=2).detach().clone()
        radius = as_one_per_item(radius, len(q), name="radius").to(q)
        require(
            ((radius >= 0) & (radius <= 1))[:, None],
            rule="0 <= radius <= 1 must hold, as no two distributions are farther apart",
            remedy="clamp it",
            radius=radius,
        )
        reach = radius[:, None] if q.shape[1] > 1 else torch.zeros_like(q)  # one class: one point
        self._keep(q=q, radius=radius, soft=q)
        self._keep(lower=(q - reach).clamp(min=0), upper=(q + reach).clamp(max=1))

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """Up to ρ moved from the cheapest (or dearest) classes to the dearest (or cheapest)."""
        return greedy(_moved, cost, self.q, self.radius, largest=largest)

    def center(self) -> Tensor:
        """The distribution q, shape (N, K)."""
        return self.q

    def diameter(self) -> Tensor:
        r"""Largest total-variation distance between two members, shape (N,).

        The maximum over class sets S of :math:`\min(\rho, q(S)) + \min(\rho, 1 - q(S))`. Exact up
        to 12 classes, where every S is tried. Beyond, an upper bound, at most
        :math:`\min(1, 2\rho)`, and exact where the top probability is ½ or more, or at most 1 − 2ρ.
        """
        if self.num_classes == 1:
            return torch.zeros_like(self.radius)
        many = self.num_classes > ENUMERATED_SPLITS
        part = self.q.amax(1).clamp(0.5, 1) if many else evenest_split(self.q)
        return self.radius.minimum(part) + self.radius.minimum(1 - part)

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        return (q - self.q).abs().sum(1) / 2 <= self.radius + tolerance


def _moved(order: Tensor, q: Tensor, radius: Tensor) -> Tensor:
    """The ball's q after ρ is taken from the last classes in order and given to the first."""
    mass = q.gather(1, order)
    total = mass.cumsum(1)
    # The last class loses all that it has, exactly, if that is at most ρ.
    taken = (total - total[:, -1:]).add_(radius[:, None]).clamp_(min=0).minimum(mass)
    left = q.scatter_add(1, order, -taken)
    return left.scatter_add_(1, order[:, :1], taken.sum(1, keepdim=True))
