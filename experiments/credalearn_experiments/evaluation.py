"""Metrics, curves and predictions of a run: what its networks say of test and foreign items.

Where people's votes were held out, also errors against votes, and sizes of sets. Shapes: N items,
V held-out items with votes, K classes.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn import metrics
from credalearn._ranks import as_scores, kept_means
from credalearn._temperature import fit_temperature, temper
from credalearn.conformal._calibration import box_distance
from credalearn.methods import METHODS
from credalearn.predictions import CredalPredictions
from credalearn.theory import consistent
from credalearn_experiments.data import Task
from credalearn_experiments.data.cifar import split_in_two
from credalearn_experiments.guaranteed_sets import GuaranteedSets
from credalearn_experiments.records import CURVE_POINTS, metric_of
from credalearn_experiments.runs import Run

# Scores other than the method's own: one that all methods have, and those of a set.
_OTHER_SCORES = ("top-probability", "lower-probability", "mmi", "entropy-difference")
# The score that separates foreign images, where it is not the method's own.
_FOREIGN_SCORES = {"pocc-ensemble": "entropy-difference"}
_FIELDS = ("probs", "lower", "upper", "vertices", "concentration")


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What a run found."""

    metrics: dict[str, float]  # as fractions
    curves: dict[str, tuple[float, ...]]
    predictions: dict[str, Tensor]  # by PART.FIELD, or y and voted_counts


def measure(
    run: Run,
    predict: Callable[[Tensor], CredalPredictions],
    task: Task,
    foreign: Mapping[str, Tensor],
    unstretched: Callable[[Tensor], CredalPredictions] | None = None,
) -> Measurements:
    """Predict and evaluate every part of a task; foreign images are by the name of their set.

    ``unstretched`` predicts boxes without the factor that the training votes chose for them.
    """
    test = predict(task.test_inputs)
    y = task.test_y.to(test.probs.device)
    strange = {name: predict(images) for name, images in foreign.items()}
    training = predict(task.train_inputs[: run.foreign_limit]) if strange else None
    found = evaluate(run.method, test, y, strange, training)
    tensors = {"y": task.test_y}
    parts = {"test": test, **strange}
    member = run.left_out is not None or run.seed not in run.setting.seeds  # serves others alone
    if task.voted_inputs is not None and task.voted_counts is not None and not member:
        same = torch.equal(task.voted_inputs, task.test_inputs)
        parts["voted"] = test if same else predict(task.voted_inputs)
        tensors["voted_counts"] = task.voted_counts
        boxes = unstretched and unstretched(task.voted_inputs)
        voted = parts["voted"].to("cpu")
        found |= evaluate_voted(test.to("cpu"), task.test_y, voted, task.voted_counts, boxes)
    for place, predictions in parts.items():
        held = {f"{place}.{field}": getattr(predictions, field) for field in _FIELDS}
        tensors |= {name: tensor for name, tensor in held.items() if tensor is not None}
    curves = {"accuracy_rejection": rejection_curve(run.method, test, y)}
    return Measurements(found, curves, tensors)


def evaluate(
    method: str,
    test: CredalPredictions,
    y: Tensor,
    foreign: Mapping[str, CredalPredictions],
    training: CredalPredictions | None = None,
) -> dict[str, float]:
    """Every metric that needs no votes; by the method's own score, and by others in the name."""
    probs, own = test.probs, test.score(METHODS[method].score)
    found = {
        "accuracy": metrics.accuracy(probs, y),
        "ece": metrics.ece(probs, y),
        "ece_tempered": tempered_ece(probs, y),
        "auarc": metrics.auarc(probs, y, own),
        "normalized_auarc": metrics.normalized_auarc(probs, y, own),
        "spearman_error": metrics.spearman_error(probs, y, own),
    }
    is_set = bool((test.upper - test.lower).max() > 0)
    for name in _OTHER_SCORES if is_set else _OTHER_SCORES[:1]:
        scores = test.score(name)
        found[metric_of("auarc", name)] = metrics.auarc(probs, y, scores)
        for place, predictions in foreign.items():
            strange = predictions.score(name)
            found[metric_of("auroc", name, place)] = metrics.auroc(scores, strange)
    name = _FOREIGN_SCORES.get(method, METHODS[method].score)
    insides = {"auroc": test} | ({"auroc_training": training} if training is not None else {})
    for metric, inside in insides.items():
        scores = inside.score(name)
        for place, predictions in foreign.items():
            found[metric_of(metric, place)] = metrics.auroc(scores, predictions.score(name))
    return found


