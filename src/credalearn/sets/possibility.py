"""Credal sets given by how possible each class is at most."""

from dataclasses import dataclass
from typing import final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import SUM_TOLERANCE, as_floats, require
from credalearn.sets._greedy import greedy
from credalearn.sets.base import CredalSet


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Possibility(CredalSet):
    r"""A batch of sets :math:`Q = \{p \in \Delta : p(A) \le \max_{k \in A} \pi_k \;\forall A\}`.

    The level :math:`\pi_k` says how possible class k is, from 0 to 1; an event is as possible as
    its most possible class (Dubois and Prade, 1988, 1992). "At most 0.2 on anything but cat
    or dog" is (1, 1, 0.2, 0.2, …). Up to three classes this is a box; from four on it is smaller.

    Args:
        levels: π in [0, 1], shape (N, K), the largest of each row 1.
        soft: The soft label that each set was made from, shape (N, K), a member of its set.

    Example:
        Classes 1 and 2 share at most 0.4, and class 2 has at most 0.1 of it.

        >>> import torch
        >>> sets = Possibility(torch.tensor([[1.0, 0.4, 0.1]]))
        >>> sets.lower, sets.upper
        (tensor([[0.6000, 0.0000, 0.0000]]), tensor([[1.0000, 0.4000, 0.1000]]))
        >>> sets.worst_target(torch.tensor([[0.0, 1.0, 2.0]])), sets.diameter()
        (tensor([[0.6000, 0.3000, 0.1000]]), tensor([0.4000]))
    """

    levels: Tensor

    def __init__(self, levels: "ArrayLike", *, soft: "ArrayLike | None" = None) -> None:
        levels = as_floats(levels, name="levels", ndim=2).detach()
        require(
            levels >= 0,
            rule="0 <= levels must hold for every class",
            remedy="clamp the levels at 0",
            levels=levels,
        )
        top = levels.amax(1, keepdim=True)
        require(
            (top - 1).abs() <= SUM_TOLERANCE,
            rule="the largest level of each row must be 1, or the set is empty",
            remedy="divide each row by its largest level",
            levels=levels,
        )
        levels = levels / top  # exactly 1: the extremes' masses sum to the largest level
        lower = torch.ones_like(levels)
        if levels.shape[1] > 1:  # all but the largest level of the other classes
            two, place = levels.topk(2, dim=1)
            lower = 1 - two[:, :1].expand_as(levels).scatter(1, place[:, :1], two[:, 1:])
        self._keep(levels=levels, lower=lower, upper=levels)
        self._keep_soft(soft)

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """Greedy increments of the submodular max π, in the order of the cost (Shapley, 1971)."""
        return greedy(_gained, cost, self.levels, largest=largest)

    def center(self) -> Tensor:
        """The pignistic distribution (Smets, 1990), shape (N, K).

        The mean of the greedy members over all orders, which is the Shapley value of max π.
        """
        falling, order = self.levels.sort(dim=1, descending=True)
        steps = -falling.diff(dim=1, append=torch.zeros_like(falling[:, :1]))
        shares = steps / torch.arange(1, self.num_classes + 1, device=steps.device)
        return torch.zeros_like(shares).scatter(1, order, shares.flip(1).cumsum(1).flip(1))

    def diameter(self) -> Tensor:
        r"""Largest total-variation distance between two members: the second largest level, (N,).

        Exact: the largest :math:`\max_A \pi + \max_{A^c} \pi - 1` over events A.
        """
        if self.num_classes == 1:
            return torch.zeros_like(self.levels[:, 0])
        return self.levels.topk(2, dim=1).values[:, 1]

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        """The nested events of the least possible classes: no other event is stricter."""
        rising, order = self.levels.sort(dim=1)
        return (q.gather(1, order).cumsum(1) <= rising + tolerance).all(1)


def _gained(order: Tensor, levels: Tensor) -> Tensor:
    """What each class adds to the level of the classes before it in order."""
    event = levels.gather(1, order).cummax(1).values
    return torch.zeros_like(levels).scatter_(1, order, event.diff(dim=1, prepend=0 * event[:, :1]))
