"""Shannon entropy, in bits, of a distribution and over the convex hull of several."""

import math
import warnings

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_number
from credalearn.errors import PrecisionWarning
from credalearn.sets._checks import as_distributions

_HALVINGS = 40  # places the best point of a segment to 1e-12 of its length


def entropy(probs: "ArrayLike") -> Tensor:
    r"""Shannon entropy :math:`-\sum_k p_k \log_2 p_k` of the last dimension, 0·log 0 = 0.

    Example:
        >>> import torch
        >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        tensor([1., 0.])
    """
    return bits(as_distributions(probs, name="probs"))


def bits(probs: Tensor) -> Tensor:
    """:func:`entropy` of what is known to be distributions."""
    return torch.special.entr(probs).sum(-1) / math.log(2)


def min_entropy_hull(points: "ArrayLike") -> Tensor:
    """Smallest entropy in the hull of ``points`` (N, V, K), in bits, shape (N,).

    Exact: entropy is concave, so its minimum lies at a vertex.

    Example:
        >>> import torch
        >>> min_entropy_hull(torch.tensor([[[0.5, 0.5], [1.0, 0.0]]]))
        tensor([0.])
    """
    return bits(as_distributions(points, name="points", ndim=3)).amin(1)


def max_entropy_hull(
    points: "ArrayLike", *, tolerance: float = 1e-3, max_steps: int = 1000
) -> Tensor:
    r"""Largest entropy in the hull of ``points`` (N, V, K), in bits, shape (N,).

    A segment (V = 2) is solved by bisection, to about 1e-9 bits. A polytope is climbed by pairwise
    Frank–Wolfe steps (Lacoste-Julien and Jaggi, 2015) until the certificate
    :math:`\max_v \nabla H(p)^\top (v - p) \le` ``tolerance``: the true maximum is at most that much
    above the value returned, and never below it.

    Args:
        points: Distributions, shape (N, V, K).
        tolerance: Largest allowed error in bits, 0 or more.
        max_steps: Cap on the steps, 1 or more; a :class:`PrecisionWarning` says when it was hit.

    Example:
        >>> import torch
        >>> max_entropy_hull(torch.tensor([[[0.2, 0.8], [0.8, 0.2]]]))
        tensor([1.])
    """
    check_number(tolerance, name="tolerance", least=0)
    check_number(max_steps, name="max_steps", least=1, whole=True)
    checked = as_distributions(points, name="points", ndim=3)
    # In float64: a certificate of 1e-3 bits at K = 1000 is beyond float32's sums.
    best, gaps = highest_in_hull(checked.double(), tolerance, max_steps)
    short = gaps[gaps > tolerance]
    if len(short):
        warnings.warn(
            f"max_entropy_hull stopped at its cap of {max_steps} steps: {len(short)} of "
            f"{len(gaps)} items are up to {float(short.max()):.2g} bits below the maximum, more "
            f"than the tolerance of {tolerance:g}. To fix: raise max_steps or tolerance.",
            PrecisionWarning,
            stacklevel=2,
        )
    return bits(best).to(checked.dtype)


def highest_in_hull(
    points: Tensor, tolerance: float = 1e-3, max_steps: int = 1000
) -> tuple[Tensor, Tensor]:
    """The point of largest entropy in each hull, (N, K), and how many bits it may lack, (N,)."""
    if points.shape[1] > 2:
        return _climb(points, tolerance, max_steps)
    start, end = points[:, 0], points[:, -1]
    share = _best_share(start, end - start, torch.ones_like(start[:, 0]))
    return start + share[:, None] * (end - start), torch.zeros_like(share)


def _best_share(start: Tensor, direction: Tensor, limit: Tensor) -> Tensor:
    """The t in [0, limit] (N,) with the largest H(start + t·direction), by halving a bracket."""
    low, high = torch.zeros_like(limit), limit.clone()
    at_limit = _rises(start, direction, limit)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = _rises(start, direction, middle)
        low, high = torch.where(rises, middle, low), torch.where(rises, high, middle)
    return torch.where(at_limit, limit, low)


def _rises(start: Tensor, direction: Tensor, share: Tensor) -> Tensor:
    """Whether entropy still grows along ``direction`` at this share of it, shape (N,)."""
    point = (start + share[:, None] * direction).clamp(min=0)
    return torch.xlogy(direction, point).sum(1) < 0


def _climb(points: Tensor, tolerance: float, max_steps: int) -> tuple[Tensor, Tensor]:
    """The same in each polytope: climb to the certificate."""
    num_items, num_vertices, _ = points.shape
    weights = points.new_full((num_items, num_vertices), 1 / num_vertices)
    best = points.mean(1)  # inside: every class that the hull can reach has mass
    gaps = points.new_zeros(num_items)
    running = torch.arange(num_items, device=points.device)
    for _ in range(max_steps):
        vertices, weight, point = points[running], weights[running], best[running]
        # ∇H·v up to a constant that is the same for all v: the cross-entropy of v under p.
        slope = -torch.xlogy(vertices, point[:, None]).sum(2) / math.log(2)
        gap = slope.amax(1) - bits(point)
        gaps[running] = gap
        keep = gap > tolerance
        running = running[keep]
        if len(running) == 0:
            break
        vertices, weight, point, slope = vertices[keep], weight[keep], point[keep], slope[keep]
        rows = torch.arange(len(running), device=points.device)
        toward = slope.argmax(1)
        away = slope.masked_fill(weight <= 0, torch.inf).argmin(1)
        direction = vertices[rows, toward] - vertices[rows, away]
        share = _best_share(point, direction, weight[rows, away])
        weight[rows, toward] += share
        weight[rows, away] -= share
        weights[running] = weight.clamp(min=0)
        best[running] = torch.einsum("nv,nvk->nk", weights[running], vertices)
    return best, gaps
