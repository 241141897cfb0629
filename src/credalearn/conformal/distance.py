"""How far an observed label distribution lies outside a predicted set.

Shapes: N items, V vertices, K classes.
"""

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from torch import Tensor

_TOGETHER = 100  # linear programs solved as one: .12 ms a row instead of 1.2 for V = 10, K = 10


def box_distance(observed: Tensor, lower: Tensor, upper: Tensor, scale: Tensor) -> Tensor:
    r"""The least r ≥ 0 for which q lies in [lower − r·s, upper + r·s], shape (N,).

    :math:`\max_k \max(\ell_k - q_k,\; q_k - u_k,\; 0) / s_k`. Exact.

    Args:
        observed: Distributions q, shape (N, K).
        lower: Smallest probabilities, shape (N, K).
        upper: Largest probabilities, shape (N, K).
        scale: s, above 0, shape (N, 1) or (N, K).

    Example:
        The first class is .2 above its upper probability, the second .1 below its lower one.

        >>> q, lower, upper = torch.tensor([[0.7, 0.1, 0.2], [0.4, 0.2, 0.1], [0.5, 0.4, 0.2]])
        >>> box_distance(q[None], lower[None], upper[None], torch.ones(1, 1))
        tensor([0.2000])
    """
    gap = torch.maximum(lower - observed, observed - upper).clamp(min=0)
    return (gap / scale).amax(1)


def total_variation(
    observed: Tensor, lower: Tensor, upper: Tensor, *, vertices: Tensor | None = None
) -> Tensor:
    r"""Least total-variation distance from q to a member of the set, shape (N,).

    - The box between the bounds, and so a point: :math:`\max(\sum_k (\ell_k - q_k)_+,
      \sum_k (q_k - u_k)_+)`, the mass that must be moved in, or out.
    - A segment: :math:`\min_t \frac12\sum_k |q_k - (1-t)a_k - t b_k|` is convex and piecewise
      linear in t, least at the median of its kinks weighted by :math:`|b_k - a_k|`; all rows at
      once.
    - The hull of V > 2 points: the linear program :math:`\min \sum_k d_k` over weights w and
      :math:`d \ge q - \sum_v w_v p_v`, :math:`d \ge 0`.

    Exact; the linear programs to about 1e-7.

    Args:
        observed: Distributions q, shape (N, K).
        lower: Smallest probabilities, shape (N, K).
        upper: Largest probabilities, shape (N, K).
        vertices: Points whose hull the set is, shape (N, V, K); None: the set is the box.

    Example:
        Between (.2, .8) and (.6, .4) the nearest to (.9, .1) is (.6, .4).

        >>> q, lower, upper = torch.tensor([[0.9, 0.1], [0.2, 0.4], [0.6, 0.8]])
        >>> ends = torch.tensor([[[0.2, 0.8], [0.6, 0.4]]])
        >>> total_variation(q[None], lower[None], upper[None], vertices=ends)
        tensor([0.3000])
    """
    if vertices is None or vertices.shape[1] == 1:
        return _to_box(observed, lower, upper)
    if vertices.shape[1] == 2:
        return _to_segment(observed, vertices[:, 0], vertices[:, 1])
    return _to_hull(observed, vertices)


def _to_box(observed: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    missing = (lower - observed).clamp(min=0).sum(1)
    beyond = (observed - upper).clamp(min=0).sum(1)
    return torch.maximum(missing, beyond)


def _to_segment(observed: Tensor, first: Tensor, second: Tensor) -> Tensor:
    step = second - first
    weight = step.abs()
    kink = torch.where(weight > 0, (observed - first) / step, 0)
    kink, order = kink.sort(1)
    mass = weight.gather(1, order).cumsum(1)
    median = (mass < mass[:, -1:] / 2).sum(1, keepdim=True).clamp(max=mass.shape[1] - 1)
    nearest = first + kink.gather(1, median).clamp(0, 1) * step
    return (observed - nearest).abs().sum(1) / 2


def _to_hull(observed: Tensor, vertices: Tensor) -> Tensor:
    """Weights by linear programming; the distance is then that of the member they make."""
    points, targets = vertices.numpy(force=True), observed.numpy(force=True)
    weights = np.zeros(points.shape[:2])
    for start in range(0, len(points), _TOGETHER):
        rows = slice(start, start + _TOGETHER)
        weights[rows] = _nearest_weights(targets[rows], points[rows])
    weights = weights.clip(min=0) / weights.clip(min=0).sum(1, keepdims=True)
    member = (torch.from_numpy(weights).to(vertices)[:, :, None] * vertices).sum(1)
    return (observed - member).abs().sum(1) / 2


def _nearest_weights(targets: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Of each hull the weights of the member nearest to its target, shape (N, V).

    One program with a block a row: the least sum is the sum of the least.
    """
    num_rows, num_points, num_classes = points.shape
    # Variables: a weight a point, then a gap a class. Constraints: weights · points + gap >= target
    # for each class, turned round for linprog, and weights that sum to 1.
    gap = num_rows * num_points + np.arange(num_rows * num_classes)
    weight = np.arange(num_rows * num_points).reshape(num_rows, num_points, 1)
    target = np.arange(num_rows * num_classes).reshape(num_rows, 1, num_classes)
    rows, columns = (np.broadcast_to(each, points.shape).ravel() for each in (target, weight))
    entries = np.r_[-points.ravel(), np.full(gap.size, -1.0)]
    places = (np.r_[rows, target.ravel()], np.r_[columns, gap])
    owner = (np.repeat(np.arange(num_rows), num_points), weight.ravel())
    size = weight.size + gap.size
    found = linprog(
        np.repeat([0.0, 1.0], [weight.size, gap.size]),
        A_ub=csr_matrix((entries, places), shape=(gap.size, size)),
        b_ub=-targets.ravel(),
        A_eq=csr_matrix((np.ones(weight.size), owner), shape=(num_rows, size)),
        b_eq=np.ones(num_rows),
        method="highs",
    )
    weights: np.ndarray = found.x[: weight.size].reshape(num_rows, num_points)
    return weights
