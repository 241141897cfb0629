"""L-BFGS against SciPy's, on a valley, a bowl and an edge."""

import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from torch import Tensor
from torch.testing import assert_close

from credalearn.train._linear import Objective, minimize


def differentiated(function: object) -> Objective:
    """A function with its slope by torch's autograd."""

    def objective(point: Tensor) -> tuple[float, Tensor]:
        leaf = point.detach().requires_grad_()
        value = function(leaf)  # type: ignore[operator]
        (slope,) = torch.autograd.grad(value, leaf)
        return value.item(), slope

    return objective


def rosenbrock(x: Tensor) -> Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x: Tensor) -> Tensor:
    """A bowl that is 10,000 times steeper in one direction than in another."""
    return (torch.logspace(0, 4, x.numel(), dtype=x.dtype).view_as(x) * (x - 3) ** 2).sum() / 2


@pytest.mark.parametrize(("function", "shape"), [(rosenbrock, (12,)), (bowl, (5, 4))])
def test_finds_the_minimum_that_scipy_finds(function: object, shape: tuple[int, ...]) -> None:
    calls = 0
    objective = differentiated(function)

    def counted(point: Tensor) -> tuple[float, Tensor]:
        nonlocal calls
        calls += 1
        return objective(point)

    start = torch.zeros(shape, dtype=torch.float64)
    found = minimize(counted, start, most_steps=1000, slope=1e-8, gain=0)
    assert not start.any()  # stays as it is

    def plain(flat: object) -> tuple[float, object]:
        value, slope = objective(torch.tensor(flat).view(shape))
        return value, slope.numpy().ravel()

    options = {"maxiter": 1000, "gtol": 1e-8, "ftol": 0}
    theirs = scipy_minimize(
        plain, start.numpy().ravel(), jac=True, method="L-BFGS-B", options=options
    )
    assert_close(found.ravel(), torch.from_numpy(theirs.x), atol=1e-4, rtol=0)
    assert calls < 2.5 * theirs.nfev


def test_ends_at_the_steps_the_slope_or_the_gain_that_is_asked() -> None:
    start, objective = torch.zeros(12, dtype=torch.float64), differentiated(rosenbrock)
    values = [
        objective(minimize(objective, start, most_steps=steps, slope=0, gain=0))[0]
        for steps in (0, 1, 5, 20)
    ]
    assert values[0] == 11
    assert values == sorted(values, reverse=True)
    early = minimize(objective, start, most_steps=500, slope=1e9, gain=0)
    assert torch.equal(early, start)
    coarse, fine = (
        objective(minimize(objective, start, most_steps=500, slope=0, gain=gain))[0]
        for gain in (1.0, 1e-12)
    )
    assert fine < 1e-6 < coarse


def test_line_search_avoids_nonfinite_values() -> None:
    def barrier(x: Tensor) -> Tensor:
        return -(1 - x.square()).log().sum() - x.sum()  # nan outside of the unit box

    start = torch.full((3,), -0.999, dtype=torch.float64)
    found = minimize(differentiated(barrier), start, most_steps=100, slope=1e-8, gain=0)
    assert_close(found, torch.full_like(found, 2**0.5 - 1), atol=1e-5, rtol=0)
