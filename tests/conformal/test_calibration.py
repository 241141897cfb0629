"""Distances to sets, and the radius of widened ones: by counting, and the coverage it promises."""

import math
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from credalearn import CredalError, CredalPredictions, Inflation
from credalearn.conformal import Distance, Scale
from credalearn.conformal._calibration import SCALES, box_distance, total_variation
from predicted_sets import KINDS, voted_predictions
from random_sets import distributions, events

DISTANCES = get_args(Distance)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_box_distance_is_the_least_widening(
    kind: str, scale: Scale, generator: torch.Generator
) -> None:
    pred = KINDS[kind](40, 5, generator)
    q = distributions(40, 5, generator=generator)
    factor = SCALES[scale](pred.probs)
    found = box_distance(q, pred.lower, pred.upper, factor)
    for more, expected in ((1e-9, torch.ones(40, dtype=torch.bool)), (-1e-9, found == 0)):
        room = (found + more).clamp(min=0)[:, None] * factor
        inside = ((q >= pred.lower - room) & (q <= pred.upper + room)).all(1)
        assert torch.equal(inside, expected)


@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_total_variation_is_the_largest_difference_of_an_event(
    num_classes: int, generator: torch.Generator
) -> None:
    p, q = (distributions(40, num_classes, generator=generator) for _ in range(2))
    slow = torch.stack([(q - p) @ event for event in events(num_classes)]).amax(0)
    assert_close(total_variation(q, p), slow.clamp(min=0))
    assert slow.max() > 0.3
    rounded = p.float().double()  # sums to 1 but for 1e-7
    assert (total_variation(q, rounded)[:, None] >= (q - rounded).abs()).all()


def rank(num_items: int, coverage: float) -> int:
    """The least k with k / (n + 1) >= coverage, by counting."""
    return next(k for k in range(1, 10**6) if k / (num_items + 1) >= coverage - 1e-12)


