"""How far an observed label distribution lies outside a predicted set.

Shapes: N items, V vertices, K classes.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from torch import Tensor

from credalearn.sets.checks import as_floats, require, require_shape

_TOGETHER = 100  # linear programs solved as one: .12 ms a row instead of 1.2 for V = 10, K = 10


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
    """The least r >= 0 with q in [lower − r·s, upper + r·s], shape (N,): exact.

    Signed: the least r, below 0 where q lies inside by a margin.
    """
    gap = torch.maximum(lower - observed, observed - upper)
    return ((gap if signed else gap.clamp(min=0)) / scale).amax(1)


def total_variation(
    observed: Tensor, lower: Tensor, upper: Tensor, *, vertices: Tensor | None = None
) -> Tensor:
    r"""Least total-variation distance from q to a member of the set, shape (N,).

    For a box, :math:`\max(\sum_k (\ell_k - q_k)_+, \sum_k (q_k - u_k)_+)`; for a segment, the
    weighted median of the kinks; for the hull of V > 2 points, a linear program, to about 1e-7.
    """
    if vertices is None or vertices.shape[1] == 1:
        missing = (lower - observed).clamp(min=0).sum(1)
        return torch.maximum(missing, (observed - upper).clamp(min=0).sum(1))
    if vertices.shape[1] == 2:
        return _to_segment(observed, vertices[:, 0], vertices[:, 1])
    return _to_hull(observed, vertices)


def kullback_leibler(observed: Tensor, probs: Tensor) -> Tensor:
    r""":math:`\sum_k q_k \log(q_k / p_k)`, shape (N,); infinite where only q has a class."""
    return (torch.xlogy(observed, observed) - torch.xlogy(observed, probs)).sum(1).clamp(min=0)


def kullback_leibler_bounds(probs: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest share of each class at most ``radius`` (N, 1) away, two of (N, K).

    The nearest distribution with a given share of one class keeps the proportions of the others, so
    this is a question about two classes; by bisection, to the last digit, outward.
    """

    def farthest(end: float) -> Tensor:
        near, far = probs.clone(), torch.full_like(probs, end)
        for _ in range(60):
            middle = (near + far) / 2
            two = (torch.stack([each, 1 - each], -1).flatten(0, 1) for each in (middle, probs))
            inside = kullback_leibler(*two).view_as(probs) <= radius
            near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
        return far

    return farthest(0.0), farthest(1.0)


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
    """Weights of the member of each hull nearest to its target, (N, V): one linear program."""
    num_rows, num_points, num_classes = points.shape
    # Variables: one weight per point, then one gap per class. Constraints: for each class
    # weights · points + gap >= target, negated for linprog, and weights that sum to 1.
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
