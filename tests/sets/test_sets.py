"""What all kinds of set share: membership, center, diameter, bounds, rows, moving."""

import pickle
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from credalearn.errors import CredalError
from credalearn.sets import Intervals, LowerBounds, Possibility, TotalVariationBall, Vertices
from random_sets import KINDS, distributions, events, members


@pytest.mark.catches(
    "sets/intervals.py",
    "1 - (lower.sum(1, keepdim=True) - lower)",
    "1 - lower.sum(1, keepdim=True)",
    case="2-intervals",
)
@pytest.mark.catches(
    "sets/lower_bounds.py",
    "(1 - lower.sum(1)).clamp(min=0)",
    "(1 - lower.sum(1)).clamp(max=0)",
    case="2-lower bounds",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_members_are_inside_and_within_the_bounds(
    kind: str, num_classes: int, generator: torch.Generator
) -> None:
    sets = KINDS[kind](200, num_classes, generator)
    inside = members(sets, generator)
    assert sets.contains(inside).all()
    assert sets.contains(sets.center()).all()
    assert (sets.lower <= inside + 1e-9).all()
    assert (inside <= sets.upper + 1e-9).all()
    # The bounds are attained: each class's own worst and best case.
    for k, cost in enumerate(torch.eye(num_classes, dtype=torch.float64)):
        assert_close(sets.worst(cost), sets.upper[:, k])
        assert_close(sets.best(cost), sets.lower[:, k])


@pytest.mark.parametrize("kind", KINDS)
def test_contains_agrees_with_separation_by_a_cost(kind: str, generator: torch.Generator) -> None:
    """A point is outside exactly when some cost is larger at it than anywhere in the set."""
    sets = KINDS[kind](200, 3, generator)
    q = distributions(200, 3, generator=generator)
    angles = torch.linspace(0, 2 * torch.pi, 721, dtype=torch.float64)[:-1]
    costs = torch.stack([angles.cos(), angles.sin(), torch.zeros_like(angles)], 1)
    outside = torch.stack([(q * c).sum(1) > sets.worst(c) + 1e-5 for c in costs]).any(0)
    assert 20 < outside.sum() < 200
    assert not sets.contains(q)[outside].any()
    assert sets.contains(q, tolerance=2e-2)[~outside].all()
    for no_distribution in ([0.5, 0.6, 0.4], [1.2, -0.1, -0.1]):
        assert not sets.contains(no_distribution).any()


@pytest.mark.parametrize("kind", ["balls", "possibilities"])
def test_contains_agrees_with_every_event(kind: str, generator: torch.Generator) -> None:
    """The sets are the distributions that give no event more than its upper probability."""
    sets = KINDS[kind](400, 6, generator)
    q = members(sets, generator) + 0.05 * (distributions(400, 6, generator=generator) - 1 / 6)
    q = q.clamp(min=0) / q.clamp(min=0).sum(1, keepdim=True)
    excess = torch.stack([(q * event).sum(1) - sets.worst(event) for event in events(6)]).amax(0)
    assert 50 < (excess > 1e-9).sum() < 350
    assert_close(sets.contains(q, tolerance=1e-9), excess <= 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_classes", [2, 3, 6])
def test_diameter_is_the_widest_range_of_an_event(
    kind: str, num_classes: int, generator: torch.Generator
) -> None:
    """Two distributions are as far apart as the event that they disagree most about."""
    sets = KINDS[kind](100, num_classes, generator)
    ranges = torch.stack([sets.worst(event) - sets.best(event) for event in events(num_classes)])
    assert_close(sets.diameter(), ranges.amax(0), atol=1e-9, rtol=0)


def test_diameter_of_a_large_ball_is_the_stated_bound(generator: torch.Generator) -> None:
    # Twelve classes and one that is never chosen: the same middle, once exact and once bounded.
    exact = KINDS["balls"](300, 12, generator)
    assert isinstance(exact, TotalVariationBall)
    never = torch.zeros(300, 1, dtype=torch.float64)
    bounded = TotalVariationBall(torch.cat([exact.q, never], 1), exact.radius).diameter()
    assert (bounded >= exact.diameter() - 1e-9).all()
    assert (bounded <= (2 * exact.radius).clamp(max=1) + 1e-9).all()
    top = exact.q.amax(1)
    tight = (top >= 0.5) | (top <= 1 - 2 * exact.radius)
    assert 0 < (~tight).sum() < tight.sum()
    assert_close(bounded[tight], exact.diameter()[tight], atol=1e-9, rtol=0)


def test_diameter_of_a_large_box_is_the_stated_bound(generator: torch.Generator) -> None:
    sets = KINDS["intervals"](50, 13, generator)
    bound = torch.minimum(1 - sets.lower.sum(1), sets.upper.sum(1) - 1)
    assert_close(sets.diameter(), bound.clamp(min=0))
    # Twelve classes and one that is never chosen: the same sets, once exact and once bounded.
    exact = KINDS["intervals"](50, 12, generator)
    never = torch.zeros(50, 1, dtype=torch.float64)
    padded = Intervals(torch.cat([exact.lower, never], 1), torch.cat([exact.upper, never], 1))
    assert (padded.diameter() >= exact.diameter() - 1e-9).all()


def test_centers_match_their_definition() -> None:
    assert_close(LowerBounds([[0.4, 0.0]]).center(), torch.tensor([[0.7, 0.3]]))
    box = Intervals([[0.2, 0.1, 0.1]], [[0.6, 0.5, 0.3]])  # widths .4 .4 .2, free .6 of 1.0
    assert_close(box.center(), torch.tensor([[0.44, 0.34, 0.22]]))
    assert_close(Intervals([[0.3, 0.7]], [[0.3, 0.7]]).center(), torch.tensor([[0.3, 0.7]]))
    hull = Vertices([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]])
    assert_close(hull.center(), torch.tensor([[0.5, 0.5]]))
    ball = TotalVariationBall([[0.9, 0.1]], 0.3)
    assert_close(ball.center(), torch.tensor([[0.9, 0.1]]))
    assert_close(ball.reference, ball.center())
    # 0.6 for the first, 0.2 for the first two, 0.2 for all three.
    possible = Possibility([[1.0, 0.4, 0.2]])
    assert_close(possible.center(), torch.tensor([[0.6 + 0.1 + 0.2 / 3, 0.1 + 0.2 / 3, 0.2 / 3]]))


def test_the_center_of_a_possibility_is_the_mean_over_all_orders(
    generator: torch.Generator,
) -> None:
    sets = KINDS["possibilities"](100, 4, generator)
    orders = torch.tensor(list(permutations(range(4)))).double()
    greedy = torch.stack([sets.worst_target(order) for order in orders])
    assert_close(sets.center(), greedy.mean(0))
    again = sets[torch.arange(99, -1, -1)]
    assert_close(again.center().flip(0), sets.center())


def test_intervals_are_tightened_without_changing_the_set(generator: torch.Generator) -> None:
    center = distributions(300, 5, generator=generator)
    low, high = (center - 0.2).clamp(min=0), (center + 0.6).clamp(max=1)
    sets = Intervals(low, high)
    assert (sets.upper < high - 1e-6).any()
    q = distributions(300, 5, generator=generator)
    in_given = ((low <= q) & (q <= high)).all(1)
    assert_close(sets.contains(q, tolerance=1e-12), in_given)
    again = Intervals(sets.lower, sets.upper)
    assert_close(again.lower, sets.lower)
    assert_close(again.upper, sets.upper)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_length_and_moving(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](10, 3, generator)
    assert len(sets) == 10
    assert sets.num_classes == 3
    mask = torch.arange(10) % 2 == 0
    for rows, kept in (
        (slice(2, 5), [2, 3, 4]),
        (slice(4, 0, -2), [4, 2]),
        ([7, 1], [7, 1]),
        (mask, [0, 2, 4, 6, 8]),
        (mask.numpy(), [0, 2, 4, 6, 8]),
        (3, [3]),
        (-1, [9]),
    ):
        part = sets[rows]
        assert type(part) is type(sets)
        assert_close(part.lower, sets.lower[kept])
        assert_close(part.diameter(), sets.diameter()[kept])
    assert len(sets[4:4:2]) == 0
    with pytest.raises(IndexError):
        sets[10]
    single = sets.to(torch.float32)
    assert single.lower.dtype == single.center().dtype == torch.float32
    assert sets.to("meta").lower.device.type == "meta"
    assert "10 sets, 3 classes, float64 on cpu" in repr(sets)
    assert "(1 set, 3 classes" in repr(sets[:1])


def test_bounds_of_two_precisions_keep_the_higher() -> None:
    points = torch.rand(200, 3, dtype=torch.float64, generator=torch.manual_seed(0))
    points /= points.sum(1, keepdim=True)
    for lower, upper in ((points, points.float()), (points.float(), points)):
        sets = Intervals(lower, upper)
        assert sets.lower.dtype == sets.upper.dtype == torch.float64
        assert_close(sets.lower, points, atol=1e-7, rtol=0)
    sets = Intervals([[0.0, 0.1]], np.array([[1 / 3, 1.0]]))
    assert float(sets.upper[0, 0]) == 1 / 3
    with pytest.raises(CredalError, match="lower <= upper"):
        Intervals([[0.5, 0.1]], np.array([[0.5 - 1e-6, 0.9]]))


def test_sets_copy_their_tensors_and_carry_no_gradient() -> None:
    given = torch.tensor([[0.5, 0.1]], requires_grad=True)
    sets = LowerBounds(given)
    hull = Vertices(given.softmax(1)[:, None])
    with torch.no_grad():
        given.mul_(2)
    assert_close(sets.lower, torch.tensor([[0.5, 0.1]]))
    assert not sets.lower.requires_grad
    assert not hull.points.requires_grad
    assert np.asarray(sets).shape == sets.shape == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_frozen_and_can_be_pickled(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](4, 3, generator)
    with pytest.raises(AttributeError):
        sets.lower = sets.upper  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(sets))  # as joblib's workers do
    assert_close(again.lower, sets.lower)
    assert_close(again.center(), sets.center())


