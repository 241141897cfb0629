"""Widened sets: distances against slow programs, the radius, the bounds and the promise."""

import inspect
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import conformal_scales
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import Tensor
from torch.testing import assert_close

from credalearn import CredalError, CredalPredictions, Intervals
from credalearn.conformal import (
    SCALES,
    Distance,
    Inflation,
    Scale,
    box_distance,
    calibrate,
    total_variation,
)
from random_sets import distributions, intervals

DISTANCES = get_args(Distance)


# Predictions of every kind of set


def segment(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    return hull(num_items, num_classes, generator, num_vertices=2)


def hull(
    num_items: int, num_classes: int, generator: torch.Generator, *, num_vertices: int = 4
) -> CredalPredictions:
    """Points around one, some of them twice."""
    middle = distributions(num_items, 1, num_classes, generator=generator)
    around = distributions(num_items, num_vertices, num_classes, generator=generator)
    points = 0.7 * middle + 0.3 * around
    points[: num_items // 4, -1] = points[: num_items // 4, 0]
    return CredalPredictions.from_vertices(points)


def box(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    sets = intervals(num_items, num_classes, generator)
    return CredalPredictions(sets.center(), sets.lower, sets.upper)


def point(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    return hull(num_items, num_classes, generator, num_vertices=1)


Maker = Callable[[int, int, torch.Generator], CredalPredictions]
KINDS: dict[str, Maker] = {"segment": segment, "hull": hull, "box": box, "point": point}


@st.composite
def cases(draw: st.DrawFn) -> tuple[CredalPredictions, Tensor]:
    """Predictions of some kind, and as many votes, some of them inside the sets."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(list(KINDS)))
    num_items, num_classes = draw(st.integers(8, 40)), draw(st.integers(2, 6))
    pred = KINDS[kind](num_items, num_classes, generator)
    said = distributions(num_items, num_classes, generator=generator)
    said[::3] = 0.8 * pred.probs[::3] + 0.2 * said[::3]
    said[::7] = pred.probs[::7]
    votes = said * torch.randint(1, 60, (num_items, 1), generator=generator)
    if draw(st.booleans()):
        votes = votes.round() + (votes.round().sum(1, keepdim=True) == 0)
    return pred.to(draw(st.sampled_from([torch.float32, torch.float64]))), votes


# Distances


def slow_box(q: Tensor, lower: Tensor, upper: Tensor, scale: Tensor) -> float:
    """The least r, by a linear program over r alone."""
    rows = [[-float(s)] for s in scale] * 2
    limits = [*(q - lower).tolist(), *(upper - q).tolist()]
    found = linprog([1.0], A_ub=rows, b_ub=limits, bounds=[(0, None)])
    return float(found.fun)


def slow_total_variation(q: Tensor, pred: CredalPredictions, row: int) -> float:
    """The least half sum of |q − p| over members p, with p, weights and gaps as variables."""
    num_classes = len(q)
    points = None if pred.vertices is None else pred.vertices[row].double().numpy()
    num_points = 0 if points is None else len(points)
    # variables: p (K), gaps (K), weights (V)
    cost = np.r_[np.zeros(num_classes), np.full(num_classes, 0.5), np.zeros(num_points)]
    unit, none = np.eye(num_classes), np.zeros((num_classes, num_points))
    above = np.block([[unit, -unit, none], [-unit, -unit, none]])
    ones = np.r_[np.ones(num_classes), np.zeros(num_classes + num_points)]
    equal, value = [ones], [1.0]
    bounds: list[tuple[float, float | None]] = [(0.0, 1.0)] * num_classes
    if points is None:
        low, high = pred.lower[row].tolist(), pred.upper[row].tolist()
        bounds = list(zip(low, high, strict=True))
    else:
        mixed = np.hstack([unit, np.zeros_like(unit), -points.T])
        equal = [*mixed, np.r_[np.zeros(2 * num_classes), np.ones(num_points)]]
        value = [*np.zeros(num_classes), 1.0]
    bounds += [(0.0, None)] * (num_classes + num_points)
    limits = np.r_[q.numpy(), -q.numpy()]
    found = linprog(cost, above, limits, np.array(equal), value, bounds)
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
@pytest.mark.parametrize("kind", KINDS)
def test_total_variation_is_the_least_over_members(
    kind: str, num_classes: int, generator: torch.Generator
) -> None:
    pred = KINDS[kind](120, num_classes, generator)  # more than one block of programs
    q = distributions(120, num_classes, generator=generator)
    q[:30] = pred.probs[:30]  # inside
    found = total_variation(q, pred.lower, pred.upper, vertices=pred.vertices)
    slow = [slow_total_variation(q[row], pred, row) for row in range(120)]
    assert_close(found, torch.tensor(slow, dtype=torch.float64), atol=1e-7, rtol=0)
    assert (found[:30] <= 1e-7).all()
    assert found.max() > 0.3


def test_segments_between_equal_and_nearly_equal_ends() -> None:
    first = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64)
    q = torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64)
    for step in (0.0, 1e-320, 1e-12):
        second = first + step * torch.tensor([[1.0, -1.0, 0.0]], dtype=torch.float64)
        ends = torch.stack([first, second], 1)
        found = total_variation(q, first, first, vertices=ends)
        assert_close(found, torch.tensor([0.4], dtype=torch.float64), atol=1e-11, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_total_variation_is_below_that_to_the_box_around(
    kind: str, generator: torch.Generator
) -> None:
    pred = KINDS[kind](100, 4, generator)
    q = distributions(100, 4, generator=generator)
    true = total_variation(q, pred.lower, pred.upper, vertices=pred.vertices)
    around = total_variation(q, pred.lower, pred.upper)
    assert (around <= true + 1e-7).all()
    ones = torch.ones(100, 1, dtype=torch.float64)
    assert (box_distance(q, pred.lower, pred.upper, ones) <= around + 1e-12).all()


# The radius


def rank(num_items: int, coverage: float) -> int:
    """The least k with k / (n + 1) >= coverage, by counting."""
    return next(k for k in range(1, 10**6) if k / (num_items + 1) >= coverage - 1e-12)


@pytest.mark.parametrize("coverage", [0.07, 0.5, 0.7, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("num_items", [9, 10, 19, 99, 100])
def test_the_radius_is_the_counted_quantile(num_items: int, coverage: float) -> None:
    off = torch.randperm(num_items, generator=torch.Generator().manual_seed(0)).double() / 400
    p = torch.full((num_items, 2), 0.5, dtype=torch.float64)
    q = torch.stack([0.5 + off, 0.5 - off], 1)
    found = calibrate(q, p, p, p, coverage=coverage, scale="none")
    wanted = rank(num_items, coverage)
    assert found.rank == wanted
    if wanted > num_items:
        assert found.vacuous
        assert num_items < found.items_needed
    else:
        assert found.radius == pytest.approx((wanted - 1) / 400)
        assert num_items >= found.items_needed


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_the_items_needed_are_just_enough(coverage: float) -> None:
    needed = Inflation(
        coverage=coverage, radius=math.inf, distance="box", scale="none", items=0
    ).items_needed
    p = torch.full((needed, 2), 0.5)
    assert not calibrate(p, p, p, p, coverage=coverage).vacuous
    assert calibrate(p[1:], p[1:], p[1:], p[1:], coverage=coverage).vacuous


@given(cases(), st.sampled_from(DISTANCES), st.sampled_from(list(SCALES)), st.floats(0.05, 0.95))
def test_calibration_items_themselves_are_covered_to_the_last_bit(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale, coverage: float
) -> None:
    pred, votes = case
    found = pred.inflation(votes, coverage=coverage, distance=distance, scale=scale)
    wanted = min(rank(len(pred), coverage), len(pred))
    inside = found.covers(votes, pred.lower, pred.upper, pred.probs, vertices=pred.vertices)
    assert int(inside.sum()) >= wanted
    wide = pred.conformalize(found)
    shares = votes / votes.sum(1, keepdim=True)
    held = ((shares >= wide.lower.double()) & (shares <= wide.upper.double())).all(1)
    assert int(held.sum()) >= wanted  # without any tolerance
    assert (held | ~inside).all()
    if distance == "box" and not found.vacuous:
        assert bool((inside == held).all()) or pred.probs.dtype == torch.float32


@given(cases(), st.sampled_from(DISTANCES), st.sampled_from(list(SCALES)))
def test_more_coverage_gives_wider_sets(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale
) -> None:
    pred, votes = case
    radius, lower, upper = 0.0, pred.lower + 1, pred.upper - 1
    for coverage in (0.2, 0.5, 0.8, 0.9, 0.99):
        found = pred.inflation(votes, coverage=coverage, distance=distance, scale=scale)
        wide = pred.conformalize(found)
        assert found.radius >= radius
        assert (wide.lower <= lower).all()
        assert (wide.upper >= upper).all()
        radius, lower, upper = found.radius, wide.lower, wide.upper
    assert found.vacuous == (len(pred) < 99)
    if found.vacuous:
        assert bool((lower == 0).all())
        assert bool((upper == 1).all())


@given(cases(), st.sampled_from(DISTANCES), st.sampled_from(list(SCALES)), st.integers(0, 99))
def test_the_order_of_items_and_classes_does_not_matter(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale, random_state: int
) -> None:
    pred, votes = case
    generator = torch.Generator().manual_seed(random_state)
    rows = torch.randperm(len(pred), generator=generator)
    columns = torch.randperm(votes.shape[1], generator=generator)
    other = CredalPredictions(
        pred.probs[rows][:, columns],
        pred.lower[rows][:, columns],
        pred.upper[rows][:, columns],
        None if pred.vertices is None else pred.vertices[rows][:, :, columns],
    )
    found = pred.inflation(votes, coverage=0.7, distance=distance, scale=scale)
    again = other.inflation(votes[rows][:, columns], coverage=0.7, distance=distance, scale=scale)
    assert again.radius == pytest.approx(found.radius, abs=1e-6)
    wide, shuffled = pred.conformalize(found), other.conformalize(found)
    assert_close(shuffled.lower, wide.lower[rows][:, columns], atol=1e-6, rtol=0)
    assert_close(shuffled.upper, wide.upper[rows][:, columns], atol=1e-6, rtol=0)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("scale", SCALES)
def test_a_factor_of_the_scale_or_of_the_votes_changes_no_set(
    distance: Distance,
    scale: Scale,
    generator: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pred = hull(30, 4, generator)
    votes = distributions(30, 4, generator=generator)
    found = pred.inflation(votes, distance=distance, scale=scale)
    more = pred.inflation(votes * 51, distance=distance, scale=scale)
    assert more.radius == pytest.approx(found.radius)
    once = SCALES[scale]
    monkeypatch.setitem(SCALES, scale, lambda probs: 7 * once(probs))
    scaled = pred.inflation(votes, distance=distance, scale=scale)
    assert scaled.radius == pytest.approx(found.radius / 7)
    wide = pred.conformalize(scaled)
    monkeypatch.undo()
    assert_close(wide.lower, pred.conformalize(found).lower, atol=1e-9, rtol=0)


# The widened set


@given(cases(), st.sampled_from(DISTANCES), st.sampled_from(list(SCALES)))
def test_widened_bounds_are_those_of_the_box_and_reachable(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale
) -> None:
    pred, votes = case
    found = pred.inflation(votes, coverage=0.6, distance=distance, scale=scale)
    wide = pred.conformalize(found)
    factor = SCALES[scale](pred.probs.double())
    if distance == "total-variation" and factor.shape[1] > 1:
        factor = factor.sum(1, keepdim=True) / 2
    low = (pred.lower.double() - found.radius * factor).clamp(min=0)
    high = (pred.upper.double() + found.radius * factor).clamp(max=1)
    tight = Intervals(low, high.clamp(min=low))
    assert_close(wide.lower.double(), tight.lower, atol=2e-6, rtol=0)
    assert_close(wide.upper.double(), tight.upper, atol=2e-6, rtol=0)
    assert wide.lower.dtype == pred.lower.dtype
    assert wide.vertices is None
    assert torch.equal(wide.probs, pred.probs)
    assert torch.equal(wide.classes, pred.classes)
    assert (wide.lower <= pred.lower + 1e-6).all()
    assert (wide.upper >= pred.upper - 1e-6).all()


def test_bounds_that_nothing_reaches_are_tightened() -> None:
    """Beside .05 and .05 the first class has .9 at most, though .9 + .05 would be allowed."""
    lower, upper = torch.tensor([[0.2, 0.1, 0.1]]), torch.tensor([[0.9, 0.5, 0.4]])
    probs = torch.tensor([[0.5, 0.3, 0.2]])
    found = Inflation(coverage=0.9, radius=0.05, distance="box", scale="none", items=20)
    low, high = found.widen(lower, upper, probs)
    assert_close(low, torch.tensor([[0.15, 0.05, 0.05]]))
    assert_close(high, torch.tensor([[0.9, 0.55, 0.45]]))


def test_a_neighborhood_lies_in_its_box(generator: torch.Generator) -> None:
    """What total variation covers, the returned bounds cover too."""
    pred = hull(40, 4, generator)
    found = pred.inflation(distributions(40, 4, generator=generator), distance="total-variation")
    wide = pred.conformalize(found)
    seen = 0
    for _ in range(20):
        q = 0.5 * pred.probs + 0.5 * distributions(40, 4, generator=generator)
        near = found.covers(q, pred.lower, pred.upper, pred.probs, vertices=pred.vertices)
        assert ((q >= wide.lower) & (q <= wide.upper)).all(1)[near].all()
        seen += int(near.sum())
    assert 0 < seen < 800


def test_a_dirichlet_keeps_its_evidence() -> None:
    alpha = torch.tensor([[3.0, 1.0]])
    mean = alpha / 4
    pred = CredalPredictions(mean, mean, mean, concentration=alpha)
    inflation = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=20)
    wide = pred.conformalize(inflation)
    assert wide.concentration is not None
    assert torch.equal(wide.score("evidence"), pred.score("evidence"))
    assert_close(wide.score("mmi"), torch.tensor([0.2]))


@pytest.mark.parametrize("scale", SCALES)
def test_scales_are_above_zero_and_blind_to_the_order(scale: Scale) -> None:
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    factor = SCALES[scale](probs)
    assert factor.shape in ((3, 1), (3, 3))
    assert (factor >= 0.01 - 1e-6).all()
    turned = SCALES[scale](probs.flip(1))
    assert_close(turned, factor.flip(1))


# The promise


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


def mean_coverage(
    kind: str,
    distance: Distance,
    scale: Scale,
    calibrated: Callable[..., Inflation] = CredalPredictions.inflation,
) -> tuple[float, float]:
    """Over 200 calibration sets of 39 items, of 60 new items each; and its standard error."""
    draws, old, new = 200, 39, 60
    pred, said = drawn(kind, draws * (old + new), torch.Generator().manual_seed(20261115))
    found = []
    for first in range(0, len(pred), old + new):
        some, others = slice(first, first + old), slice(first + old, first + old + new)
        inflation = calibrated(pred[some], said[some], coverage=0.9, distance=distance, scale=scale)
        rest = pred[others]
        sets = (rest.lower, rest.upper, rest.probs)
        held = inflation.covers(said[others], *sets, vertices=rest.vertices)
        found.append(held.double().mean())
    shares = torch.stack(found)
    return float(shares.mean()), float(shares.std() / math.sqrt(draws))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("kind", KINDS)
def test_new_items_are_covered_as_promised(kind: str, distance: Distance, scale: Scale) -> None:
    mean, error = mean_coverage(kind, distance, scale)
    assert 0.9 - 3.5 * error <= mean <= 0.9 + 1 / 40 + 3.5 * error
    assert error < 0.006


def test_the_simulation_can_tell_one_rank() -> None:
    """The 35th of 39 items instead of the 36th covers 87.5 %."""

    def naive(pred: CredalPredictions, said: Tensor, **options: str) -> Inflation:
        return pred.inflation(said, **options | {"coverage": 35 / 40})  # type: ignore[arg-type]

    mean, error = mean_coverage("segment", "box", "none", naive)
    assert mean < 0.9 - 3.5 * error


def test_votes_of_few_annotators_are_covered_too() -> None:
    """Ties, as three votes have them, only add to the coverage."""
    rng = np.random.default_rng(0)
    generator = torch.Generator().manual_seed(1)
    found = []
    for _ in range(500):
        pred, said = drawn("segment", 80, generator)
        votes = rng.multinomial(3, said.numpy())
        inflation = pred[:40].inflation(votes[:40])
        wide = pred[40:].conformalize(inflation)
        shares = torch.from_numpy(votes[40:] / 3)
        held = ((shares >= wide.lower) & (shares <= wide.upper)).all(1)
        found.append(float(held.double().mean()))
    assert np.mean(found) >= 0.9 - 3.5 * np.std(found) / math.sqrt(500)


# What the default rests on


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_benchmark_measures_what_the_package_does(
    distance: Distance, scale: Scale, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformal_scales, "SPLITS", 1)
    monkeypatch.setattr(conformal_scales, "METHODS", ("any",))
    pred, votes = hull(60, 4, generator), 5 * distributions(60, 4, generator=generator)
    found = next(
        each
        for each in conformal_scales.sizes_of("any", {"any": pred}, votes.numpy())
        if (each.distance, each.scale, each.target) == (distance, scale, 0.9)
    )
    order = torch.from_numpy(np.random.default_rng(0).permutation(60))
    old, new = order[:30], order[30:]
    inflation = pred[old].inflation(votes[old], distance=distance, scale=scale)
    rest = pred[new]
    wide = rest.conformalize(inflation)
    sets = (rest.lower, rest.upper, rest.probs)
    covered = inflation.covers(votes[new], *sets, vertices=rest.vertices)
    assert found.width == pytest.approx(float((wide.upper - wide.lower).mean()), abs=1e-6)
    assert found.covered == pytest.approx(float(covered.double().mean()))
    if distance == "box":
        assert found.diameter == pytest.approx(float(wide.score("mmi").mean()), abs=1e-6)


def test_the_default_scale_is_the_one_with_the_narrowest_sets() -> None:
    """By the geometric mean over data sets, coverages and methods of the kept results."""
    sizes = conformal_scales.read()
    widths = {
        scale: np.mean(
            [math.log(s.width) for s in sizes if (s.distance, s.scale) == ("box", scale)]
        )
        for scale in SCALES
    }
    default = inspect.signature(CredalPredictions.inflation).parameters["scale"].default
    assert min(widths, key=lambda scale: widths[scale]) == default == next(iter(SCALES))
    assert all(abs(s.covered - s.target) < 0.005 for s in sizes)


# Files and refusals


def test_an_inflation_survives_its_file() -> None:
    for radius, items in ((0.0, 9), (0.1 + 0.2, 9), (math.inf, 8)):
        found = Inflation(
            coverage=0.9, radius=radius, distance="box", scale="binomial", items=items
        )
        text = found.to_json()
        assert Inflation.from_json(text) == found
        assert json.loads(text)["sentence"] == found.sentence()


def test_statements_say_what_is_promised() -> None:
    found = Inflation(coverage=0.95, radius=0.2, distance="box", scale="none", items=1234)
    assert found.sentence().startswith("On average over draws of the calibration items, the shares")
    assert "in its widened set in 95 % of cases or more" in found.sentence()
    assert found.sentence().endswith("voted on like these 1,234.")
    few = Inflation(coverage=0.95, radius=math.inf, distance="box", scale="none", items=5)
    assert few.sentence() == (
        "Nothing is promised and every set holds all distributions: 95 % takes 19 calibration "
        "items or more, and there are 5."
    )
    sure = Inflation(coverage=0.999999, radius=math.inf, distance="box", scale="none", items=5)
    assert "99.9999 % takes 999,999 calibration items" in sure.sentence()


P = torch.tensor([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("observed", "options", "message"),
    [
        ([[1, 2]], {"coverage": 90}, r"coverage must lie in \(0, 1\); got 90. .* 90 % as 0.9"),
        ([[1, 2]], {"coverage": math.nan}, r"coverage must lie in \(0, 1\); got nan"),
        ([[1, 2]], {"coverage": 1.0}, r"coverage must lie in .*got 1.0. To fix: give a share"),
        ([[1, 2]], {"coverage": "0.9"}, r"coverage must lie in .*got '0.9'"),
        ([[1, 2]], {"distance": "kl"}, "distance must be one of 'box', 'total-variation'; got"),
        ([[1, 2]], {"scale": "width"}, "scale must be one of 'relative-variance', .* got 'width'"),
        ([[0, 0]], {}, "not all 0; row 0 has observed=.*leave items without votes out"),
        ([[2, -1]], {}, r"none below 0.*row 0 has observed=\[2.0, -1.0\]"),
        ([[1, 2, 3]], {}, r"the items and classes of the sets, \(1, 2\); got shape \(1, 3\)"),
        ([[math.nan, 2]], {}, "observed must be finite"),
    ],
)
def test_bad_calibrations_are_refused(
    observed: list[list[float]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(CredalError, match=message):
        calibrate(observed, P, P, P, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -0.1}, "radius must be a number, 0 or more; got -0.1"),
        ({"radius": "0.1"}, "radius must be a number.*To fix: calibrate again"),
        ({"items": 1.5}, "items must be a whole number"),
        ({"coverage": 2}, "coverage must lie in"),
        ({"scale": "nonsense"}, "scale must be one of"),
        ({"distance": None}, "distance must be one of"),
        ({"items": 8}, "a coverage of 0.9 takes 9 items or more; got items=8 and radius=0.1. To"),
    ],
)
def test_damaged_files_are_refused(change: dict[str, object], message: str) -> None:
    good = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=20)
    text = json.dumps(json.loads(good.to_json()) | change)
    with pytest.raises(CredalError, match=f"this is no inflation of sets: {message}"):
        Inflation.from_json(text)


def test_too_few_items_promise_no_radius() -> None:
    with pytest.raises(CredalError, match=r"takes 9 items or more; got items=3 and radius=0.1"):
        Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=3)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, Fraction])
@pytest.mark.parametrize("num_items", [9, 19, 30])
def test_any_real_number_is_a_coverage(
    kind: Callable[[float], Any], num_items: int, generator: torch.Generator
) -> None:
    pred = segment(num_items, 3, generator)
    votes = torch.randint(1, 9, (num_items, 3), generator=generator)
    found = pred.inflation(votes, coverage=kind(0.75))
    assert found == pred.inflation(votes, coverage=0.75)
    assert Inflation.from_json(found.to_json()) == found
    assert not pred.inflation(votes, coverage=kind(0.9)).vacuous


@pytest.mark.parametrize("distance", ["box", "total-variation"])
@pytest.mark.parametrize("num_vertices", [1, 2, 4])
def test_predictions_may_carry_gradients(
    distance: Any, num_vertices: int, generator: torch.Generator
) -> None:
    heads = distributions(20, num_vertices, 3, generator=generator)
    pred = CredalPredictions.from_vertices(heads)
    votes = torch.rand(20, 3, generator=generator)
    found = CredalPredictions.from_vertices(heads.clone().requires_grad_()).inflation(
        votes.clone().requires_grad_(), distance=distance
    )
    assert found == pred.inflation(votes, distance=distance)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"coverage": 0.9}', "3"])
def test_what_is_no_inflation_is_refused(text: str) -> None:
    with pytest.raises(CredalError, match=r"this is no inflation of sets: .*To fix: calibrate"):
        Inflation.from_json(text)


@pytest.mark.parametrize("distance", ["box", "total-variation"])
def test_predictions_say_themselves_what_they_cover(
    distance: Any, generator: torch.Generator
) -> None:
    heads = torch.rand(60, 2, 3, generator=generator)
    pred = CredalPredictions.from_vertices(heads / heads.sum(2, keepdim=True))
    votes = torch.randint(1, 9, (60, 3), generator=generator)
    found = pred.inflation(votes, coverage=0.5, distance=distance)
    covered = pred.covers(votes, found)
    assert 30 <= covered.sum() <= 32
    sets = (pred.lower, pred.upper, pred.probs)
    assert torch.equal(covered, found.covers(votes, *sets, vertices=pred.vertices))
    wrong: Any = 0.1
    with pytest.raises(CredalError, match=r"widened by an Inflation; got 0\.1\. To fix: give"):
        pred.conformalize(wrong)
