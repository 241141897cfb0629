"""How far the members of a predicted set are apart.

Shapes: N items, V vertices, K classes.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets.checks import as_distributions


def mmi(points: ArrayLike) -> Tensor:
    r"""Maximum mean imprecision of a polytope under total variation, shape (N,).

    :math:`\sup_A (\overline P(A) - \underline P(A))`, which for the hull of V points is the largest
    total-variation distance :math:`\frac12\sum_k |p_k - q_k|` between two of them (Chau et al.,
    2025). Exact: all pairs are compared. A segment (V = 2) needs one.

    Args:
        points: Distributions, shape (N, V, K).

    Example:
        >>> import torch
        >>> mmi(torch.tensor([[[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]]))
        tensor([0.4000])
    """
    return farthest_pair(as_distributions(points, name="points", ndim=3))


def farthest_pair(points: Tensor) -> Tensor:
    """:func:`mmi` of what is known to be distributions."""
    if points.shape[1] == 2:
        return (points[:, 0] - points[:, 1]).abs().sum(1) / 2
    return torch.cdist(points, points, p=1).flatten(1).amax(1) / 2
