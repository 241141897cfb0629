"""Largest total-variation distance within a set, and the splits of classes that give it."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import as_distributions

ENUMERATED_SPLITS = 12  # 2^11 ways to split 12 classes in two: 0.2 s for 10,000 sets
_CHUNK = 2**22  # numbers stored at once while enumerating: 32 MB in float64


def mmi(points: "ArrayLike") -> Tensor:
    r"""Maximum mean imprecision of polytopes, the hulls of ``points`` (N, V, K), shape (N,).

    :math:`\sup_A (\overline P(A) - \underline P(A))`, which for the hull of V points is the largest
    total-variation distance :math:`\frac12\sum_k |p_k - q_k|` between two of them (Chau et al.,
    2025). Exact: all pairs are compared.

    Example:
        >>> import torch
        >>> mmi(torch.tensor([[[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]]))
        tensor([0.4000])
    """
    return farthest_pair(as_distributions(points, name="points", ndim=3))


def farthest_pair(points: Tensor) -> Tensor:
    """:func:`mmi` of distributions that were checked before."""
    if points.shape[1] == 2:
        return (points[:, 0] - points[:, 1]).abs().sum(1) / 2
    return torch.cdist(points, points, p=1).flatten(1).amax(1) / 2


def class_sets(num_classes: int) -> Tensor:
    """All 2^K subsets of the classes as 0/1 rows, shape (2^K, K), int64."""
    numbers = torch.arange(2**num_classes)
    return (numbers[:, None] >> torch.arange(num_classes)) & 1


def evenest_split(weights: Tensor) -> Tensor:
    """The maximum over class sets S of min(w(S), w(Sᶜ)), shape (N,), by trying every S."""
    # S and its complement give the same value: fix the last class outside S.
    masks = class_sets(weights.shape[1] - 1).to(weights)
    halves = [
        torch.minimum(inside := rows[:, :-1] @ masks.T, rows.sum(1, keepdim=True) - inside)
        .amax(1)
        .clamp(min=0)
        for rows in torch.split(weights, max(1, _CHUNK // len(masks)))
    ]
    return torch.cat(halves)
