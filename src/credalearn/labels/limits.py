"""How far the distribution behind votes may lie from their shares, at a given confidence.

Shapes: N items, K classes.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import betaincinv
from torch import Tensor


def lower_limits(counts: Tensor, total: Tensor, *, level: float) -> Tensor:
    r"""Clopper and Pearson's (1934) lower limit of each class's probability, shape (N, K).

    For whole n out of M the probability under which n votes or more have the probability ``level``:
    the ``level`` quantile of Beta(n, M − n + 1), which serves for fractions of votes too; 0 for
    n = 0.
    """
    others = (total - counts).double().numpy(force=True)
    above_zero = counts.double().clamp(min=np.finfo(np.float64).tiny)  # as Beta needs
    limits = torch.from_numpy(betaincinv(above_zero.numpy(force=True), others + 1, level))
    return torch.where(counts > 0, limits.to(counts), 0)


def upper_limits(counts: Tensor, total: Tensor, *, level: float) -> Tensor:
    """The mirror image: no more than n votes have the probability ``level``; 1 for n = M."""
    return 1 - lower_limits(total - counts, total, level=level)


def variation_radius(total: Tensor, num_classes: int, *, level: float) -> Tensor:
    r"""A total-variation distance that vote shares exceed with probability ``level`` at most.

    :math:`\frac12\sqrt{2 \log((2^K - 2) / \delta) / M}`, at most 1, for M votes (Weissman et al.,
    2003): of the :math:`2^K - 2` events that are neither empty nor certain, none is off by more.
    A single class has but one distribution: 0. The shape is that of ``total``.
    """
    if num_classes == 1:
        return torch.zeros_like(total)
    events = num_classes * math.log(2) + math.log1p(-(2.0 ** (1 - num_classes)))  # log(2^K − 2)
    # Without votes the root is infinite, and the radius 1 holds every distribution.
    return ((events - math.log(level)) / (2 * total)).sqrt().clamp(max=1)
