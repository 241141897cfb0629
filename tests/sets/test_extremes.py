"""Worst and best cases against a linear-programming solver, and their gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.sparse import block_diag
from torch import Tensor
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

NUM_ITEMS = 205


@dataclass(frozen=True)
class Program:
    """A linear program an item, all of one shape: U unknowns, R inequalities.

    Smallest ``constant + objective · x`` with ``low <= x <= high``, ``equal · x = value`` and
    ``below @ x <= limits``.
    """

    objective: np.ndarray  # (N, U)
    low: np.ndarray
    high: np.ndarray
    equal: np.ndarray  # (U,)
    value: float = 1.0
    below: Sequence[np.ndarray] = ()  # N times (R, U)
    limits: np.ndarray | None = None  # (N, R)
    constant: float | np.ndarray = 0.0


def program(sets: CredalSet, cost: Tensor) -> Program:
    """The kind's own definition as linear constraints."""
    ones, zeros = np.ones(cost.shape), np.zeros(cost.shape)
    if isinstance(sets, Vertices):  # the unknowns are weights of the vertices
        objective = torch.einsum("nvk,nk->nv", sets.points, cost).numpy()
        weights = np.zeros_like(objective)
        return Program(objective, weights, weights + 1, np.ones(objective.shape[1]))
    if isinstance(sets, TotalVariationBall):  # mass added and mass taken, at most the radius each
        added_less_taken = np.repeat([1.0, -1.0], sets.num_classes)
        return Program(
            np.concatenate([cost, -cost], 1),
            np.concatenate([zeros, zeros], 1),
            np.concatenate([ones, sets.q], 1),
            added_less_taken,
            value=0.0,
            below=[(added_less_taken > 0)[None].astype(float)] * len(sets),
            limits=sets.radius[:, None].numpy(),
            constant=(sets.q * cost).sum(1).numpy(),
        )
    if isinstance(sets, Possibility):  # classes no more possible than one are together at most that
        levels = sets.levels.numpy()
        nested = levels[:, None, :] <= levels[:, :, None]
        return Program(
            cost.numpy(), zeros, ones, ones[0], below=list(nested.astype(float)), limits=levels
        )
    return Program(cost.numpy(), sets.lower.numpy(), sets.upper.numpy(), ones[0])


def solve(sets: CredalSet, cost: Tensor) -> np.ndarray:
    """Smallest expected cost of each item by linear programming, shape (N,).

    Independent problems solved as one: the constraint matrix has a block an item.
    """
    if isinstance(sets, MeanIntervals):  # everyone's own program
        total = np.zeros(len(sets))
        for share, low, high in zip(
            sets.share.T, sets.person_lower.unbind(1), sets.person_upper.unbind(1), strict=True
        ):
            rows = share > 0
            total[rows] += share[rows].numpy() * solve(Intervals(low[rows], high[rows]), cost[rows])
        return total
    asked = program(sets, cost)
    solution = linprog(
        asked.objective.ravel(),
        A_eq=block_diag([asked.equal[None]] * len(sets), format="csr"),
        b_eq=np.full(len(sets), asked.value),
        A_ub=block_diag(asked.below, format="csr") if asked.below else None,
        b_ub=None if asked.limits is None else asked.limits.ravel(),
        bounds=np.stack([asked.low.ravel(), asked.high.ravel()], axis=1),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0, solution.message
    found = solution.x.reshape(asked.objective.shape)
    values: np.ndarray = asked.constant + (asked.objective * found).sum(1)
    return values


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
    for num_classes in (2, 3, 4, 5, 8, 13, 21, 34, 50):
        sets = KINDS[kind](NUM_ITEMS, num_classes, generator)
        cost = torch.randn(NUM_ITEMS, num_classes, generator=generator, dtype=torch.float64)
        cost[::3] = cost[::3].round()  # ties
        assert_close(sets.best(cost).numpy(), solve(sets, cost), atol=1e-9, rtol=0)
        assert_close(sets.worst(cost).numpy(), -solve(sets, -cost), atol=1e-9, rtol=0)


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
