"""How far an observed label distribution lies from a predicted box or distribution."""

from collections.abc import Callable

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import as_floats, require, require_shape


def as_shares(observed: ArrayLike, sets: Tensor) -> Tensor:
    """Votes or shares, each row divided by its sum, in float64 on the device of the ``sets``."""
    votes = as_floats(observed, name="observed", ndim=2).detach().to(sets.device, torch.float64)
    require_shape(votes, sets.shape, name="observed")
    total = votes.sum(1, keepdim=True)
    require(
        (votes >= 0) & (total > 0),
        rule="observed must be votes or shares by class, none below 0 and not all 0",
        remedy="leave out items without votes",
        observed=votes,
    )
    return votes / total


def box_distance(
    observed: Tensor, lower: Tensor, upper: Tensor, scale: Tensor, *, signed: bool = False
) -> Tensor:
    """The least r (0 or more unless signed) with q in [lower − r·s, upper + r·s], shape (N,)."""
    gap = torch.maximum(lower - observed, observed - upper)
    return ((gap if signed else gap.clamp(min=0)) / scale).amax(1)


def total_variation(observed: Tensor, probs: Tensor) -> Tensor:
    r""":math:`\frac12\sum_k |q_k - p_k|`, shape (N,)."""
    # Not half the sum: where rounded rows sum to 1.0000001, no class may be off by more than this.
    gap = observed - probs
    return torch.maximum(gap.clamp(min=0).sum(1), (-gap).clamp(min=0).sum(1))


def kullback_leibler(observed: Tensor, probs: Tensor) -> Tensor:
    r""":math:`\sum_k q_k \log(q_k / p_k)`, shape (N,); infinite where only q has a class."""
    return (torch.xlogy(observed, observed) - torch.xlogy(observed, probs)).sum(1).clamp(min=0)


BALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "total-variation": total_variation,
    "kullback-leibler": kullback_leibler,
}
"""How far an observed distribution lies from the predicted one, where the sets are balls."""


def kullback_leibler_bounds(probs: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest share of each class at most ``radius`` (N, 1) away, two of (N, K)."""
    # The nearest distribution with a given share of one class keeps the proportions of the others,
    # so this is a question about two classes; by bisection, to the last digit, outward.

    def farthest(end: float) -> Tensor:
        near, far = probs.clone(), torch.full_like(probs, end)
        for _ in range(60):
            middle = (near + far) / 2
            two = (torch.stack([each, 1 - each], -1).flatten(0, 1) for each in (middle, probs))
            inside = kullback_leibler(*two).view_as(probs) <= radius
            near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
        return far

    return farthest(0.0), farthest(1.0)
