"""Entropy over segments, polytopes and boxes against grids and enumeration."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import credalearn as cl
from random_sets import KINDS, bits, corners, distributions, outcomes


@pytest.mark.catches("sets/hull_entropy.py", ".sum(-1) / math.log(2)", ".sum(-1)")
def test_entropy_of_distributions(generator: torch.Generator) -> None:
    points = distributions(200, 6, generator=generator)
    assert_close(cl.entropy(points), bits(points))


@pytest.mark.catches(
    "sets/hull_entropy.py",
    "torch.where(at_limit, limit, low)",
    "torch.where(at_limit, limit, 0 * low)",
    case="2",
)
@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_segments_equal_a_fine_grid(num_classes: int, generator: torch.Generator) -> None:
    ends = distributions(1000, 2, num_classes, generator=generator)
    ends[:50, 1] = ends[:50, 0]  # segments of length 0
    ends[50:100] = torch.eye(num_classes, dtype=torch.float64)[:2]
    share = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    grid = torch.stack([bits(share * first + (1 - share) * second).max() for first, second in ends])
    found = cl.max_entropy_hull(ends)
    assert (found >= grid - 1e-9).all()
    assert_close(found, grid, atol=1e-5, rtol=0)
    assert_close(cl.min_entropy_hull(ends), bits(ends).amin(1))


@pytest.mark.parametrize(("num_vertices", "num_classes"), [(3, 3), (3, 8), (4, 2), (4, 5)])
def test_polytopes_equal_a_fine_grid(
    num_vertices: int, num_classes: int, generator: torch.Generator
) -> None:
    points = distributions(300, num_vertices, num_classes, generator=generator)
    points[:30, 1] = points[:30, 0]  # a vertex twice
    steps = 120 if num_vertices == 3 else 40
    weights = torch.from_numpy(outcomes(steps, num_vertices) / steps)
    grid = torch.stack([bits(weights @ hull).max() for hull in points])
    found = cl.max_entropy_hull(points)
    assert (found >= grid - 1e-3).all()
    assert (found <= grid + (1e-3 if num_vertices == 3 else 1e-2)).all()
    tight = cl.max_entropy_hull(points, tolerance=1e-4)
    assert ((found - tight).abs() <= 1.1e-3).all()  # both certificates hold


def test_warns_when_the_search_hits_its_cap(generator: torch.Generator) -> None:
    points = distributions(50, 6, 5, generator=generator)
    with pytest.warns(
        cl.PrecisionWarning, match=r"cap of 1 steps: \d+ of 50 items are up to .* bits"
    ):
        capped = cl.max_entropy_hull(points, max_steps=1)
    assert (capped <= cl.max_entropy_hull(points) + 1e-3).all()


def random_boxes(
    num_items: int, num_classes: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Half around two heads, half of any width."""
    sets = KINDS["intervals"](num_items // 2, num_classes, generator)
    heads = distributions(num_items - num_items // 2, 2, num_classes, generator=generator)
    return torch.cat([sets.lower, heads.amin(1)]), torch.cat([sets.upper, heads.amax(1)])


@pytest.mark.catches(
    "sets/box_entropy.py", "+ entr(between) - at_lower[row]", "- at_lower[row]", case="2-600"
)
@pytest.mark.parametrize(("num_classes", "num_items"), [(2, 600), (3, 600), (5, 400), (8, 60)])
def test_min_entropy_of_a_box_equals_enumeration(
    num_classes: int, num_items: int, generator: torch.Generator
) -> None:
    lower, upper = random_boxes(num_items, num_classes, generator)
    pairs = zip(lower, upper, strict=True)
    slow = torch.stack([bits(corners(low, high)).min() for low, high in pairs])
    assert_close(cl.min_entropy_box(lower, upper), slow, atol=1e-9, rtol=0)


@pytest.mark.parametrize("num_classes", [9, 11, 30])
def test_min_entropy_of_a_box_is_never_above_the_named_orders(
    num_classes: int, generator: torch.Generator
) -> None:
    lower, upper = random_boxes(40, num_classes, generator)
    found = cl.min_entropy_box(lower, upper)
    for key in (lower, upper, lower + upper):
        assert (found <= bits(cl.Intervals(lower, upper).worst_target(key)) + 1e-9).all()


def test_the_search_reaches_what_enumeration_finds_on_nearly_all_boxes(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower, upper = random_boxes(1000, 10, generator)
    exact = cl.min_entropy_box(lower, upper)
    monkeypatch.setattr("credalearn.sets.box_entropy.ENUMERATED_CLASSES", 1)
    searched = cl.min_entropy_box(lower, upper)
    assert (searched >= exact - 1e-9).all()
    missed = searched > exact + 1e-9
    assert 0 < missed.double().mean() < 0.03  # the docstring says about 1 %
    assert (searched - exact).max() < 0.1


def test_min_entropy_is_exact_for_equally_ordered_bounds(generator: torch.Generator) -> None:
    center = distributions(50, 40, generator=generator).sort(1, descending=True).values
    lower = (center - 0.02).clamp(min=0)
    upper = (center + 0.1).clamp(max=1)
    greedy = bits(cl.Intervals(lower, upper).worst_target(center))
    assert_close(cl.min_entropy_box(lower, upper), greedy, atol=1e-9, rtol=0)


@pytest.mark.parametrize("num_classes", [2, 5, 40, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_max_entropy_of_a_box_is_a_level_cut_to_the_bounds(
    num_classes: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    """The member is the level cut to the bounds, found here by slow bisection."""
    lower, upper = (x.to(dtype) for x in random_boxes(200, num_classes, generator))
    upper = torch.maximum(lower, upper)
    level = torch.zeros(200, 1, dtype=torch.float64)
    low, high = level.clone(), level + 1
    for _ in range(80):  # slow and obvious: halve the level's bracket
        level = (low + high) / 2
        too_much = level.clamp(lower, upper).sum(1, keepdim=True) > 1
        low, high = torch.where(too_much, low, level), torch.where(too_much, level, high)
    slow = bits(level.clamp(lower.double(), upper.double()))
    tolerance = 1e-9 if dtype == torch.float64 else 2e-5
    assert_close(cl.max_entropy_box(lower, upper).double(), slow, atol=tolerance, rtol=0)


def test_boxes_of_one_point_survive_rounding() -> None:
    for num_classes in (4, 40):
        point = torch.rand(200, num_classes).softmax(1)  # float32: sums miss 1 by 1e-7
        for extreme in (cl.max_entropy_box, cl.min_entropy_box):
            assert_close(extreme(point, point), cl.entropy(point), atol=1e-5, rtol=0)
