"""Predicted sets: their scores, files, rows and refusals."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from credalearn import CredalError, CredalPredictions, Intervals
from credalearn._scores import SCORES
from random_sets import bits, distributions


@pytest.fixture
def heads(generator: torch.Generator) -> torch.Tensor:
    return distributions(100, 2, 4, generator=generator)


@pytest.fixture
def pred(heads: torch.Tensor) -> CredalPredictions:
    return CredalPredictions.from_vertices(heads)


def box(pred: CredalPredictions) -> CredalPredictions:
    """The same predictions, known by their bounds alone."""
    return CredalPredictions(pred.probs, pred.lower, pred.upper)


@pytest.mark.catches("_scores.py", "1 - pred.lower.gather", "1 - pred.upper.gather")
@pytest.mark.catches(
    "predictions.py", "vertices.amin(1), vertices.amax(1)", "vertices.amax(1), vertices.amin(1)"
)
@pytest.mark.catches(
    "sets/diameter.py",
    "(points[:, 0] - points[:, 1]).abs().sum(1) / 2",
    "(points[:, 0] - points[:, 1]).abs().sum(1)",
)
def test_scores_match_their_definitions(pred: CredalPredictions, heads: torch.Tensor) -> None:
    first, second = heads.unbind(1)
    middle = heads.mean(1)
    assert_close(pred.probs, middle)
    assert_close(pred.lower, torch.minimum(first, second))
    assert_close(pred.upper, torch.maximum(first, second))
    assert_close(pred.classes, middle.argmax(1))
    top = middle.argmax(1)
    rows = torch.arange(100)
    assert_close(pred.score("mmi"), (first - second).abs().sum(1) / 2)
    assert_close(pred.score("entropy"), bits(middle))
    assert_close(pred.score("min-entropy"), torch.minimum(bits(first), bits(second)))
    assert_close(pred.score("top-probability"), 1 - middle.amax(1))
    lower = torch.minimum(first, second)[rows, top]
    assert_close(pred.score("lower-probability"), 1 - lower)
    information = bits(middle) - (bits(first) + bits(second)) / 2
    assert_close(pred.score("mutual-information"), information.clamp(min=0))
    spread = pred.score("max-entropy") - pred.score("min-entropy")
    assert_close(pred.score("entropy-difference"), spread)
    assert (pred.score("max-entropy") >= bits(middle) - 1e-9).all()


def test_scores_of_a_box_bound_those_of_its_subsets(pred: CredalPredictions) -> None:
    bounds = box(pred)
    assert (bounds.score("mmi") >= pred.score("mmi") - 1e-9).all()
    assert_close(bounds.score("mmi"), Intervals(pred.lower, pred.upper).diameter())
    assert (bounds.score("max-entropy") >= pred.score("max-entropy") - 1e-9).all()
    assert (bounds.score("min-entropy") <= pred.score("min-entropy") + 1e-9).all()
    assert_close(bounds.score("lower-probability"), pred.score("lower-probability"))


@pytest.mark.parametrize("name", SCORES)
def test_every_score_is_finite_and_not_negative(name: str, generator: torch.Generator) -> None:
    points = distributions(200, 3, 5, generator=generator).float()
    points[:20] = torch.eye(5)[0]  # certain, and all alike
    pred = CredalPredictions.from_vertices(points)
    if name == "evidence":
        pred = CredalPredictions(pred.probs, pred.lower, pred.upper, concentration=points[:, 0] + 1)
    score = pred.score(name)
    assert score.shape == (200,)
    assert score.isfinite().all()
    assert (score >= 0).all()
    if name != "evidence":
        assert_close(score[:20], torch.zeros(20), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("probs", "lower", "upper"),
    [
        ([0.5, 0.5], [-1e-6, 0.0], [1.0, 1.0]),
        ([0.5, 0.5], [0.500004, 0.5], [0.5, 0.5]),
        ([0.5, 0.5], [0.5, 0.4], [0.499996, 0.6]),
        ([1.000004, 0.0], [1.000004, 0.0], [1.000004, 0.0]),
    ],
)
def test_bounds_that_are_off_by_a_rounding_are_moved(
    probs: list[float], lower: list[float], upper: list[float]
) -> None:
    pred = CredalPredictions(*(torch.tensor([each]) for each in (probs, lower, upper)))
    for name in ("mmi", "entropy-difference"):
        assert pred.score(name).isfinite().all()
    assert_close(pred.lower, torch.tensor([lower]), atol=1e-5, rtol=0)
    assert_close(pred.upper, torch.tensor([upper]), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: CredalPredictions(p, p + 0.1, p + 0.2), "lower <= probs <= upper .* row 0"),
        (lambda p: CredalPredictions(p, p, p, torch.eye(2)[None]), "vertices must lie within"),
        (lambda p: CredalPredictions(p, p, p, torch.zeros(1, 0, 2)), "at least one vertex"),
        (lambda p: CredalPredictions(p, p, None), "upper must be an array of numbers"),  # type: ignore[arg-type]
        (lambda p: CredalPredictions(p, p, p).to(torch.int32), "floating-point dtype; got .*int32"),
        (lambda p: CredalPredictions(p * 2, p, p), "probs must sum to 1"),
        (lambda p: CredalPredictions(p, p[:, :1], p), r"lower must have shape \(1, 2\)"),
        (lambda p: CredalPredictions(p, p, p, concentration=p - 0.5), "must be above 0"),
        (lambda p: CredalPredictions(p, p, p).score("spread"), "one of 'mmi', .* got 'spread'"),
        (lambda p: CredalPredictions(p, p, p).score("evidence"), "'evidence' needs concentration"),
    ],
)
def test_rejects_bad_predictions(make: Callable[[torch.Tensor], object], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        make(torch.tensor([[0.5, 0.5]]))


def test_tables_have_the_bounds_of_every_class(pred: CredalPredictions) -> None:
    names = [f"c{number}" for number in range(pred.probs.shape[1])]
    for table in (pred.to_polars(names), pred.to_pandas(names)):
        assert list(table.columns)[:4] == [
            "probability_c0",
            "lower_c0",
            "upper_c0",
            "probability_c1",
        ]
        assert len(table) == len(pred)
        assert list(table["lower_c1"]) == pred.lower[:, 1].tolist()
    assert pred.to_polars().columns[-1] == f"upper_{len(names) - 1}"
