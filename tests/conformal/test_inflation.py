"""Widened sets: their bounds, what they cover, their sentence and their file."""

import json
import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from credalearn import CredalError, CredalPredictions, Inflation, Intervals
from credalearn.conformal import Distance, Scale
from credalearn.conformal._calibration import SCALES
from predicted_sets import voted_predictions

DISTANCES = get_args(Distance)


@given(voted_predictions(), st.sampled_from(DISTANCES[:2]), st.sampled_from(list(SCALES)))
def test_widened_bounds_are_those_of_the_box_and_reachable(
    case: tuple[CredalPredictions, Tensor], distance: Distance, scale: Scale
) -> None:
    pred, votes = case
    stretched = scale == "stretched"
    found = pred.inflation(
        votes, coverage=0.6, distance="box" if stretched else distance, scale=scale
    )
    wide, inside = pred.conformalize(found), pred.probs.double()
    factor = SCALES[scale](inside)
    lower, upper = pred.lower.double(), pred.upper.double()
    if found.distance == "total-variation":
        lower = upper = inside
        factor = factor.sum(1, keepdim=True) / 2 if factor.shape[1] > 1 else factor
    moved = (inside * (1 - inside)).clamp(min=0).sqrt() if stretched else 0 * inside
    room = moved + found.radius * factor
    low = (lower - room).minimum(inside).clamp(min=0)
    high = (upper + room).maximum(inside).clamp(max=1)
    tight = Intervals(low, high.clamp(min=low))
    assert_close(wide.lower.double(), tight.lower, atol=2e-6, rtol=0)
    assert_close(wide.upper.double(), tight.upper, atol=2e-6, rtol=0)
    assert wide.lower.dtype == pred.lower.dtype
    assert wide.vertices is None
    assert torch.equal(wide.probs, pred.probs)
    assert torch.equal(wide.classes, pred.classes)
    if not stretched:
        assert (wide.lower <= lower + 1e-6).all()
        assert (wide.upper >= upper - 1e-6).all()


def test_a_dirichlet_keeps_its_evidence() -> None:
    alpha = torch.tensor([[3.0, 1.0]])
    mean = alpha / 4
    pred = CredalPredictions(mean, mean, mean, concentration=alpha)
    inflation = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=20)
    wide = pred.conformalize(inflation)
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


def test_json_round_trip() -> None:
    for radius, items in ((0.0, 9), (0.1 + 0.2, 9), (math.inf, 8)):
        found = Inflation(coverage=0.9, radius=radius, distance="box", scale="none", items=items)
        text = found.to_json()
        assert Inflation.from_json(text) == found
        assert json.loads(text)["sentence"] == found.sentence()


def test_sentence_says_what_is_promised() -> None:
    found = Inflation(coverage=0.95, radius=0.2, distance="box", scale="none", items=1234)
    assert found.sentence() == (
        "On average over calibration sets, the vote shares of at least 95 % of new items lie in "
        "their widened sets, for items drawn and voted on like the 1,234 calibration items."
    )
    grouped = replace(found, group="patient", num_groups=30).sentence()
    assert grouped.startswith(found.sentence())
    assert "these come from 30 groups (patient), and with few large groups" in grouped
    assert replace(found, num_groups=1234).sentence() == found.sentence()


def test_sentence_says_that_nothing_is_promised() -> None:
    few = Inflation(coverage=0.95, radius=math.inf, distance="box", scale="none", items=5)
    assert few.sentence() == (
        "Nothing is promised and every set contains all distributions: 95 % takes at least 19 "
        "calibration items, and there are 5."
    )
    assert "99.9999 % takes at least 999,999 " in replace(few, coverage=0.999999).sentence()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -0.1}, "items and radius must be 0 or more"),
        ({"radius": "0.1"}, "Expected `float`, got `str`"),
        ({"coverage": 2}, "coverage must be above 0 and below 1; got 2.0"),
        ({"scale": "nonsense"}, "Invalid enum value 'nonsense'"),
        ({"items": 8}, "a coverage of 0.9 takes at least 9 items; got items=8 and radius=0.1"),
    ],
)
def test_rejects_damaged_files(change: dict[str, object], message: str) -> None:
    good = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=20)
    text = json.dumps(json.loads(good.to_json()) | change)
    with pytest.raises(CredalError, match=f"not an inflation of sets: {message}"):
        Inflation.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"coverage": 0.9}', "3"])
def test_rejects_files_that_are_not_inflations(text: str) -> None:
    with pytest.raises(CredalError, match=r"not an inflation of sets: .*To fix: calibrate"):
        Inflation.from_json(text)
