"""Uncertainty scores of predicted sets: larger is less certain, never below 0.

Each takes :class:`~credalearn.CredalPredictions` of N items and returns shape (N,). Where a set is
known by its vertices they are used; where only by its bounds, the box between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from credalearn import sets
from credalearn.errors import CredalError
from credalearn.sets.diameter import farthest_pair
from credalearn.sets.hull_entropy import bits

if TYPE_CHECKING:
    from credalearn.predictions import CredalPredictions


def imprecision(pred: CredalPredictions) -> Tensor:
    """Maximum mean imprecision, in [0, 1]: the paper's score; for a box, its diameter."""
    if pred.vertices is None:
        return sets.Intervals(pred.lower, pred.upper).diameter()
    return farthest_pair(pred.vertices)


def max_entropy(pred: CredalPredictions) -> Tensor:
    """Largest entropy within the set, in bits: total uncertainty. To 1e-3 bits for V > 2."""
    if pred.vertices is None:
        return sets.max_entropy_box(pred.lower, pred.upper)
    return sets.max_entropy_hull(pred.vertices)


def min_entropy(pred: CredalPredictions) -> Tensor:
    """Smallest entropy within the set, in bits: what no choice within the set removes."""
    if pred.vertices is None:
        return sets.min_entropy_box(pred.lower, pred.upper)
    return bits(pred.vertices).amin(1)


def mutual_information(pred: CredalPredictions) -> Tensor:
    """H(mean of the vertices) − mean of their H, in bits: how much the members disagree."""
    if pred.vertices is None:
        raise CredalError("score 'mutual-information' needs vertices; these predictions have none.")
    return (bits(pred.vertices.mean(1)) - bits(pred.vertices).mean(1)).clamp(min=0)


def evidence(pred: CredalPredictions) -> Tensor:
    """K / Σα of the Dirichlet parameters α: the less evidence, the larger."""
    if pred.concentration is None:
        raise CredalError("score 'evidence' needs concentration; these predictions have none.")
    return pred.concentration.shape[1] / pred.concentration.sum(1)


SCORES: dict[str, Callable[[CredalPredictions], Tensor]] = {
    "mmi": imprecision,
    "entropy-difference": lambda pred: (max_entropy(pred) - min_entropy(pred)).clamp(min=0),
    "mutual-information": mutual_information,
    "evidence": evidence,
    "lower-probability": lambda pred: 1 - pred.lower.gather(1, pred.classes[:, None])[:, 0],
    "top-probability": lambda pred: 1 - pred.probs.amax(1),
    "entropy": lambda pred: bits(pred.probs),
    "max-entropy": max_entropy,
    "min-entropy": min_entropy,
}
