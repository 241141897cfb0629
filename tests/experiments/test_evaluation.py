"""Metrics of a run: each against the direct call of its metric, or slow, obvious code."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from credalearn import metrics as direct
from credalearn.predictions import CredalPredictions
from credalearn.theory import consistent
from credalearn_experiments.data import Task
from credalearn_experiments.evaluation import (
    errors_at,
    evaluate,
    evaluate_voted,
    measure,
    rejection_curve,
    set_sizes,
    tempered_ece,
)
from credalearn_experiments.runs import Run
from credalearn_experiments.settings.catalog import ALL_SETTINGS

CLASSES = 4


def a_set(generator: torch.Generator, items: int, *, vertices: int = 3) -> CredalPredictions:
    logits = 2 * torch.randn(items, vertices, CLASSES, generator=generator)
    return CredalPredictions.from_vertices(logits.softmax(2))


def some_classes(generator: torch.Generator, items: int) -> Tensor:
    return torch.randint(0, CLASSES, (items,), generator=generator)


def a_dirichlet(generator: torch.Generator, items: int) -> CredalPredictions:
    alpha = 1 + 5 * torch.rand(items, CLASSES, generator=generator)
    probs = alpha / alpha.sum(1, keepdim=True)
    return CredalPredictions(probs, probs, probs, concentration=alpha)


# The methods' own scores, and those that separate foreign images.
@pytest.mark.parametrize(
    ("method", "score", "foreign_score"),
    [
        ("pocc", "mmi", "mmi"),
        ("pocc-ensemble", "mmi", "entropy-difference"),
        ("edl", "evidence", "evidence"),
    ],
)
def test_each_metric_is_the_direct_call(
    method: str, score: str, foreign_score: str, generator: torch.Generator
) -> None:
    make = a_dirichlet if method == "edl" else a_set
    test, training, foreign = make(generator, 60), make(generator, 50), make(generator, 40)
    y = some_classes(generator, 60)
    found = evaluate(method, test, y, {"tiny-imagenet": foreign}, training)
    own, strange = test.score(score), foreign.score(foreign_score)
    expected = {
        "accuracy": direct.accuracy(test.probs, y),
        "ece": direct.ece(test.probs, y),
        "ece_tempered": tempered_ece(test.probs, y),
        "auarc": direct.auarc(test.probs, y, own),
        "normalized_auarc": direct.normalized_auarc(test.probs, y, own),
        "spearman_error": direct.spearman_error(test.probs, y, own),
        "auroc_tiny_imagenet": direct.auroc(test.score(foreign_score), strange),
        "auroc_training_tiny_imagenet": direct.auroc(training.score(foreign_score), strange),
    }
    for name in ("top-probability", "lower-probability", "mmi", "entropy-difference"):
        if method != "edl" or name == "top-probability":
            key, scores = name.replace("-", "_"), test.score(name)
            expected[f"auarc_{key}"] = direct.auarc(test.probs, y, scores)
            expected[f"auroc_{key}_tiny_imagenet"] = direct.auroc(scores, foreign.score(name))
    assert found == expected


def test_scores_of_a_set_only_where_one_item_is_more_than_a_point(
    generator: torch.Generator,
) -> None:
    points = a_set(generator, 20, vertices=1)
    y = some_classes(generator, 20)
    of_a_set = {"auarc_lower_probability", "auarc_mmi", "auarc_entropy_difference"}
    assert not of_a_set & evaluate("softmax", points, y, {}).keys()
    upper = points.upper.clone()
    upper[7, 0] = 1.0
    one = CredalPredictions(points.probs, points.lower, upper)
    assert of_a_set <= evaluate("softmax", one, y, {}).keys()


@pytest.mark.parametrize("items", [1, 7, 100, 1000])
def test_the_curve_has_101_points_of_the_exact_one(items: int, generator: torch.Generator) -> None:
    test = a_set(generator, items)
    y = some_classes(generator, items)
    curve = rejection_curve("pocc", test, y)
    assert len(curve) == 101
    # The slow way: drop the least certain items, and count.
    order = test.score("mmi").argsort(stable=True)
    right = (test.classes == y)[order].double()
    for percent, value in enumerate(curve):
        kept = max(1, round((100 - percent) * items / 100))
        if abs((100 - percent) * items / 100 % 1 - 0.5) > 1e-9:  # halves may round either way
            assert value == pytest.approx(float(right[:kept].mean()), abs=1e-12)
    assert curve[0] == pytest.approx(direct.accuracy(test.probs, y), abs=1e-12)
    assert curve[100] == float(right[0])


def test_every_part_is_predicted_evaluated_and_kept(generator: torch.Generator) -> None:
    """The model predicts the hull of two corners that are its inputs."""
    inputs = {
        part: torch.randn(6, 2 * CLASSES, generator=generator)
        for part in ("train", "test", "voted", "svhn")
    }
    y = some_classes(generator, 6)
    counts = torch.randint(1, 9, (6, CLASSES), generator=generator)
    task = Task(
        name="some",
        classes=tuple("abcd"),
        train_inputs=inputs["train"],
        train_y=y,
        test_inputs=inputs["test"],
        test_y=y,
        voted_inputs=inputs["voted"],
        voted_counts=counts,
    )

    def predict(rows: Tensor) -> CredalPredictions:
        return CredalPredictions.from_vertices(rows.view(-1, 2, CLASSES).softmax(2))

    run = Run(ALL_SETTINGS["cifar10h"], "pocc", 1, limit=16)
    found = measure(run, predict, task, {"svhn": inputs["svhn"]})
    test, voted = predict(inputs["test"]), predict(inputs["voted"])
    known = predict(inputs["train"][:2])  # an eighth of the limit
    assert found.metrics == {
        **evaluate("pocc", test, y, {"svhn": predict(inputs["svhn"])}, known),
        **evaluate_voted(test, y, voted, counts),
    }
    assert found.curves == {"accuracy_rejection": rejection_curve("pocc", test, y)}
    fields = ("probs", "lower", "upper", "vertices")
    names = {f"{part}.{field}" for part in ("test", "voted", "svhn") for field in fields}
    assert found.predictions.keys() == names | {"y", "voted_counts"}
    assert torch.equal(found.predictions["voted.lower"], voted.lower)
    assert torch.equal(found.predictions["voted_counts"], counts)


@pytest.mark.parametrize("temperature", [0.3, 2.5])
def test_tempering_removes_the_calibration_error(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4000, 5, generator=generator, dtype=torch.float64)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    probs = (logits * temperature).softmax(1)
    assert direct.ece(probs, y) > 0.1
    assert tempered_ece(probs, y) < 0.03
    assert 0 <= tempered_ece(torch.eye(5).repeat(8, 1), y[:40]) <= 1  # probabilities of 0


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


def test_held_out_votes_choose_the_factor_of_plain_boxes(generator: torch.Generator) -> None:
    center = torch.softmax(torch.randn(900, CLASSES, generator=generator), 1)
    gap = (center * (1 - center)).sqrt() / 4
    plain, wide = (
        CredalPredictions(center, (center - f * gap).clamp(min=0), (center + f * gap).clamp(max=1))
        for f in (1, 16)
    )
    counts = some_votes(plain, 5)
    found, without = set_sizes(wide, counts), set_sizes(wide, counts, plain)
    assert without["set_width_90_stretched"] < 0.7 * found["set_width_90_stretched"]
    changed = {name for name in found if found[name] != without[name]}
    assert changed == {"set_width_90_stretched", "set_coverage_90_stretched"}
