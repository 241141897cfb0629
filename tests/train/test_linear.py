"""Linear fits against scikit-learn and a plain formula; L-BFGS in a valley and at an edge."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.testing import assert_close

import credalearn as cl
from clouds import clouds
from credalearn.train import _linear as linear
from credalearn.train._linear import LinearProblem, Objective, soft_target


@pytest.fixture
def features(generator: torch.Generator) -> Tensor:
    """Correlated features of very different size, shape (200, 6)."""
    mixed = torch.randn(200, 6, generator=generator) @ torch.randn(6, 6, generator=generator)
    return (mixed * torch.tensor([1, 10, 1e-3, 1, 5, 1]) + 3).double()


@pytest.fixture
def soft(features: Tensor, generator: torch.Generator) -> Tensor:
    """Soft labels of three classes that depend on the features, shape (200, 3)."""
    scaled = (features - features.mean(0)) / features.std(0)
    logits = scaled @ torch.randn(6, 3, generator=generator).double()
    return (logits + torch.randn(200, 3, generator=generator)).softmax(1)


def standardized(X: Tensor) -> np.ndarray:
    return ((X - X.mean(0)) / X.std(0, correction=0)).numpy()


@pytest.mark.parametrize("penalty", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("kind", ["dense", "sparse", "many columns"])
def test_precise_labels_give_logistic_regression(
    kind: str, penalty: float, features: Tensor, soft: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = soft.argmax(1)
    X = features if kind != "sparse" else csr_array(standardized(features))
    if kind == "many columns":
        monkeypatch.setattr(linear, "_MOST_SCALED", 5)
    problem = LinearProblem(X, 3)
    assert (problem.covariance is None) == (kind != "dense")
    target = soft_target(torch.eye(3, dtype=torch.float64)[hard])
    head = problem.fit(target, penalty)
    # An item's mean squared length is the number of features, once they are standardized.
    assert problem.length == pytest.approx(6, rel=1e-5)
    theirs = LogisticRegression(C=1 / (200 * penalty * 6), tol=1e-9, max_iter=10_000)
    theirs.fit(standardized(features), hard)
    assert_close(head[:-1].T, torch.from_numpy(theirs.coef_), atol=2e-3, rtol=5e-3)
    ours = problem.network([head]).sparse_logits(X if kind == "sparse" else csr_array(features))
    probs = torch.from_numpy(theirs.predict_proba(standardized(features)))
    assert_close(ours[:, 0].softmax(1), probs, atol=2e-3, rtol=0)


def plain_objective(
    flat: np.ndarray, X: np.ndarray, member: Callable[[np.ndarray], np.ndarray], strength: float
) -> float:
    """The worst or best case as the formula has it; ``member`` chooses from costs (N, K)."""
    head = flat.reshape(X.shape[1] + 1, -1)
    logits = X @ head[:-1] + head[-1]
    costs = np.log(np.exp(logits).sum(1, keepdims=True)) - logits
    return float((member(costs) * costs).sum(1).mean() + strength / 2 * (head[:-1] ** 2).sum())


def test_credal_heads_minimize_the_worst_and_the_best_case(features: Tensor, soft: Tensor) -> None:
    X, labels = features[:40, :2], cl.relax(soft[:40, :2] / soft[:40, :2].sum(1, keepdim=True))
    problem, plain = LinearProblem(X, 2), standardized(X)
    center = problem.fit(soft_target(labels.reference), 1e-2)
    worst, best, third = problem.fit_credal(labels, 1e-2, center)
    assert_close(third, center, rtol=0, atol=0)
    lower = labels.lower.numpy()
    free = 1 - lower.sum(1, keepdims=True)

    def dearest(costs: np.ndarray) -> Any:
        return lower + free * np.eye(2)[costs.argmax(1)]

    def cheapest(costs: np.ndarray) -> Any:
        return lower + free * np.eye(2)[costs.argmin(1)]

    for head, member in ((worst, dearest), (best, cheapest)):
        at_center = plain_objective(center.numpy().ravel(), plain, member, 2e-2)
        found = plain_objective(head.numpy().ravel(), plain, member, 2e-2)
        # No slopes are needed: the objective of a worst case has edges.
        options = {"maxiter": 20_000, "maxfev": 20_000, "fatol": 1e-10, "xatol": 1e-8}
        slow = minimize(
            plain_objective,
            head.numpy().ravel(),
            args=(plain, member, 2e-2),
            method="Nelder-Mead",
            options=options,
        )
        assert found < at_center - 1e-3
        assert found == pytest.approx(slow.fun, abs=2e-4)


def test_a_worst_case_learns_where_zero_is_a_tie() -> None:
    """At zero every member of a label costs the same, and a fit from there stays at chance."""
    X, y, counts = clouds(2)
    labels = cl.from_votes(counts).to(dtype=torch.float64)
    problem = LinearProblem(torch.from_numpy(X), 2)
    center = problem.fit(soft_target(labels.reference), 1e-2)
    for head in problem.fit_credal(labels, 1e-2, center):
        predicted = problem.network([head])(torch.from_numpy(X))[:, 0].argmax(1)
        assert (predicted.numpy() == y).mean() > 0.95


def test_network_keeps_the_heads_unchanged(features: Tensor, generator: torch.Generator) -> None:
    X = standardized(features)
    heads = [torch.randn(7, 3, generator=generator).double() for _ in range(2)]
    state = torch.random.get_rng_state()
    expected = torch.stack([torch.from_numpy(X) @ head[:-1] + head[-1] for head in heads], 1)
    for problem, inputs in (
        (LinearProblem(features, 3), features),
        (LinearProblem(csr_array(X), 3), torch.from_numpy(X)),
    ):
        network = problem.network(heads)
        assert_close(network(inputs).double(), expected, atol=1e-4, rtol=1e-4)
        assert_close(network.sparse_logits(csr_array(inputs)), expected, atol=1e-4, rtol=1e-4)
    assert torch.equal(torch.random.get_rng_state(), state)  # of the caller


@pytest.mark.parametrize("sparse", [False, True])
def test_a_weight_of_two_is_an_item_twice(sparse: bool, features: Tensor, soft: Tensor) -> None:
    twice = torch.arange(200) % 3 == 0
    rows, weight = torch.cat([torch.arange(200), twice.nonzero()[:, 0]]), 1 + twice.double()
    X = csr_array(standardized(features)) if sparse else features
    problems = [
        LinearProblem(X, 3, weight=weight),
        LinearProblem(X, 3, weight=8 * weight),
        LinearProblem(X[rows.numpy()], 3),
    ]
    targets = map(soft_target, (soft, soft, soft[rows]))
    networks = [
        problem.network([problem.fit(target, 1e-2)])
        for problem, target in zip(problems, targets, strict=True)
    ]
    once, scaled, repeated = (network.sparse_logits(csr_array(X)) for network in networks)
    assert torch.equal(scaled, once)
    assert_close(once, repeated, atol=1e-3, rtol=1e-3)


def test_a_class_without_items_gets_no_probability_and_finite_weights(features: Tensor) -> None:
    hard = torch.eye(3, dtype=torch.float64)[torch.arange(200) % 2]
    head = LinearProblem(features, 3).fit(soft_target(hard), 1e-2)
    assert head.isfinite().all()
    assert (LinearProblem(features, 3).network([head])(features).softmax(2)[..., 2] < 1e-2).all()


def differentiated(function: Callable[[Tensor], Tensor]) -> Objective:
    """A function with its slope by torch's autograd."""

    def objective(point: Tensor) -> tuple[float, Tensor]:
        leaf = point.detach().requires_grad_()
        value = function(leaf)
        (slope,) = torch.autograd.grad(value, leaf)
        return value.item(), slope

    return objective


