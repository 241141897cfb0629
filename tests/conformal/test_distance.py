"""Distances to sets, against slow linear programs."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor
from torch.testing import assert_close

from credalearn import CredalPredictions
from credalearn.conformal import Scale
from credalearn.conformal.calibration import SCALES
from credalearn.conformal.distance import box_distance, total_variation
from predicted_sets import KINDS
from random_sets import distributions


def slow_box(q: Tensor, lower: Tensor, upper: Tensor, scale: Tensor) -> float:
    """The least r, by a linear program over r alone."""
    rows = [[-float(s)] for s in scale] * 2
    limits = [*(q - lower).tolist(), *(upper - q).tolist()]
    found = linprog([1.0], A_ub=rows, b_ub=limits, bounds=[(0, None)])
    return float(found.fun)


def slow_total_variation(q: Tensor, pred: CredalPredictions, row: int) -> float:
    """The least half sum of |q − p| over members p, with p, weights and gaps as variables."""
    num_classes = len(q)
    points = None if pred.vertices is None else pred.vertices[row].double().numpy()
    num_points = 0 if points is None else len(points)
    # variables: p (K), gaps (K), weights (V)
    cost = np.r_[np.zeros(num_classes), np.full(num_classes, 0.5), np.zeros(num_points)]
    unit, none = np.eye(num_classes), np.zeros((num_classes, num_points))
    above = np.block([[unit, -unit, none], [-unit, -unit, none]])
    ones = np.r_[np.ones(num_classes), np.zeros(num_classes + num_points)]
    equal, value = [ones], [1.0]
    bounds: list[tuple[float, float | None]] = [(0.0, 1.0)] * num_classes
    if points is None:
        low, high = pred.lower[row].tolist(), pred.upper[row].tolist()
        bounds = list(zip(low, high, strict=True))
    else:
        mixed = np.hstack([unit, np.zeros_like(unit), -points.T])
        equal = [*mixed, np.r_[np.zeros(2 * num_classes), np.ones(num_points)]]
        value = [*np.zeros(num_classes), 1.0]
    bounds += [(0.0, None)] * (num_classes + num_points)
    limits = np.r_[q.numpy(), -q.numpy()]
    found = linprog(cost, above, limits, np.array(equal), value, bounds)
    return float(found.fun)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_box_distance_is_the_least_widening(
    kind: str, scale: Scale, generator: torch.Generator
) -> None:
    pred = KINDS[kind](40, 5, generator)
    q = distributions(40, 5, generator=generator)
    factor = SCALES[scale](pred.probs)
    found = box_distance(q, pred.lower, pred.upper, factor)
    rows = zip(q, pred.lower, pred.upper, factor.expand(40, 5), strict=True)
    assert_close(found, torch.tensor([slow_box(*row) for row in rows], dtype=torch.float64))


@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_total_variation_is_the_least_over_members(
    kind: str, num_classes: int, generator: torch.Generator
) -> None:
    pred = KINDS[kind](120, num_classes, generator)  # more than one block of programs
    q = distributions(120, num_classes, generator=generator)
    q[:30] = pred.probs[:30]  # inside
    found = total_variation(q, pred.lower, pred.upper, vertices=pred.vertices)
    slow = [slow_total_variation(q[row], pred, row) for row in range(120)]
    assert_close(found, torch.tensor(slow, dtype=torch.float64), atol=1e-7, rtol=0)
    assert (found[:30] <= 1e-7).all()
    assert found.max() > 0.3
