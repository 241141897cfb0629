"""The least POCC objective that any predictor can reach on given labels."""

import math

import torch
from torch import Tensor

from credalearn.sets import (
    CredalSet,
    Intervals,
    LowerBounds,
    Vertices,
    max_entropy_box,
    min_entropy_box,
    min_entropy_hull,
)
from credalearn.sets._checks import check_sets
from credalearn.sets.box_entropy import ENUMERATED_CLASSES
from credalearn.sets.hull_entropy import bits, highest_in_hull

# Frank and Wolfe's: at most 0.001 nats short in 6000 random sets of three to ten classes.
_STEPS = 200


def least_objective(labels: CredalSet) -> Tensor:
    r"""The smallest :math:`\frac12(\max_q H(q, p_-) + \min_q H(q, p_+))` over p₋ and p₊, (N,).

    .. math:: \tfrac12\bigl(\max_{q \in Q} H(q) + \min_{q \in Q} H(q)\bigr) \text{ nats}

    by the minimax theorem. The training objective less the mean of this bounds the optimization
    gap. Exact for lower bounds, for hulls to 1e-3 bits, and for intervals of up to 10 classes;
    otherwise never above the exact value.

    Example:
        >>> from credalearn import LowerBounds
        >>> least_objective(LowerBounds([[0.5, 0.0]]))
        tensor([0.3466], dtype=torch.float64)
    """
    check_sets(labels)
    exact = labels.to(torch.float64)
    return (_largest_entropy(exact) + _smallest_entropy(exact)) / 2 * math.log(2)


def _largest_entropy(labels: CredalSet) -> Tensor:
    """In bits, shape (N,)."""
    if isinstance(labels, LowerBounds | Intervals):
        return max_entropy_box(labels.lower, labels.upper)
    if isinstance(labels, Vertices):
        # Without its warning: too small a value makes the gap larger, never wrong.
        return bits(highest_in_hull(labels.points)[0])
    point = labels.center()
    best = bits(point)
    for step in range(_STEPS):
        toward = labels.worst_target(-point.clamp(min=1e-300).log())
        point = point + (toward - point) * (2 / (step + 2))
        best = torch.maximum(best, bits(point))
    return best


def _smallest_entropy(labels: CredalSet) -> Tensor:
    """In bits, shape (N,)."""
    if isinstance(labels, LowerBounds):  # all free mass where most is already
        return bits(labels.best_target(-labels.lower))
    if isinstance(labels, Vertices):
        return min_entropy_hull(labels.points)
    if labels.num_classes <= ENUMERATED_CLASSES:
        return min_entropy_box(labels.lower, labels.upper)
    # With one bound alone the greedy order is exact, and the set only larger.
    above = min_entropy_box(labels.lower, torch.ones_like(labels.upper))
    below = min_entropy_box(torch.zeros_like(labels.lower), labels.upper)
    return torch.maximum(above, below)