@pytest.mark.catches(
    "conformal/_calibration.py", "values[rank * draws - 1]", "values[max(rank - 1, 1) * draws - 1]"
)
@pytest.mark.parametrize("coverage", [0.07, 0.5, 0.7, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("num_items", [9, 10, 19, 99, 100])
def test_radius_is_the_counted_quantile(num_items: int, coverage: float) -> None:
    off = torch.randperm(num_items, generator=torch.Generator().manual_seed(0)).double() / 400
    p = torch.full((num_items, 2), 0.5, dtype=torch.float64)
    q = torch.stack([0.5 + off, 0.5 - off], 1)
    found = CredalPredictions.from_probs(p).inflation(q, coverage=coverage, scale="none")
    wanted = rank(num_items, coverage)
    assert found.rank == wanted
    if wanted > num_items:
        assert found.vacuous
        assert num_items < found.items_needed
    else:
        assert found.radius == pytest.approx((wanted - 1) / 400)
        assert num_items >= found.items_needed


@given(
    voted_predictions(),
    st.sampled_from(DISTANCES),
    st.sampled_from(list(SCALES)),
    st.floats(0.05, 0.95),
)
def test_calibration_items_are_covered_to_the_last_bit(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale, coverage: float
) -> None:
    pred, votes = case
    if distance != "box" and scale == "stretched":
        return  # refused
    found = pred.inflation(votes, coverage=coverage, distance=distance, scale=scale)
    wanted = min(rank(len(pred), coverage), len(pred))
    inside = pred.covers(votes, found)
    assert int(inside.sum()) >= wanted
    wide = pred.conformalize(found)
    shares = votes / votes.sum(1, keepdim=True)
    held = ((shares >= wide.lower.double()) & (shares <= wide.upper.double())).all(1)
    assert int(held.sum()) >= wanted  # without any tolerance
    assert (held | ~inside).all()
    if distance == "box" and not found.vacuous:
        assert bool((inside == held).all()) or pred.probs.dtype == torch.float32


def drawn(
    kind: str, num_items: int, generator: torch.Generator
) -> tuple[CredalPredictions, Tensor]:
    """Exchangeable items: what people say scatters around what the model is near to."""
    truth = torch.rand(num_items, 3, generator=generator, dtype=torch.float64) ** 3 + 0.01
    truth = truth / truth.sum(1, keepdim=True)
    num_vertices = {"segment": 2, "hull": 3, "box": 2, "point": 1}[kind]
    noise = torch.randn(num_items, num_vertices, 3, generator=generator, dtype=torch.float64)
    heads = (truth.log()[:, None] + 0.3 * noise).softmax(2)
    pred = CredalPredictions.from_vertices(heads)
    if kind == "box":
        pred = CredalPredictions(pred.probs, pred.lower, pred.upper)
    scatter = torch.randn(num_items, 3, generator=generator, dtype=torch.float64)
    return pred, (truth.log() + 0.5 * scatter).softmax(1)


@pytest.mark.catches(
    "conformal/inflation.py",
    "math.ceil((items + 1) * coverage - 1e-9)",
    "math.ceil((items - 1) * coverage - 1e-9)",
    case="segment-box-none",
)
@pytest.mark.parametrize(
    ("distance", "scale"),
    [(d, s) for d in DISTANCES for s in SCALES if d == "box" or s != "stretched"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_new_items_are_covered_as_promised(kind: str, distance: Distance, scale: Scale) -> None:
    """Over 200 calibration sets of 39 items, of 60 new items each."""
    draws, old, new = 200, 39, 60
    pred, said = drawn(kind, draws * (old + new), torch.Generator().manual_seed(20261115))
    found = []
    for first in range(0, len(pred), old + new):
        some, others = slice(first, first + old), slice(first + old, first + old + new)
        inflation = pred[some].inflation(said[some], distance=distance, scale=scale)
        found.append(pred[others].covers(said[others], inflation).double().mean())
    shares = torch.stack(found)
    mean, error = float(shares.mean()), float(shares.std() / math.sqrt(draws))
    assert 0.9 - 3.5 * error <= mean <= 0.9 + 1 / 40 + 3.5 * error
    assert error < 0.006


@pytest.mark.catches(
    "conformal/_calibration.py",
    "radii = [radius_of.get(str(name), math.inf) for name in strata]",
    "radii = [inflation.radius for name in strata]",
)
def test_strata_are_covered_separately() -> None:
    """One radius covers what is clear too often and what is unclear too rarely; strata do not."""
    pred, said = drawn("point", 40_000, torch.Generator().manual_seed(0))
    unclear = pred.probs.amax(1) < 0.6
    said = torch.where(unclear[:, None], said.flip(1), said)
    names = ["unclear" if each else "clear" for each in unclear]
    old, new = slice(0, 20_000), slice(20_000, 40_000)
    one = pred[old].inflation(said[old], scale="none")
    own = pred[old].inflation(said[old], scale="none", strata=names[old])
    assert [each.name for each in own.strata] == ["clear", "unclear"]
    held = pred[new].covers(said[new], own, strata=names[new])
    together = pred[new].covers(said[new], one)
    for part in (unclear[new], ~unclear[new]):
        assert abs(float(held[part].double().mean()) - 0.9) < 0.01
        assert abs(float(together[part].double().mean()) - 0.9) > 0.03
    unknown = pred[:1].conformalize(own, strata=["elsewhere"])
    assert torch.equal(unknown.upper - unknown.lower, torch.ones(1, 3, dtype=torch.float64))
    assert Inflation.from_json(own.to_json()) == own
    with pytest.raises(CredalError, match="these sets have strata"):
        pred[:2].conformalize(own)
    with pytest.raises(CredalError, match="strata must name one stratum for each of 20000 items"):
        pred[old].inflation(said[old], strata=["a"])


@pytest.mark.parametrize(
    ("observed", "options", "message"),
    [
        ([[1, 2]], {"coverage": 1.0}, "coverage must be above 0 and below 1; got 1.0"),
        ([[1, 2]], {"distance": "total-variation", "scale": "stretched"}, "is about boxes"),
        ([[1, 2]], {"distance": "kl"}, "distance must be one of 'box', 'total-variation', 'kull"),
        ([[1, 2]], {"scale": "width"}, "scale must be one of 'relative-variance', .* got 'width'"),
        ([[0, 0]], {}, "not all 0; row 0 has observed=.*leave out items without votes"),
        ([[1, 2, 3]], {}, r"observed must have shape \(1, 2\); got \(1, 3\)"),
    ],
)
def test_rejects_bad_input(
    observed: list[list[float]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(CredalError, match=message):
        CredalPredictions.from_probs([[0.5, 0.5]]).inflation(observed, **options)  # type: ignore[arg-type]