MASKED = np.ma.array([[0.5, 0.1]], mask=[[False, True]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LowerBounds([[0.5, 0.5], [0.7, 0.7]]), r"sum\(lower\) <= 1 .* row 1 .*0.7, 0.7"),
        (lambda: LowerBounds([[0.5, -0.1]]), "0 <= lower .* row 0 .* clamp"),
        (lambda: LowerBounds([[0.5, float("nan")]]), "lower must be finite; row 0"),
        (lambda: LowerBounds([0.5, 0.5]), r"shape \(items, classes\) .* got \(2,\)"),
        (lambda: LowerBounds([["a", "b"]]), "an array of numbers"),
        (lambda: LowerBounds(MASKED), r"lower must have no masked value; that at \(0, 1\)"),
        (lambda: LowerBounds(torch.eye(2).to_sparse()), r"dense .*_coo"),
        (lambda: LowerBounds(torch.zeros(2, 2).half()), "float32 or float64; got torch.float16"),
        (lambda: LowerBounds([[0.5, 0.1]]).to(torch.int32), "floating-point dtype; got torch.int"),
        (lambda: LowerBounds([[0.5, 0.1]]).contains("ab"), "q must be an array of numbers"),
        (
            lambda: LowerBounds([[0.5, 0.1]]).worst([0.0] * 3),
            r"\(1, 2\) or \(2,\); got \(3,",
        ),
        (lambda: LowerBounds([[0.5, 0.1]])[[0.5]], "rows must be a number, a slice"),
        (lambda: Intervals([[0.6, 0.1]], [[0.5, 0.9]]), "row 0 has lower"),
        (lambda: Intervals([[0.6, 0.6]], [[0.9, 0.9]]), "the set is empty; .* widen"),
        (lambda: Intervals([[0.1]], [[0.2, 0.3]]), r"upper.* shape \(1, 1\); got \(1, 2\)"),
        (lambda: Vertices([[[0.5, 0.6]]]), r"sum to 1, .* row 0 .* sum=\[1.1\]"),
        (lambda: Vertices([[[1.5, -0.5]]]), "points must not be negative"),
        (lambda: Vertices(torch.zeros(2, 0, 3)), "at least one vertex"),
        (lambda: TotalVariationBall([[0.5, 0.5]] * 2, [0.1, 1.1]), r"row 1 has radius=\[1.1\]"),
        (lambda: TotalVariationBall([[0.5, 0.5]], [0.1, 0.2]), r"one number, or one per item"),
        (lambda: Possibility([[1.0, 0.5], [0.9, 0.5]]), "largest level of each row .*row 1"),
        (lambda: Possibility([[1.0, 0.5]], soft=[[0.4, 0.6]]), "must contain the soft label"),
    ],
)
def test_rejects_bad_sets(make: Callable[[], object], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        make()
