"""Soft labels into credal sets: kept precise, or relaxed as the paper does.

Shapes: N items, K classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets import LowerBounds
from credalearn.sets.checks import as_distributions

SoftRule = Literal["relax", "relax-ties", "precise"]


def relax(probs: ArrayLike, *, ties: bool = False) -> LowerBounds:
    r"""The paper's relaxation of soft labels: keep the top class's probability, free the rest.

    :math:`Q = \{q \in \Delta : q_j \ge \alpha\}` with :math:`j = \arg\max_k q_k` and
    :math:`\alpha = q_j` (Wang and Chau, 2026). A one-hot label stays a single point.

    Args:
        probs: Soft labels, shape (N, K), rows that sum to 1.
        ties: What becomes of classes that tie for the top. False, the paper's: the lowest index
            alone is j. True, as :func:`~credalearn.from_votes` and ``CredalClassifier`` do unless
            told otherwise (``"relax-ties"``): each keeps its probability, and none is preferred.

    Returns:
        The sets, with ``probs`` as their ``reference``.

    Raises:
        CredalError: If a row is negative somewhere, not finite, or does not sum to 1.

    Example:
        >>> relax([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]]).lower
        tensor([[0.0000, 0.7000, 0.0000],
                [0.5000, 0.0000, 0.0000]])
        >>> relax([[0.5, 0.5, 0.0]], ties=True).lower
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    soft = as_distributions(probs, name="probs", ndim=2)
    if ties:
        return relax_ties(soft)
    return relax_at(soft, soft.argmax(1))


def precise(probs: ArrayLike) -> LowerBounds:
    """Soft labels as they are: each set is the single distribution ``probs`` (N, K).

    Example:
        >>> precise([[0.25, 0.75]]).diameter()
        tensor([0.])
    """
    soft = as_distributions(probs, name="probs", ndim=2)
    return LowerBounds(soft, soft=soft)


def relax_at(probs: Tensor, top: Tensor) -> LowerBounds:
    """Relax soft labels (N, K) whose top class (N,) is known better than from ``probs``."""
    top = top[:, None]
    lower = torch.zeros_like(probs).scatter(1, top, probs.gather(1, top))
    return LowerBounds(lower, soft=probs)


def relax_ties(probs: Tensor) -> LowerBounds:
    """Relax soft labels (N, K), and let every class that ties for the top keep its probability."""
    rounding = 8 * torch.finfo(probs.dtype).eps  # 0.1 + 0.2 ties with 0.3
    tied = probs >= probs.amax(1, keepdim=True) * (1 - rounding)
    return LowerBounds(torch.where(tied, probs, 0), soft=probs)


# A rule's name: what it makes of soft labels (N, K) and, if it asks, their top classes (N,).
SOFT_RULES: dict[str, Callable[[Tensor, Tensor], LowerBounds]] = {
    "relax": relax_at,
    "relax-ties": lambda probs, _: relax_ties(probs),
    "precise": lambda probs, _: LowerBounds(probs, soft=probs),
}
