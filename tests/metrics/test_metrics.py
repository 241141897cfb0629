"""Metrics against obvious loops, hand-made cases and other libraries."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torchmetrics.functional.classification import multiclass_calibration_error

from credalearn import CredalError, metrics
from random_sets import distributions


@pytest.mark.catches(
    "metrics/calibration.py", "edges.to(checked.device))", "edges.to(checked.device), right=True)"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_confidence_on_an_edge_falls_to_the_left(dtype: torch.dtype) -> None:
    # The edge nearest to 2/3 is the number that 2/3 is rounded to, for every number of bins.
    for num_bins in range(2, 40):
        for b in range((num_bins + 1) // 2, num_bins):
            share = b / num_bins
            probs = torch.tensor([[share, 1 - share]], dtype=dtype)
            count = metrics.reliability(probs, [0], num_bins=num_bins).count
            assert count.index(1) == b - 1, f"{b} / {num_bins}"


@pytest.mark.parametrize("num_bins", [3, 10, 15])
def test_calibration_against_torchmetrics(num_bins: int, generator: torch.Generator) -> None:
    # No confidence is on an edge: torchmetrics bins [l, r) and gives 1.0 a bin of its own. It
    # sums in float32, hence 1e-6; one item in the wrong bin would cost 1e-4.
    probs = (2 * torch.randn(2000, 5, generator=generator, dtype=torch.float64)).softmax(1)
    y = probs.multinomial(1, generator=generator)[:, 0]
    y[:500] = 0
    theirs = multiclass_calibration_error(probs, y, num_classes=5, n_bins=num_bins)
    assert theirs > 0.02
    assert metrics.ece(probs, y, num_bins=num_bins) == pytest.approx(float(theirs), abs=1e-6)


def test_reliability_against_a_loop(generator: torch.Generator) -> None:
    probs = distributions(400, 3, generator=generator)
    y = torch.randint(3, (400,), generator=generator)
    bins = metrics.reliability(probs, y, num_bins=7)
    top, right = probs.amax(1), probs.argmax(1) == y
    for b in range(7):
        assert bins.edges[b : b + 2] == (b / 7, (b + 1) / 7)
        inside = (top > b / 7) & (top <= (b + 1) / 7)
        assert bins.count[b] == inside.sum()
        if inside.any():
            assert bins.confidence[b] == pytest.approx(top[inside].mean().item())
            assert bins.accuracy[b] == pytest.approx(right[inside].double().mean().item())
        else:
            assert (bins.confidence[b], bins.accuracy[b]) == (0, 0)
    assert bins.count[:2] == (0, 0), "three classes: no top probability below a third"
    assert sum(bins.count) == 400
    assert bins.ece == metrics.ece(probs, y, num_bins=7)


def expected_curve(right: list[bool], score: list[float]) -> list[float]:
    """Mean accuracy of the m most certain, taking each tie one item at a time."""
    curve, hits, kept = [], 0.0, 0
    for value in sorted(set(score)):
        tied = [r for r, s in zip(right, score, strict=True) if s == value]
        for _ in tied:
            hits, kept = hits + sum(tied) / len(tied), kept + 1
            curve.append(hits / kept)
    return curve


# Few values, so that many tie; both zeros, both infinities and the smallest of numbers.
SCORES = st.sampled_from([-np.inf, -2.5, -1e-45, -0.0, 0.0, 1e-45, 0.5, 0.5000001, 7.0, np.inf])
ITEMS = st.lists(st.tuples(st.booleans(), SCORES), min_size=1, max_size=12)


@pytest.mark.catches("_ranks.py", "order = scores.argsort()", "order = (-scores).argsort()")
@given(ITEMS, st.sampled_from([np.float32, np.float64]))
def test_deferral_with_any_scores_and_ties(
    items: list[tuple[bool, float]], dtype: type[np.floating]
) -> None:
    right, score = map(list, zip(*items, strict=True))
    scores = np.array(score, dtype)
    probs, y = [[0.8, 0.2]] * len(items), [int(not r) for r in right]
    slow = expected_curve(right, scores.tolist())
    found = metrics.accuracy_rejection(probs, y, scores)
    np.testing.assert_allclose(found.numpy(), slow, rtol=1e-12)
    plain = np.mean(right)
    gains = [(a - plain) / (1 - plain) for a in slow] if plain < 1 else [0.0]
    assert metrics.normalized_auarc(probs, y, scores) == pytest.approx(np.mean(gains), abs=1e-12)
    risks = [1 - a for a in slow]
    assert metrics.aurc(probs, y, scores) == pytest.approx(np.mean(risks), abs=1e-12)
    rows = np.arange(len(items))[::-1]
    turned = metrics.accuracy_rejection(probs, np.array(y)[rows], scores[rows])
    assert torch.equal(turned, found)


def test_spearman_against_scipy(generator: torch.Generator) -> None:
    probs = (2 * torch.randn(500, 4, generator=generator, dtype=torch.float64)).softmax(1)
    y = probs.multinomial(1, generator=generator)[:, 0]
    error = -probs.gather(1, y[:, None])[:, 0].log()
    noise = torch.rand(500, generator=generator, dtype=torch.float64)
    for score in (noise, error + noise, (4 * error).round(), -error):  # the third has ties
        theirs = spearmanr(score, error).statistic
        assert metrics.spearman_error(probs, y, score) == pytest.approx(theirs, abs=1e-12)


def test_an_infinite_error_ranks_last() -> None:
    probs = [[0.0, 1.0], [0.5, 0.5], [1e-300, 1.0], [0.9, 0.1]]
    errors_ascending = [3, 1, 2, 0]
    assert metrics.spearman_error(np.array(probs), [0] * 4, errors_ascending) == 1
    reverse = [-rank for rank in errors_ascending]
    assert metrics.spearman_error(np.array(probs), [0] * 4, reverse) == -1


def test_without_spread_there_is_no_correlation() -> None:
    probs = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]
    assert metrics.spearman_error(probs, [0, 0, 0], [0.1, 0.1, 0.1]) == 0
    assert metrics.spearman_error([[0.5, 0.5]] * 3, [0, 1, 0], [0.1, 0.2, 0.3]) == 0
    assert metrics.spearman_error([[0.9, 0.1]], [0], [0.3]) == 0


def test_auroc_against_scikit_learn(generator: torch.Generator) -> None:
    inside = torch.rand(400, generator=generator)
    outside = torch.rand(300, generator=generator) + 0.2
    for scale in (1e6, 10):  # without ties and with many
        own, foreign = (scale * inside).round(), (scale * outside).round()
        labels = [0] * 400 + [1] * 300
        theirs = roc_auc_score(labels, torch.cat([own, foreign]).numpy())
        assert metrics.auroc(own, foreign) == pytest.approx(theirs, abs=1e-12)
    assert metrics.auroc([0.1], [0.2]) == 1
    assert metrics.auroc([0.2], [0.1]) == 0
    assert metrics.auroc([0.2, 0.2], [0.2]) == 0.5
    # A float32 next to a float64: 0.1 as float32 is the larger of the two.
    assert metrics.auroc(np.array([0.1]), np.array([0.1], np.float32)) == 1


METRICS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], float]] = {
    "accuracy": lambda probs, y, _: metrics.accuracy(probs, y),
    "ece": lambda probs, y, _: metrics.ece(probs, y),
    "auarc": metrics.auarc,
    "normalized_auarc": metrics.normalized_auarc,
    "aurc": metrics.aurc,
    "spearman_error": metrics.spearman_error,
    "auroc": lambda _, y, score: metrics.auroc(score[y == 0], score[y > 0]),
}


@pytest.mark.parametrize("name", METRICS)
def test_scores_of_every_precision_give_the_same(name: str, generator: torch.Generator) -> None:
    probs = distributions(200, 3, generator=generator)
    y = torch.randint(3, (200,), generator=generator)
    score = torch.randint(5, (200,), generator=generator)
    before = METRICS[name](probs, y, score)
    rows = torch.randperm(200, generator=generator)  # nor does their order matter
    assert METRICS[name](probs[rows], y[rows], score[rows]) == pytest.approx(before, abs=1e-13)
    for dtype in (torch.bfloat16, torch.float16, torch.int32, torch.float64):
        # Whole numbers below 5 are exact in each.
        assert METRICS[name](probs, y, score.to(dtype)) == pytest.approx(before, abs=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy([[0.5, 0.5]], [2]), r"y must lie in 0\.\.1; row 0"),
        (lambda: metrics.accuracy([[0.5, 0.5]], [0, 1]), "each of the 1 items of probs.*; got 2"),
        (lambda: metrics.accuracy(np.zeros((0, 2)), np.zeros(0, int)), "one or more; got 0"),
        (lambda: metrics.ece([[0.5, 0.5]], [0], num_bins=0), "num_bins must be 1 or more"),
        (lambda: metrics.ece([[5.0, -3.0]], [0]), "not be negative; row 0 .* take the softmax"),
        (lambda: metrics.ece([[80.0, 20.0]], [0]), "sum to 1, .* percentages: divide by 100"),
        (lambda: metrics.auarc([[0.5, 0.5]], [0], [0.1, 0.2]), r"1 items; got shape \(2,\)"),
        (lambda: metrics.spearman_error([[0.5, 0.5]], [0], ["a"]), "array of numbers; got <U1"),
        (lambda: metrics.auroc([], [0.1]), r"inside .* item, at least one; got shape \(0,\)"),
        (lambda: metrics.auroc([0.1], [0.1, np.nan]), "outside must not be NaN; item 1"),
    ],
)
def test_rejects_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        call()
