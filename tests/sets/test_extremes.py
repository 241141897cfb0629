"""Worst and best cases against a linear-programming solver, and their gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch.testing import assert_close

from credalearn.sets import (
    CredalSet,
    Intervals,
    LowerBounds,
    MeanIntervals,
    Possibility,
    TotalVariationBall,
    Vertices,
)
from random_sets import KINDS

NUM_ITEMS = 100


def program(cost: np.ndarray, low: np.ndarray, high: np.ndarray, **options: Any) -> float:
    """The smallest expected cost of a distribution between two bounds, by linear programming."""
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    equal = {"A_eq": np.ones((1, len(cost))), "b_eq": [1.0]} | options
    found = linprog(cost, bounds=np.stack([low, high], 1), options=exact, **equal)
    assert found.status == 0, found.message
    return float(found.fun)


def solve(sets: CredalSet, row: int, cost: np.ndarray) -> float:
    """The smallest expected cost in one set, from the kind's own definition."""
    one = sets[row]
    zeros, ones = np.zeros_like(cost), np.ones_like(cost)
    if isinstance(one, Vertices):
        return float((one.points[0].numpy() @ cost).min())
    if isinstance(one, MeanIntervals):  # everyone's own program
        people = (each[0].numpy() for each in (one.share, one.person_lower, one.person_upper))
        costs = [w * program(cost, *box) for w, *box in zip(*people, strict=True) if w > 0]
        return float(sum(costs))
    if isinstance(one, TotalVariationBall):  # mass added and mass taken, at most the radius each
        q, sign = one.q[0].numpy(), np.repeat([1.0, -1.0], len(cost))
        moved = program(
            np.concatenate([cost, -cost]),
            np.concatenate([zeros, zeros]),
            np.concatenate([ones, q]),
            A_eq=sign[None],
            b_eq=[0.0],
            A_ub=(sign > 0)[None],
            b_ub=one.radius.numpy(),
        )
        return float(q @ cost) + moved
    if isinstance(one, Possibility):  # classes no more possible than one are together at most that
        levels = one.levels[0].numpy()
        return program(cost, zeros, ones, A_ub=levels <= levels[:, None], b_ub=levels)
    return program(cost, one.lower[0].numpy(), one.upper[0].numpy())


@pytest.mark.catches("sets/total_variation.py", "order[:, :1]", "order[:, -1:]", case="balls")
@pytest.mark.catches(
    "sets/vertices.py",
    "totals.argmax(1) if largest else totals.argmin(1)",
    "totals.argmax(1)",
    case="vertices",
)
@pytest.mark.catches("sets/_greedy.py", "descending=largest", "descending=True", case="intervals")
@pytest.mark.catches(
    "sets/lower_bounds.py",
    "cost.argmax(1, keepdim=True) if largest else cost.argmin(1, keepdim=True)",
    "cost.argmin(1, keepdim=True) if largest else cost.argmax(1, keepdim=True)",
    case="lower bounds",
)
@pytest.mark.parametrize("kind", KINDS)
def test_extremes_equal_a_linear_program(kind: str, generator: torch.Generator) -> None:
    for num_classes in (2, 3, 5, 8, 21, 50):
        sets = KINDS[kind](NUM_ITEMS, num_classes, generator)
        cost = torch.randn(NUM_ITEMS, num_classes, generator=generator, dtype=torch.float64)
        cost[::3] = cost[::3].round()  # ties
        best = [solve(sets, row, each) for row, each in enumerate(cost.numpy())]
        worst = [-solve(sets, row, -each) for row, each in enumerate(cost.numpy())]
        np.testing.assert_allclose(sets.best(cost), best, atol=1e-9)
        np.testing.assert_allclose(sets.worst(cost), worst, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_extremes_are_differentiable_away_from_ties(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](20, 5, generator)
    spaced = torch.rand(20, 5, generator=generator).argsort(dim=1).double()  # costs 1 apart
    cost = spaced.requires_grad_()
    assert torch.autograd.gradcheck(sets.worst, cost)
    assert torch.autograd.gradcheck(sets.best, cost)


def test_equal_costs_go_to_the_lowest_class() -> None:
    even = torch.zeros(1, 3)
    assert_close(LowerBounds([[0.2, 0.2, 0.2]]).worst_target(even), torch.tensor([[0.6, 0.2, 0.2]]))
    assert_close(LowerBounds([[0.2, 0.2, 0.2]]).best_target(even), torch.tensor([[0.6, 0.2, 0.2]]))
    box = Intervals([[0.2, 0.2, 0.2]], [[0.5, 0.5, 0.5]])
    assert_close(box.worst_target(even), torch.tensor([[0.5, 0.3, 0.2]]))
    points = torch.eye(3)[None]
    assert_close(Vertices(points).worst_target(even), points[:, 0])
    ball = TotalVariationBall([[0.2, 0.3, 0.5]], 0.4)
    assert_close(ball.worst_target(even), torch.tensor([[0.6, 0.3, 0.1]]))
    assert_close(ball.best_target(even), torch.tensor([[0.6, 0.3, 0.1]]))
    possible = Possibility([[0.5, 1.0, 0.2]])
    assert_close(possible.worst_target(even), torch.tensor([[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize(
    ("closed", "open_"),
    [
        (LowerBounds([[0.5, 0.5, 0.0]]), LowerBounds([[0.5, 0.0, 0.0]])),
        (Intervals([[0.5, 0.2, 0.0]], [[0.5, 0.5, 0.0]]), Intervals([[0.5, 0, 0]], [[1.0, 1, 1]])),
        (Vertices([[[0.5, 0.5, 0.0]] * 2]), Vertices([[[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]])),
        (TotalVariationBall([[0.5, 0.5, 0]], 0.0), TotalVariationBall([[0.5, 0.5, 0]], 0.1)),
    ],
)
def test_an_infinite_cost_counts_only_where_there_is_mass(
    closed: CredalSet, open_: CredalSet
) -> None:
    cost = torch.tensor([[1.0, 3.0, torch.inf]])
    assert_close(closed.worst(cost), torch.tensor([2.0]))
    assert_close(closed.best(cost), torch.tensor([2.0]))
    assert open_.worst(cost).isinf()
    assert open_.best(cost) <= 2
