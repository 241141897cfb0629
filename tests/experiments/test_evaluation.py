"""Metrics of a run: each against the direct call of its metric."""

import pytest
import torch
from torch import Tensor

from credalearn import metrics as direct
from credalearn.predictions import CredalPredictions
from credalearn_experiments.data import Task
from credalearn_experiments.evaluation import (
    evaluate,
    evaluate_voted,
    measure,
    rejection_curve,
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