def tempered_ece(probs: Tensor, y: Tensor) -> float:
    """The mean calibration error of both halves of the items, each tempered by the other half."""
    probs, y = probs.double().cpu(), y.cpu()
    right = one_hot(y, probs.shape[1])
    return tempered_mean(probs, right, lambda found, rows: metrics.ece(found, y[rows]))


def tempered_mean(
    probs: Tensor, targets: Tensor, metric: Callable[[Tensor, Tensor], float]
) -> float:
    """Mean of a metric of each half of the items, given its rows, tempered by the other half."""
    found = [
        metric(temper(probs[test], fit_temperature(probs[rest], targets[rest])), test)
        for rest, test in permutations(split_in_two(len(probs), len(probs) // 2))
    ]
    return sum(found) / 2


def rejection_curve(method: str, test: CredalPredictions, y: Tensor) -> tuple[float, ...]:
    """Accuracy when 0, 1, …, 100 % (all items but one) are rejected by the own uncertainty."""
    curve = metrics.accuracy_rejection(test.probs, y, test.score(METHODS[method].score))
    shares = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64)
    kept = ((1 - shares) * len(curve)).round().long().clamp(min=1)
    return tuple(curve.cpu()[kept - 1].tolist())


_FLOOR = 1e-12  # a softmax in float32 underflows to 0 at 104 nats; it counts as 27.6


def evaluate_voted(
    test: CredalPredictions,
    y: Tensor,
    voted: CredalPredictions,
    counts: Tensor,
    unstretched: CredalPredictions | None = None,
) -> dict[str, float]:
    """Errors among the most certain items, and agreement of predictions with held-out votes."""
    shares = counts.double() / counts.sum(1, keepdim=True)
    wrong = (test.classes != y).double()
    other = 1 - shares.gather(1, voted.classes[:, None])[:, 0]
    log_probs = voted.probs.double().clamp(min=_FLOOR).log()
    off = box_distance(shares, voted.lower, voted.upper, torch.ones_like(shares[:, :1]))
    return {
        **errors_at("error", wrong, test),
        # Of the vote shares to ``probs``, in nats; and the share of votes for another class.
        "human_cross_entropy": float(-(shares * log_probs).sum(1).mean()),
        "human_error": float(other.mean()),
        **errors_at("human_error", other, voted),
        # Items whose votes are consistent with the set at 5 %, and the mean smallest r with the
        # shares in [lower − r, upper + r].
        "human_coverage": float(consistent(counts, voted.lower, voted.upper).double().mean()),
        "human_gap": float(off.mean()),
        **set_sizes(voted, counts, unstretched),
    }


def errors_at(name: str, wrong: Tensor, predictions: CredalPredictions) -> dict[str, float]:
    """Mean of ``wrong`` (N,) over the most certain 80 and 90 %; equally certain items share it."""
    scores = as_scores(predictions.score("lower-probability"), name="score")
    means = kept_means(scores, wrong.double().numpy(force=True))
    # Python rounds halves to even: 80 % and 90 % of five items are both four.
    kept = {percent: max(1, round(percent * len(means) / 100)) for percent in (80, 90)}
    return {f"{name}_at_{percent}": float(means[count - 1]) for percent, count in kept.items()}


def set_sizes(
    voted: CredalPredictions, counts: Tensor, unstretched: CredalPredictions | None = None
) -> dict[str, float]:
    """Coverage and mean width of widened sets: means over 20 random halves, the same for all."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    rng = np.random.default_rng(0)
    for _ in range(20):
        half = rng.permutation(len(voted)) < len(voted) // 2
        rest = voted[~half]
        for coverage in (90, 95):
            inflation = voted[half].inflation(counts[half], coverage=coverage / 100)
            covered = rest.covers(counts[~half], inflation)
            found[f"set_coverage_{coverage}"].append(float(covered.double().mean()))
            found[f"set_width_{coverage}"].append(_width(rest.conformalize(inflation)))
        plain = voted[half].inflation(counts[half], coverage=0.9, scale="none")
        found["set_width_90_plain"].append(_width(rest.conformalize(plain)))
        order = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
        sets = GuaranteedSets.split(counts, order, half.sum())
        contenders = {"formula": sets.spread(voted.probs), "scaled": voted}
        if (voted.upper > voted.lower).any():
            contenders["stretched"] = sets.wide_hull(voted if unstretched is None else unstretched)
        for kind, metric, value in sets.scores(contenders, scaled=["scaled"]):
            found[f"set_{metric}_90_{kind}"].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _width(predictions: CredalPredictions) -> float:
    return float((predictions.upper - predictions.lower).double().mean())
