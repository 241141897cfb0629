"""Decalibration's roots against SciPy, its boxes against all 2K shifted softmaxes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from torch import Tensor
from torch.nn.functional import one_hot
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods.base import Outputs
from credalearn.methods.decalibration import box_of_shifts, fit_shifts, predictions, shift_interval
from largest_tensor import LargestTensor


def problem(num_items: int, num_classes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Predictions (N, K), some of them sure, and a mean label (K,) that does not quite fit."""
    scale = 4 * torch.rand(num_items, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(num_items, num_classes, generator=generator, dtype=torch.float64)
    probs = (scale * noise).softmax(1)
    y = (scale * noise + noise.flip(1)).argmax(1)
    return probs, one_hot(y, num_classes).double().mean(0)


def slow_box(probs: Tensor, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """Class-wise extremes over all 2K shifted softmaxes, N×2K×K; a shift of 1e5 is the limit."""
    num_classes = probs.shape[1]
    logits = probs.log()[:, None] + torch.zeros(2 * num_classes, 1, dtype=probs.dtype)
    for k in range(num_classes):
        for end in range(2):
            logits[:, 2 * k + end, k] += shifts[end, k].clamp(-1e5, 1e5)
    shifted = logits.softmax(2)
    return shifted.amin(1), shifted.amax(1)


def farthest(p: np.ndarray, share: float, sign: int) -> float:
    """The largest (+1) or smallest (−1) shift with g(c) ≥ 0, by SciPy."""

    def slack(shift: float) -> float:
        return float(sign * shift * share - np.log1p(p * np.expm1(sign * shift)).mean())

    near = 1e-6  # where g falls from 0 on, the root is 0
    return sign * brentq(slack, near, 500) if slack(near) > 0 else 0.0


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_roots_equal_those_of_scipy(num_classes: int, generator: torch.Generator) -> None:
    probs, mean_label = problem(200, num_classes, generator)
    ends = shift_interval(probs, mean_label)
    assert (ends[0] <= 0).all()
    assert (ends[1] >= 0).all()
    for k in range(num_classes):
        p, share = probs[:, k].numpy(), float(mean_label[k])
        for sign, found in ((-1, ends[0, k]), (1, ends[1, k])):
            assert found.item() == pytest.approx(farthest(p, share, sign), abs=1e-4)


def test_a_tiny_mismatch_gives_a_root_near_zero() -> None:
    probs = torch.full((1000, 2), 0.5, dtype=torch.float64)
    for mismatch in (1e-3, 1e-6, 1e-9, 1e-14, 0.0):
        mean_label = torch.tensor([0.5 + mismatch, 0.5 - mismatch], dtype=torch.float64)
        ends = shift_interval(probs, mean_label)
        # g(c) ≈ mismatch·c − c²/8 near 0.
        expected = torch.tensor([[0.0, -8 * mismatch], [8 * mismatch, 0.0]]).double()
        assert_close(ends, expected, rtol=1e-3, atol=1e-11)


def test_classes_that_never_or_always_occur_take_the_limit(generator: torch.Generator) -> None:
    probs, _ = problem(50, 3, generator)
    ends = shift_interval(probs, torch.tensor([1.0, 0.0, 0.0]))
    assert ends[1, 0] == math.inf
    assert (ends[0, 1:] == -math.inf).all()
    assert (torch.stack([ends[0, 0], *ends[1, 1:]]) == 0).all()


def test_saturated_probabilities_give_boxes_without_nan() -> None:
    sure = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1e-20, 0.0]], dtype=torch.float64)
    for mean_label in ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.9, 0.05, 0.05]):
        ends = shift_interval(sure, torch.tensor(mean_label))
        assert not ends.isnan().any()
        assert_close(box_of_shifts(sure, ends), slow_box(sure, ends))


@given(
    st.integers(0, 2**31),
    st.integers(2, 7),
    st.sampled_from([0.0, 0.1, 3.0, 50.0, 600.0]),
    st.sampled_from([1.0, 30.0, 2000.0]),
)
def test_boxes_equal_those_of_all_shifts(
    random_state: int, num_classes: int, width: float, scale: float
) -> None:
    generator = torch.Generator().manual_seed(random_state)
    noise = torch.randn(20, num_classes, generator=generator, dtype=torch.float64)
    probs = (scale * noise).softmax(1)
    probs = torch.where(probs < 1e-300, 0, probs)  # exact zeros and ones at the largest scale
    shifts = width * torch.rand(2, num_classes, generator=generator, dtype=torch.float64)
    shifts[0] *= -1
    kind = torch.rand(2, num_classes, generator=generator)
    shifts = torch.where(kind < 0.2, 0, torch.where(kind > 0.9, math.inf * shifts.sign(), shifts))
    shifts = shifts.nan_to_num(nan=0.0, posinf=math.inf, neginf=-math.inf)
    lower, upper = box_of_shifts(probs, shifts)
    expected = slow_box(probs, shifts)
    assert_close(lower, expected[0].minimum(probs), rtol=1e-9, atol=1e-15)
    assert_close(upper, expected[1].maximum(probs), rtol=1e-9, atol=1e-15)
    assert (lower <= probs).all()
    assert (probs <= upper).all()
    assert (upper <= 1).all()


def test_large_problems_go_through_in_blocks(generator: torch.Generator) -> None:
    probs, mean_label = problem(30_000, 20, generator)  # more than one block of classes and items
    ends = shift_interval(probs, mean_label)
    for k in (0, 7, 19):
        both = torch.stack([probs[:, k], 1 - probs[:, k]], 1)
        for copies in (1, 10):  # ten have more blocks than classes
            share = torch.stack([mean_label[k], 1 - mean_label[k]])
            alone = shift_interval(both.repeat(copies, 1), share)
            assert_close(ends[:, k], alone[:, 0], rtol=1e-8, atol=1e-10)
    rows = torch.arange(0, 30_000, 997)
    boxes = tuple(bound[rows] for bound in box_of_shifts(probs, ends))
    assert_close(boxes, slow_box(probs[rows], ends))


def test_predictions_are_a_box_around_the_unshifted_softmax(generator: torch.Generator) -> None:
    probs, _ = problem(80, 4, generator)
    logits = probs.log().float()[:, None, None]
    outputs = Outputs(logits, torch.zeros(80, 1))
    labels = cl.precise(probs.flip(1))
    state = fit_shifts(outputs, labels)
    assert_close(state["shifts"], shift_interval(probs, probs.flip(1).mean(0)), rtol=0, atol=1e-4)
    pred = predictions(outputs, state)
    assert_close(pred.probs, logits[:, 0, 0].softmax(1))
    assert pred.score("entropy-difference").mean() > 0.01


def test_memory_has_no_matrix_per_item(generator: torch.Generator) -> None:
    probs, mean_label = problem(500, 40, generator)
    with LargestTensor() as seen:
        box_of_shifts(probs, shift_interval(probs, mean_label))
    assert seen.numel == 500 * 40  # N·K, where all shifted softmaxes would be 2·N·K·K
