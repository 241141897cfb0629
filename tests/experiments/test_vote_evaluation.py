"""Metrics of held-out votes: each against slow, obvious code."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from credalearn import metrics as direct
from credalearn.predictions import CredalPredictions
from credalearn.theory import consistent
from credalearn_experiments.evaluation import errors_at, evaluate_voted, set_sizes

CLASSES = 4


def a_set(generator: torch.Generator, items: int, *, vertices: int = 2) -> CredalPredictions:
    logits = 2 * torch.randn(items, vertices, CLASSES, generator=generator)
    return CredalPredictions.from_vertices(logits.softmax(2))


def some_votes(predictions: CredalPredictions, seed: int, *, number: int = 51) -> Tensor:
    """Votes drawn from the predicted probabilities."""
    probs = predictions.probs.double().numpy()
    rng = np.random.default_rng(seed)
    rows = [rng.multinomial(number, row / row.sum()) for row in probs]
    return torch.from_numpy(np.array(rows))


def test_each_metric_is_as_defined(generator: torch.Generator) -> None:
    test, voted = a_set(generator, 50), a_set(generator, 40)
    y = torch.randint(0, CLASSES, (50,), generator=generator)
    counts = some_votes(voted, 3)
    counts[::2] = counts[::2].roll(1, dims=1)  # half of them differently
    found = evaluate_voted(test, y, voted, counts)
    entropy, error, gap = 0.0, 0.0, 0.0
    for row in range(40):
        shares = [int(votes) / 51 for votes in counts[row]]
        probs = voted.probs[row].tolist()
        entropy -= sum(q * math.log(p) for q, p in zip(shares, probs, strict=True)) / 40
        error += (1 - shares[probs.index(max(probs))]) / 40
        low, high = voted.lower[row].tolist(), voted.upper[row].tolist()
        outside = [max(a - q, q - b, 0) for q, a, b in zip(shares, low, high, strict=True)]
        gap += max(outside) / 40
    assert found["human_cross_entropy"] == pytest.approx(entropy, rel=1e-6)
    assert found["human_error"] == pytest.approx(error, rel=1e-6)
    assert found["human_gap"] == pytest.approx(gap, rel=1e-6)
    fits = consistent(counts, voted.lower, voted.upper)
    assert 0 < fits.double().mean() < 1
    assert found["human_coverage"] == fits.double().mean().item()
    # Errors among the most certain test items: one point of the rejection curve.
    curve = direct.accuracy_rejection(test.probs, y, test.score("lower-probability"))
    assert found["error_at_80"] == pytest.approx(1 - curve[40 - 1].item())
    assert found["error_at_90"] == pytest.approx(1 - curve[45 - 1].item())
    # Errors against votes: sorted by hand.
    order = voted.score("lower-probability").argsort(stable=True)
    against = 1 - (counts / 51.0)[torch.arange(40), voted.classes]
    assert found["human_error_at_80"] == pytest.approx(against[order[:32]].mean().item(), rel=1e-5)
    assert found["human_error_at_90"] == pytest.approx(against[order[:36]].mean().item(), rel=1e-5)
    assert found == evaluate_voted(test, y, voted, counts)


def test_a_probability_of_zero_has_a_finite_cross_entropy() -> None:
    probs = torch.tensor([[1.0, 0.0]]).repeat(4, 1)
    voted = CredalPredictions(probs, probs, probs)
    found = evaluate_voted(voted, torch.zeros(4).long(), voted, torch.tensor([[0, 9]] * 4))
    assert found["human_cross_entropy"] == pytest.approx(-math.log(1e-12))
    assert all(math.isfinite(value) for value in found.values())
    assert (found["human_error"], found["human_gap"], found["human_coverage"]) == (1.0, 1.0, 0.0)


def test_equally_certain_items_share_their_error() -> None:
    probs = torch.tensor([[0.6, 0.4]]).repeat(10, 1)
    wrong = torch.tensor([1.0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    predictions = CredalPredictions(probs, probs, probs)
    for rows in (torch.arange(10), torch.arange(9, -1, -1)):
        found = errors_at("error", wrong[rows], predictions)
        assert found == {"error_at_80": pytest.approx(0.3), "error_at_90": pytest.approx(0.3)}
    # The certain 80 % are right, whatever the score's scale.
    certain = torch.linspace(0.95, 0.55, 10)
    probs = torch.stack([certain, 1 - certain], 1)
    predictions = CredalPredictions(probs, probs, probs)
    found = errors_at("error", torch.tensor([0.0] * 8 + [1.0] * 2), predictions)
    assert found == {"error_at_80": 0.0, "error_at_90": pytest.approx(1 / 9)}


@pytest.mark.parametrize("vertices", [1, 2, 5])
def test_widened_sets_reach_their_coverage(vertices: int, generator: torch.Generator) -> None:
    voted = a_set(generator, 1200, vertices=vertices)
    counts = some_votes(voted, 4)
    counts[::3] = counts[::3].roll(1, dims=1)  # or a hull of five covers 94 % without widening
    found = set_sizes(voted, counts)
    # 20 halvings of 1,200: the mean coverage of one is off by about 1.7 points at 90 %.
    assert found["set_coverage_90"] == pytest.approx(0.90, abs=0.03)
    assert found["set_coverage_95"] == pytest.approx(0.95, abs=0.02)
    narrow = float((voted.upper - voted.lower).mean())
    assert narrow < found["set_width_90"] < found["set_width_95"] < 1
    assert narrow < found["set_width_90_plain"] < 1
    assert found == set_sizes(voted, counts)  # the same halvings for every method
