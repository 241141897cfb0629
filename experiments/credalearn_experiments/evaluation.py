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

from credalearn._ranks import as_scores, kept_means
from credalearn._temperature import fit_temperature, temper
from credalearn.conformal.distance import box_distance
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
) -> Measurements:
    """Predict and evaluate every part of a task; foreign images are by the name of their set."""
    test = predict(task.test_inputs)
    y = task.test_y.to(test.probs.device)
    strange = {name: predict(images) for name, images in foreign.items()}
    training = predict(task.train_inputs[: run.foreign_limit]) if strange else None
    metrics = evaluate(run.method, test, y, strange, training)
    tensors = {"y": task.test_y}
    parts = {"test": test, **strange}
    member = run.left_out is not None or run.seed not in run.setting.seeds  # serves others alone
    if task.voted_inputs is not None and task.voted_counts is not None and not member:
        same = torch.equal(task.voted_inputs, task.test_inputs)
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
        metrics[metric_of("auarc", name)] = auarc(probs, y, scores)
        for place, predictions in foreign.items():
            metrics[metric_of("auroc", name, place)] = auroc(scores, predictions.score(name))
    name = _FOREIGN_SCORES.get(method, METHODS[method].score)
    insides = {"auroc": test} | ({"auroc_training": training} if training is not None else {})
    for metric, inside in insides.items():
        scores = inside.score(name)
        for place, predictions in foreign.items():
            metrics[metric_of(metric, place)] = auroc(scores, predictions.score(name))
    return metrics


def tempered_ece(probs: Tensor, y: Tensor) -> float:
    """The calibration error of each half of the items, tempered by the other half; their mean.

    The temperature is fitted to items like those of the test: the best case for every method.
    """
    probs, y = probs.double().cpu(), y.cpu()
    right = one_hot(y, probs.shape[1])
    return tempered_mean(probs, right, lambda found, rows: ece(found, y[rows]))


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
    curve = accuracy_rejection(test.probs, y, test.score(METHODS[method].score))
    shares = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64)
    kept = ((1 - shares) * len(curve)).round().long().clamp(min=1)
    return tuple(curve.cpu()[kept - 1].tolist())


KEPT = (80, 90)  # percent of the items, the most certain ones
COVERAGES = (90, 95)  # percent of the items whose vote shares a widened set must cover
SPLITS = 20
_FLOOR = 1e-12  # a softmax in float32 underflows to 0 at 104 nats; it counts as 27.6


def evaluate_voted(
    test: CredalPredictions, y: Tensor, voted: CredalPredictions, counts: Tensor
) -> dict[str, float]:
    """Errors among the most certain items, and agreement of predictions with held-out votes.

    For every method, the most certain items are those with the highest lower probability.

    ==========================  ================================================================
    metric                      meaning
    ==========================  ================================================================
    ``error_at_80``, ``_90``    error of the most certain 80 or 90 % of the test items
    ``human_cross_entropy``     mean cross-entropy of the vote shares to ``probs``, nats
    ``human_error``             1 − share of the votes for the predicted class
    ``human_error_at_80``, …    the same among the most certain 80 or 90 % of the voted items
    ``human_coverage``          share of items whose votes are consistent with the predicted set
    ``human_gap``               mean smallest r with the shares in [lower − r, upper + r]
    ``set_coverage_90``, …      coverage of the vote shares by sets widened to cover 90 or 95 %
    ``set_width_90``, …         their mean class-wise width
    ``set_width_90_plain``      the same, all items widened alike
    ``set_width_90_formula``    of rivals, ``probs`` ± f·√(p(1 − p)), widened alike
    ``set_width_90_stretched``  of the predicted sets stretched around ``probs`` by f, widened alike
    ``set_width_90_scaled``     of the predicted sets, widened by the best of three scales
    ==========================  ================================================================

    Sets are widened on half of the voted items (split conformal) and measured on the other half:
    means over 20 random halves, the same for all methods. A third of the first half chooses f and
    the best scale (:class:`.guaranteed_sets.GuaranteedSets`). "Consistent" is
    :func:`credalearn.theory.consistent` at 5 %.
    """
    shares = counts.double() / counts.sum(1, keepdim=True)
    wrong = (test.classes != y).double()
    other = 1 - shares.gather(1, voted.classes[:, None])[:, 0]
    log_probs = voted.probs.double().clamp(min=_FLOOR).log()
    off = box_distance(shares, voted.lower, voted.upper, torch.ones_like(shares[:, :1]))
    return {
        **errors_at("error", wrong, test),
        "human_cross_entropy": float(-(shares * log_probs).sum(1).mean()),
        "human_error": float(other.mean()),
        **errors_at("human_error", other, voted),
        "human_coverage": float(consistent(counts, voted.lower, voted.upper).double().mean()),
        "human_gap": float(off.mean()),
        **set_sizes(voted, counts),
    }


def errors_at(name: str, wrong: Tensor, predictions: CredalPredictions) -> dict[str, float]:
    """Mean of ``wrong`` (N,) over the most certain 80 and 90 %; equally certain items share it."""
    scores = as_scores(predictions.score("lower-probability"), name="score")
    means = kept_means(scores, wrong.double().numpy(force=True))
    # Python rounds halves to even: 80 % and 90 % of five items are both four.
    kept = {percent: max(1, round(percent * len(means) / 100)) for percent in KEPT}
    return {f"{name}_at_{percent}": float(means[count - 1]) for percent, count in kept.items()}


def set_sizes(voted: CredalPredictions, counts: Tensor) -> dict[str, float]:
    """Coverage reached and mean class-wise width of widened sets, over random halvings."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    rng = np.random.default_rng(0)  # the same halves for every run of a task
    for _ in range(SPLITS):
        half = rng.permutation(len(voted)) < len(voted) // 2
        rest = voted[~half]
        for coverage in COVERAGES:
            inflation = voted[half].inflation(counts[half], coverage=coverage / 100)
            covered = inflation.covers(counts[~half], rest.lower, rest.upper, rest.probs)
            found[f"set_coverage_{coverage}"].append(float(covered.double().mean()))
            found[f"set_width_{coverage}"].append(_width(rest.conformalize(inflation)))
        plain = voted[half].inflation(counts[half], coverage=COVERAGES[0] / 100, scale="none")
        found[f"set_width_{COVERAGES[0]}_plain"].append(_width(rest.conformalize(plain)))
        order = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
        sets = GuaranteedSets.split(counts, order, half.sum())
        contenders = {"formula": sets.spread(voted.probs), "scaled": voted}
        if (voted.upper > voted.lower).any():
            contenders["stretched"] = sets.wide_hull(voted)
        for kind, metric, value in sets.scores(contenders, scaled=["scaled"]):
            found[f"set_{metric}_{COVERAGES[0]}_{kind}"].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _width(predictions: CredalPredictions) -> float:
    return float((predictions.upper - predictions.lower).double().mean())
