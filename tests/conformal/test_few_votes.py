"""Sets for the distribution behind few votes, and conformal credal sets."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Dirichlet
from torch.testing import assert_close

import credalearn as cl
from credalearn.conformal._calibration import kullback_leibler, kullback_leibler_bounds
from random_sets import distributions


def drawn(num_items: int, *, votes: int) -> tuple[cl.CredalPredictions, Tensor, Tensor]:
    """Predictions, the distributions behind the votes, and the votes."""
    torch.manual_seed(7)
    around = Dirichlet(torch.full((5,), 0.3, dtype=torch.float64))
    probs = around.sample((num_items,)) * 0.98 + 0.004
    sure = torch.rand(num_items, 1) < 0.6
    truth = Dirichlet(torch.where(sure, 40.0, 2.0) * probs + 0.001).sample()
    chosen = truth.multinomial(votes, replacement=True)
    counts = torch.nn.functional.one_hot(chosen, 5).sum(1)
    return cl.CredalPredictions.from_vertices(probs[:, None]), truth, counts


def test_estimated_sets_cover_distributions_and_are_narrower() -> None:
    predicted, truth, counts = drawn(3000, votes=3)
    some, others = slice(0, 1500), slice(1500, None)
    widths, covered = {}, {}
    for target in ("votes", "distribution"):
        found = predicted[some].inflation(counts[some], scale="binomial", target=target)
        wide = predicted[others].conformalize(found)
        widths[target] = float((wide.upper - wide.lower).mean())
        covered[target] = float(predicted[others].covers(truth[others], found).double().mean())
    assert 0.88 <= covered["distribution"] <= 0.94
    assert covered["votes"] > 0.96
    assert widths["distribution"] < 0.75 * widths["votes"]


def test_an_estimate_is_named_so_and_reproducible() -> None:
    predicted, _, counts = drawn(60, votes=3)
    first, again, other = (
        predicted.inflation(counts, target="distribution", random_state=state)
        for state in (0, 0, 1)
    )
    assert first == again
    assert first.radius != other.radius
    assert first.sentence().startswith("An estimate, not a guarantee: ")
    assert cl.Inflation.from_json(first.to_json()) == first


def test_each_stratum_has_an_estimate_of_its_own() -> None:
    predicted, _, counts = drawn(80, votes=3)
    names = ["a", "b"] * 40
    found = predicted.inflation(counts, target="distribution", strata=names)
    assert [(each.name, each.items) for each in found.strata] == [("a", 40), ("b", 40)]
    assert found.strata[0].radius != found.strata[1].radius


def test_an_estimate_needs_votes() -> None:
    predicted, truth, _ = drawn(20, votes=3)
    with pytest.raises(cl.CredalError, match="observed must be whole numbers"):
        predicted.inflation(truth, target="distribution")


def test_bounds_of_a_kullback_leibler_ball_are_the_extremes_of_its_members(
    generator: torch.Generator,
) -> None:
    """Against many distributions: none in the ball is outside, and some touch each bound."""
    probs = distributions(6, 3, generator=generator).clamp(min=1e-3)
    probs = probs / probs.sum(1, keepdim=True)
    members = Dirichlet(torch.ones(3, dtype=torch.float64)).sample((40_000,))
    radius = torch.tensor([[0.0], [0.01], [0.1], [0.5], [2.0], [torch.inf]], dtype=torch.float64)
    lower, upper = kullback_leibler_bounds(probs, radius)
    assert_close(lower[0], probs[0])
    assert_close(upper[0], probs[0])
    assert (lower[5] == 0).all()
    assert (upper[5] == 1).all()
    for item in range(1, 5):
        away = kullback_leibler(members, probs[item].expand_as(members))
        inside = members[away <= radius[item]]
        assert (inside >= lower[item]).all()
        assert (inside <= upper[item]).all()
        assert_close(inside.amin(0), lower[item], atol=0.03, rtol=0)
        assert_close(inside.amax(0), upper[item], atol=0.03, rtol=0)
