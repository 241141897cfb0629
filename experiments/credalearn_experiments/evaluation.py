"""Metrics, curves and predictions of a run: what its networks say of test and foreign items.

Shapes: N items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn._temperature import fit_temperature, temper
from credalearn.methods import METHODS
from credalearn.metrics import (
    accuracy,
    accuracy_rejection,
    auarc,
    auroc,
    ece,
    normalized_auarc,
    spearman_error,
)
from credalearn.predictions import CredalPredictions
from credalearn_experiments.data import Task
from credalearn_experiments.data.cifar import split_in_two
from credalearn_experiments.records import CURVE_POINTS
from credalearn_experiments.runs import Run
from credalearn_experiments.vote_evaluation import evaluate_voted

# Scores other than the method's own: one that all methods have, and those of a set.
_OTHER_SCORES = ("top-probability", "lower-probability", "mmi", "entropy-difference")
# The score that separates foreign images, where it is not the method's own.
_FOREIGN_SCORES = {"pocc-ensemble": "entropy-difference"}
_FIELDS = ("probs", "lower", "upper", "vertices", "concentration")


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What a run found."""

    metrics: Mapping[str, float]  # as fractions
    curves: Mapping[str, tuple[float, ...]]
    predictions: Mapping[str, Tensor]  # by PART.FIELD, or y and voted_counts


def measure(
    run: Run,
    predict: Callable[[Tensor], CredalPredictions],
    task: Task,
    foreign: Mapping[str, Tensor],
) -> Measurements:
    """Predict and evaluate every part of a task; foreign images are by the name of their set."""
    test = predict(task.test_inputs)
    y = task.test_y.to(test.probs.device)
    strange = {name: predict(images) for name, images in foreign.items()}
    training = predict(task.train_inputs[: run.foreign_limit]) if strange else None
    metrics = evaluate(run.method, test, y, strange, training)
    tensors = {"y": task.test_y}
    parts = {"test": test, **strange}
    if task.voted_inputs is not None and task.voted_counts is not None:
        same = task.voted_inputs is task.test_inputs
        parts["voted"] = test if same else predict(task.voted_inputs)
        tensors["voted_counts"] = task.voted_counts
        metrics |= evaluate_voted(
            test.to("cpu"), task.test_y, parts["voted"].to("cpu"), task.voted_counts
        )
    for place, predictions in parts.items():
        held = {f"{place}.{field}": getattr(predictions, field) for field in _FIELDS}
        tensors |= {name: tensor for name, tensor in held.items() if tensor is not None}
    curves = {"accuracy_rejection": rejection_curve(run.method, test, y)}
    return Measurements(metrics, curves, tensors)


def evaluate(
    method: str,
    test: CredalPredictions,
    y: Tensor,
    foreign: Mapping[str, CredalPredictions],
    training: CredalPredictions | None = None,
) -> dict[str, float]:
    """Every metric of a run that needs no votes, as fractions.

    ``auroc_SET`` is how well foreign images are separated from test images, and
    ``auroc_training_SET`` from training images. ``auarc_top_probability``,
    ``auroc_top_probability_SET`` and the like use other scores than the method's own.
    """
    probs = test.probs
    own = test.score(METHODS[method].score)
    metrics = {
        "accuracy": accuracy(probs, y),
        "ece": ece(probs, y),
        "ece_tempered": tempered_ece(probs, y),
        "auarc": auarc(probs, y, own),
        "normalized_auarc": normalized_auarc(probs, y, own),
        "spearman_error": spearman_error(probs, y, own),
    }
    is_set = bool((test.upper - test.lower).max() > 0)
    for name in _OTHER_SCORES if is_set else _OTHER_SCORES[:1]:
        scores = test.score(name)
        metrics[f"auarc_{_key(name)}"] = auarc(probs, y, scores)
        for place, predictions in foreign.items():
            metric = f"auroc_{_key(name)}_{_key(place)}"
            metrics[metric] = auroc(scores, predictions.score(name))
    name = _FOREIGN_SCORES.get(method, METHODS[method].score)
    insides = {"auroc": test} | ({"auroc_training": training} if training is not None else {})
    for metric, inside in insides.items():
        scores = inside.score(name)
        for place, predictions in foreign.items():
            metrics[f"{metric}_{_key(place)}"] = auroc(scores, predictions.score(name))
    return metrics


def tempered_ece(probs: Tensor, y: Tensor) -> float:
    """The calibration error of each half of the items, tempered by the other half; their mean.

    The temperature is fitted to items like those of the test: the best case for every method.
    """
    probs, y = probs.double().cpu(), y.cpu()
    right, halves = one_hot(y, probs.shape[1]), split_in_two(len(y), len(y) // 2)
    errors = [
        ece(temper(probs[test], fit_temperature(probs[rest], right[rest])), y[test])
        for rest, test in (halves, halves[::-1])
    ]
    return sum(errors) / 2


def rejection_curve(method: str, test: CredalPredictions, y: Tensor) -> tuple[float, ...]:
    """Accuracy when 0, 1, …, 100 % (all items but one) are rejected by the own uncertainty."""
    curve = accuracy_rejection(test.probs, y, test.score(METHODS[method].score))
    shares = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64)
    kept = ((1 - shares) * len(curve)).round().long().clamp(min=1)
    return tuple(curve.cpu()[kept - 1].tolist())


def _key(name: str) -> str:
    return name.replace("-", "_")
