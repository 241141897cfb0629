"""What a run is measured by: from predictions and true classes to numbers and curves.

Shapes: N items.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

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
from credalearn_experiments.records import CURVE_POINTS

# Rejection by scores other than the method's own: one that all share, and those of a set.
_OTHER_SCORES = ("top-probability", "lower-probability", "mmi", "entropy-difference")
# The score that foreign images are told apart by, where it is not the method's own.
_FOREIGN_SCORES = {"pocc-ensemble": "entropy-difference"}


def evaluate(
    method: str,
    test: CredalPredictions,
    y: Tensor,
    foreign: Mapping[str, CredalPredictions],
    training: CredalPredictions | None = None,
) -> dict[str, float]:
    """Every metric of a run, as fractions.

    ``auarc``, ``normalized_auarc`` and ``spearman_error`` go by the method's own uncertainty,
    ``auarc_top_probability`` and the like by others; those of a set only where the predictions are
    more than points. ``auroc_…`` is how well the method's own uncertainty (of an ensemble of POCC:
    the entropy difference) tells foreign images from the test images; ``auroc_training_…`` from the
    images that the network was trained on, which says how much of such a figure is memory.

    Args:
        method: Name of the method.
        test: Predictions of the test items.
        y: Their true classes, shape (N,).
        foreign: Predictions of foreign images, by the name of their set.
        training: Predictions of the training images, without augmentation.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> test = CredalPredictions(probs, probs, probs)
        >>> evaluate("softmax", test, torch.tensor([0, 1]), {})["auarc"]
        0.75
    """
    probs = test.probs
    own = test.score(METHODS[method].score)
    metrics = {
        "accuracy": accuracy(probs, y),
        "ece": ece(probs, y),
        "auarc": auarc(probs, y, own),
        "normalized_auarc": normalized_auarc(probs, y, own),
        "spearman_error": spearman_error(probs, y, own),
    }
    is_set = bool((test.upper - test.lower).max() > 0)
    for name in _OTHER_SCORES if is_set else _OTHER_SCORES[:1]:
        metrics[f"auarc_{_key(name)}"] = auarc(probs, y, test.score(name))
    name = _FOREIGN_SCORES.get(method, METHODS[method].score)
    insides = {"auroc": test} | ({"auroc_training": training} if training is not None else {})
    for metric, inside in insides.items():
        scores = inside.score(name)
        for place, predictions in foreign.items():
            metrics[f"{metric}_{_key(place)}"] = auroc(scores, predictions.score(name))
    return metrics


def rejection_curve(method: str, test: CredalPredictions, y: Tensor) -> tuple[float, ...]:
    """Accuracy when 0, 1, …, 100 % of the items are rejected by the method's own uncertainty.

    The last is the accuracy of the single most certain item.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> test = CredalPredictions(probs, probs, probs)
        >>> curve = rejection_curve("softmax", test, torch.tensor([0, 1]))
        >>> curve[0], curve[50], curve[100]
        (0.5, 1.0, 1.0)
    """
    curve = accuracy_rejection(test.probs, y, test.score(METHODS[method].score))
    shares = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64)
    kept = ((1 - shares) * len(curve)).round().long().clamp(min=1)
    return tuple(curve.cpu()[kept - 1].tolist())


def pack(
    test: CredalPredictions, y: Tensor, foreign: Mapping[str, CredalPredictions]
) -> dict[str, Tensor]:
    """Predictions of all sets as one dictionary of tensors, to be stored.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1]])
        >>> sorted(pack(CredalPredictions(probs, probs, probs), torch.tensor([0]), {}))
        ['test.lower', 'test.probs', 'test.upper', 'y']
    """
    tensors = {"y": y}
    for place, predictions in {"test": test, **foreign}.items():
        tensors |= _tensors(place, predictions)
    return tensors


def pack_voted(voted: CredalPredictions, counts: Tensor) -> dict[str, Tensor]:
    """Predictions of the items that were held out with their votes, to be stored beside the others.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1]])
        >>> voted = CredalPredictions(probs, probs, probs)
        >>> sorted(pack_voted(voted, torch.tensor([[3, 0]])))
        ['voted.lower', 'voted.probs', 'voted.upper', 'voted_counts']
    """
    return {"voted_counts": counts} | _tensors("voted", voted)  # no foreign set has this name


def _tensors(place: str, predictions: CredalPredictions) -> dict[str, Tensor]:
    """The tensors of predictions under names that say which."""
    fields = ("probs", "lower", "upper", "vertices", "concentration")
    held = {f"{place}.{field}": getattr(predictions, field) for field in fields}
    return {name: tensor for name, tensor in held.items() if tensor is not None}


def _key(name: str) -> str:
    return name.replace("-", "_")
