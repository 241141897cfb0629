"""Metrics against obvious loops and hand-made cases."""

import itertools

import numpy as np
import pytest
import torch

from credalearn import CredalError, metrics
from random_sets import distributions


def slow_ece(probs: np.ndarray, y: np.ndarray, num_bins: int) -> float:
    """Bin by bin, (l, r], as the definition reads."""
    top, right = probs.max(1), probs.argmax(1) == y
    total = 0.0
    for b in range(num_bins):
        low, high = b / num_bins, (b + 1) / num_bins
        inside = (top > low) & (top <= high)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - top[inside].mean())
    return total


def test_accuracy_and_calibration_against_loops(generator: torch.Generator) -> None:
    probs = distributions(500, 4, generator=generator)
    y = torch.randint(4, (500,), generator=generator)
    assert metrics.accuracy(probs, y) == pytest.approx((probs.argmax(1) == y).float().mean().item())
    for num_bins in (1, 7, 10, 15):
        slow = slow_ece(probs.numpy(), y.numpy(), num_bins)
        assert metrics.ece(probs, y, num_bins=num_bins) == pytest.approx(slow, abs=1e-12)


def test_a_confidence_on_an_edge_falls_to_the_left() -> None:
    # 0.7 belongs to (0.6, 0.7], where it is alone and wrong; 0.75 is right.
    probs = [[0.7, 0.3], [0.75, 0.25]]
    assert metrics.ece(probs, [1, 0]) == pytest.approx((0.7 + 0.25) / 2)
    assert metrics.ece(torch.tensor(probs), [1, 0]) == pytest.approx((0.7 + 0.25) / 2)
    assert metrics.ece([[1.0, 0.0]], [0]) == 0


def test_rejection_curve_against_a_loop(generator: torch.Generator) -> None:
    probs = distributions(300, 3, generator=generator)
    y = torch.randint(3, (300,), generator=generator)
    score = torch.rand(300, generator=generator)
    right = (probs.argmax(1) == y)[score.argsort()].double()
    slow = [right[:m].mean().item() for m in range(1, 301)]
    curve = metrics.accuracy_rejection(probs, y, score)
    np.testing.assert_allclose(curve.numpy(), slow)
    assert metrics.auarc(probs, y, score) == pytest.approx(np.mean(slow))


def test_ties_are_the_mean_over_all_orders_whatever_the_rows() -> None:
    probs = torch.tensor([[1.0, 0.0]] * 5)
    y, score = torch.tensor([0, 1, 0, 1, 1]), torch.tensor([1, 1, 1, 0, 2])
    curves = []
    for order in itertools.permutations(range(5)):
        rows = torch.tensor(order)
        curves.append(metrics.accuracy_rejection(probs, y[rows], score[rows]))
    assert all(torch.equal(curve, curves[0]) for curve in curves)
    # One wrong item first, then three with two right among them in any order, then one wrong.
    third = 2 / 3
    expected = [0, third / 2, 2 * third / 3, 2 / 4, 2 / 5]
    np.testing.assert_allclose(curves[0].numpy(), expected)


def test_a_constant_score_defers_at_random(generator: torch.Generator) -> None:
    probs = distributions(50, 3, generator=generator)
    y = torch.randint(3, (50,), generator=generator)
    flat = metrics.accuracy_rejection(probs, y, torch.zeros(50))
    np.testing.assert_allclose(flat.numpy(), metrics.accuracy(probs, y))


def test_extreme_cases() -> None:
    one = [[0.8, 0.2]]
    assert metrics.auarc(one, [0], [0.3]) == 1
    assert metrics.auarc(one, [1], [0.3]) == 0
    assert metrics.auarc(one * 3, [0, 0, 0], [1, 2, 3]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy([[0.5, 0.5]], [2]), r"y must lie in 0\.\.1; row 0"),
        (lambda: metrics.accuracy([[0.5, 0.5]], [0, 1]), r"shape \(1,\); got .* \(2,\)"),
        (lambda: metrics.accuracy([[0.5, 0.5]], [0.0]), "whole numbers"),
        (lambda: metrics.accuracy(np.zeros((0, 2)), np.zeros(0, int)), "one item or more"),
        (lambda: metrics.ece([[0.5, 0.5]], [0], num_bins=0), "num_bins must be 1 or more"),
        (lambda: metrics.auarc([[0.5, 0.5]], [0], [float("nan")]), "none NaN"),
        (lambda: metrics.auarc([[0.5, 0.5]], [0], [0.1, 0.2]), "one number for each"),
    ],
)
def test_bad_input_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(CredalError, match=message):
        call()