def test_lbfgs_descends_a_valley_to_the_steps_the_slope_or_the_gain_that_is_asked() -> None:
    """Rosenbrock's function of twelve numbers, whose minimum is 0."""
    valley = differentiated(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())
    start, counted = torch.zeros(12, dtype=torch.float64), Mock(wraps=valley)

    def lowest(most_steps: int, **end: float) -> float:
        ends = {"slope": 0.0, "gain": 0.0} | end
        return valley(linear.minimize(counted, start, most_steps=most_steps, **ends))[0]

    values = [lowest(steps) for steps in (0, 1, 5, 20)]
    assert values[0] == 11
    assert values == sorted(values, reverse=True)
    counted.reset_mock()
    assert lowest(75) < 1e-6
    assert counted.call_count < 130  # evaluations; now 92
    assert lowest(500, slope=1e9) == 11
    assert lowest(500, gain=1e-12) < 1e-6 < lowest(500, gain=1.0)
    assert not start.any()  # stays as it is


def test_line_search_avoids_nonfinite_values() -> None:
    def barrier(x: Tensor) -> Tensor:
        return -(1 - x.square()).log().sum() - x.sum()  # nan outside of the unit box

    start = torch.full((3,), -0.999, dtype=torch.float64)
    found = linear.minimize(differentiated(barrier), start, most_steps=100, slope=1e-8, gain=0)
    assert_close(found, torch.full_like(found, 2**0.5 - 1), atol=1e-5, rtol=0)


def test_a_slope_that_never_flattens_is_followed_without_a_curvature() -> None:
    def downhill(x: Tensor) -> tuple[float, Tensor]:
        return float(x.sum()), torch.ones_like(x)

    start = torch.zeros(3, dtype=torch.float64)
    found = linear.minimize(downhill, start, most_steps=3, slope=0, gain=0)
    assert ((found < 0) & found.isfinite()).all()
