"""Distances to boxes and distributions, against slow linear programs and all events."""

from itertools import product

import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor
from torch.testing import assert_close

from credalearn.conformal import Scale
from credalearn.conformal._calibration import SCALES, box_distance, total_variation
from predicted_sets import KINDS
from random_sets import distributions


def slow_box(q: Tensor, lower: Tensor, upper: Tensor, scale: Tensor) -> float:
    """The least r, by a linear program over r alone."""
    rows = [[-float(s)] for s in scale] * 2
    limits = [*(q - lower).tolist(), *(upper - q).tolist()]
    found = linprog([1.0], A_ub=rows, b_ub=limits, bounds=[(0, None)])
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
def test_total_variation_is_the_largest_difference_of_an_event(
    num_classes: int, generator: torch.Generator
) -> None:
    p, q = (distributions(40, num_classes, generator=generator) for _ in range(2))
    events = torch.tensor(list(product((0.0, 1.0), repeat=num_classes)), dtype=torch.float64)
    slow = ((q - p) @ events.T).amax(1)
    assert_close(total_variation(q, p), slow)
    assert slow.max() > 0.3
    rounded = p.float().double()  # sums to 1 but for 1e-7
    assert (total_variation(q, rounded)[:, None] >= (q - rounded).abs()).all()
