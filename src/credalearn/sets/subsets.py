"""Every set of classes, for the problems that only enumeration solves exactly.

Shapes: N items, K classes.
"""

import torch
from torch import Tensor

ENUMERATED_SPLITS = 12  # 2^11 ways to split 12 classes in two: 0.2 s for 10,000 sets
_CHUNK = 2**22  # numbers held at once while enumerating: 32 MB in float64


def class_sets(num_classes: int) -> Tensor:
    """All 2^K subsets as 0/1 rows, shape (2^K, K), int64; row m holds the bits of m."""
    numbers = torch.arange(2**num_classes)
    return (numbers[:, None] >> torch.arange(num_classes)) & 1


def evenest_split(weights: Tensor) -> Tensor:
    """Largest smaller part of a split of the classes in two, shape (N,): every split is tried.

    The maximum over class sets S of min(w(S), w(Sᶜ)), for weights (N, K) of 0 or more.
    """
    # S and its complement give the same value: fix the last class outside S.
    masks = class_sets(weights.shape[1] - 1).to(weights)
    halves = [
        torch.minimum(inside := rows[:, :-1] @ masks.T, rows.sum(1, keepdim=True) - inside)
        .amax(1)
        .clamp(min=0)
        for rows in torch.split(weights, max(1, _CHUNK // len(masks)))
    ]
    return torch.cat(halves)
