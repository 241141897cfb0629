"""How far the members of a predicted set are apart.

Shapes: N items, V vertices, K classes.
"""

import torch
from torch import Tensor


def mmi(points: Tensor) -> Tensor:
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
    if points.shape[1] == 2:
        return (points[:, 0] - points[:, 1]).abs().sum(1) / 2
    return torch.cdist(points, points, p=1).flatten(1).amax(1) / 2
