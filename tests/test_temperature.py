"""One temperature: its fit against a grid, and tempered predictions."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from credalearn import CredalError, CredalPredictions
from credalearn._temperature import fit_temperature, temper
from present import present
from random_sets import distributions

equal = partial(assert_close, atol=1e-6, rtol=1e-5)


def sampled(probs: Tensor, generator: torch.Generator, *, votes: int = 1) -> Tensor:
    """Shares (N, K) of votes that follow the probabilities."""
    drawn = torch.multinomial(probs, votes, replacement=True, generator=generator)
    return torch.nn.functional.one_hot(drawn, probs.shape[1]).double().mean(1)


@pytest.mark.parametrize("right", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_is_the_best_of_a_grid(
    right: float, weighted: bool, generator: torch.Generator
) -> None:
    probs = (2 * torch.randn(500, 4, generator=generator)).double().softmax(1)
    target = sampled(temper(probs, right), generator)
    weight = torch.rand(500, generator=generator).double() if weighted else torch.ones(500).double()
    found = fit_temperature(probs, target, weight=weight if weighted else None)
    count = float(weight.sum() ** 2 / weight.square().sum())
    smooth = (count * target + 0.25) / (count + 1)
    grid = torch.exp(torch.linspace(math.log(0.05), math.log(20), 800)).tolist()
    costs = [float((-(smooth * temper(probs, T).log()).sum(1)) @ weight) for T in grid]
    assert found == pytest.approx(grid[costs.index(min(costs))], rel=8e-3)
    assert found == pytest.approx(right, rel=0.25)
    again = fit_temperature(probs, target, weight=4 * weight)
    assert again == pytest.approx(found, rel=1e-12)
    twice = fit_temperature(temper(probs, found), target, weight=weight)
    assert twice == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_a_model_that_was_always_right_is_not_certain(count: int) -> None:
    probs, target = torch.tensor([[0.6, 0.4]]).repeat(count, 1), torch.tensor([[1.0, 0.0]])
    found = fit_temperature(probs, target.repeat(count, 1))
    assert temper(probs, found)[0, 1].item() == pytest.approx(0.5 / (count + 1), rel=1e-2)


def test_probabilities_of_zero_count_as_tiny(generator: torch.Generator) -> None:
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    target = torch.eye(3)[[1, 1, 2]]  # wrong once, with certainty
    found = fit_temperature(probs, target)
    assert 1 < found <= 20.001
    assert temper(probs, found).isfinite().all()


@st.composite
def predictions(draw: st.DrawFn) -> CredalPredictions:
    """Hulls of one to four points, and boxes around a distribution, among them points."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    num_classes, kind = draw(st.integers(2, 5)), draw(st.integers(0, 5))
    points = distributions(7, max(1, kind), num_classes, generator=generator)
    points = (points + 1e-4) / (points + 1e-4).sum(-1, keepdim=True)
    hull = CredalPredictions.from_vertices(points)
    if kind < 4:
        return hull
    return CredalPredictions(hull.probs, hull.lower, hull.upper)


temperatures = st.floats(0.3, 5.0)


@given(predictions(), temperatures, temperatures)
def test_tempered_sets_contain_their_center(
    pred: CredalPredictions, first: float, second: float
) -> None:
    found = pred.temper(first)
    assert (found.lower <= found.probs).all()
    assert (found.probs <= found.upper).all()
    equal(found.probs, pred.probs.pow(1 / first) / pred.probs.pow(1 / first).sum(1, keepdim=True))
    top = found.probs.gather(1, pred.classes[:, None])[:, 0]
    equal(top, found.probs.amax(1))  # the class stays
    equal(found.temper(second).probs, pred.temper(first * second).probs)
    if pred.vertices is not None:
        for one, other in zip(
            (found.temper(second).lower, found.temper(second).upper),
            (pred.temper(first * second).lower, pred.temper(first * second).upper),
            strict=True,
        ):
            equal(one, other)
        assert found.vertices is not None
        own = pred.vertices.pow(1 / first) / pred.vertices.pow(1 / first).sum(-1, keepdim=True)
        equal(found.vertices[:, : own.shape[1]], own)
        last = found.vertices[:, -1]
        equal(last, found.probs)
    else:
        odds = pred.lower.logit() / first, pred.upper.logit() / first
        assert (found.lower <= odds[0].sigmoid() + 1e-9).all()
        assert (found.upper >= odds[1].sigmoid() - 1e-9).all()


def test_a_point_stays_a_point_and_a_dirichlet_its_parameters() -> None:
    alpha = torch.tensor([[6.0, 3.0, 1.0], [1.0, 1.0, 8.0]])
    mean = alpha / alpha.sum(1, keepdim=True)
    for pred in (
        CredalPredictions(mean, mean, mean, concentration=alpha),
        CredalPredictions(mean, mean.clone(), mean.clone(), concentration=alpha),
    ):
        found = pred.temper(2.0)
        assert torch.equal(found.lower, found.probs)
        assert torch.equal(found.upper, found.probs)
        assert torch.equal(present(found.concentration), alpha)
    for heads, count in ((mean[:, None], 1), (mean[:, None].repeat(1, 2, 1), 3)):  # also if equal
        vertices = present(CredalPredictions.from_vertices(heads).temper(2.0).vertices)
        assert vertices.shape == (2, count, 3)


def test_the_box_of_two_classes_is_tempered_exactly() -> None:
    """Log-odds of a bound are the logits of two classes: as if the ends were vertices."""
    ends = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]])
    hull = CredalPredictions.from_vertices(ends)
    box = CredalPredictions(hull.probs, hull.lower, hull.upper)
    for temperature in (0.5, 3.0):
        equal(box.temper(temperature).lower, hull.temper(temperature).lower)
        equal(box.temper(temperature).upper, hull.temper(temperature).upper)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_rejects_temperatures_that_are_not_above_zero(temperature: float) -> None:
    pred = CredalPredictions.from_vertices(torch.tensor([[[0.9, 0.1]]]))
    with pytest.raises(CredalError, match="temperature must be above 0; got"):
        pred.temper(temperature)
