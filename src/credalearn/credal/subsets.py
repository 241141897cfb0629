"""Every set of classes, for the problems that only enumeration solves exactly."""

import torch
from torch import Tensor


def class_sets(num_classes: int) -> Tensor:
    """All 2^K subsets as 0/1 rows, shape (2^K, K), int64; row m holds the bits of m."""
    numbers = torch.arange(2**num_classes)
    return (numbers[:, None] >> torch.arange(num_classes)) & 1
