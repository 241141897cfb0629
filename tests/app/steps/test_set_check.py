"""Widened sets on test items: what share is usual, and what is covered."""

import math

import numpy as np
import pytest
import torch

from credalearn.app.steps.set_check import WidenedSets, widen_sets
from credalearn.conformal import Inflation
from credalearn.predictions import CredalPredictions


def widened(items: int, seen: int, covered: int) -> WidenedSets:
    found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="none", items=items)
    bounds = np.zeros((seen, 2))
    return WidenedSets(found, bounds, bounds, seen, covered, 0.0, 0.0)


@pytest.mark.parametrize(("items", "seen"), [(30, 20), (300, 50), (50, 400)])
def test_the_usual_share_is_that_of_drawing_both_kinds_of_items(items: int, seen: int) -> None:
    noise = np.random.default_rng(0)
    low, high = widened(items, seen, 0).usual
    shares = []
    for _ in range(4000):  # any continuous nonconformity will do
        radius = np.sort(noise.random(items))[math.ceil(0.9 * (items + 1)) - 1]
        shares.append((noise.random(seen) <= radius).mean())
    found = np.array(shares)
    error = 0.008  # three standard errors of a simulated share
    assert max((found < low).mean(), (found > high).mean()) <= 0.025 + error
    step = 1 / seen  # the next share inward leaves out too many
    assert (found < low + 1.5 * step).mean() >= 0.025 - error
    assert (found > high - 1.5 * step).mean() >= 0.025 - error
    short = round(low * seen) - 1
    assert widened(items, seen, short).short
    assert not widened(items, seen, short + 1).short
    assert not widened(items, 0, 0).short


def test_sets_are_widened_and_checked_item_by_item() -> None:
    found = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=50)
    point = torch.tensor([[0.7, 0.3], [0.7, 0.3], [0.5, 0.5]], dtype=torch.float64)
    observed = np.array([[3.0, 1.0], [0.0, 4.0], [1.0, 0.0]])
    usable, kept = np.array([True, True, False]), np.array([True, False, True])
    wide = widen_sets(found, CredalPredictions(point, point, point), observed, usable, kept=kept)
    np.testing.assert_allclose(wide.lower[0], [0.6, 0.2], atol=1e-6)
    assert (wide.seen, wide.covered, wide.kept) == (2, 1, (1, 1))
    assert (wide.width_before, wide.width_after) == pytest.approx((0, 0.2), abs=1e-6)
    assert "Of 1 kept item the widened sets contain 100 %" in wide.by_decision
    assert wide.saying_nothing == 0
