"""Small networks on features, next to the default learner: mixed items, and smoothed labels.

And the metrics that all classifiers are judged by. Shapes: N items, K classes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn._temperature import log_probs
from credalearn.metrics import accuracy, auarc, ece
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.evaluation import tempered_ece, tempered_mean
from credalearn_experiments.results.table import Column
from credalearn_experiments.studies import Score

METRICS = (
    Column("accuracy"),
    Column("AUARC"),
    Column("ECE", better="lower"),
    Column("ECE, tempered", better="lower"),
    Column("cross-entropy to people", better="lower", percent=False, digits=3),
    Column("the same, tempered", better="lower", percent=False, digits=3),
)
Learners = Mapping[str, tuple[str, Any]]  # method and augmentation

LINEAR = "default learner, linear"
MIXED: Learners = {
    "softmax": ("softmax", "none"),
    "softmax, mixup": ("softmax", "mixup"),
    "softmax, CutMix": ("softmax", "cutmix"),
    "POCC with center head": ("pocc-center", "none"),
    "POCC with center head, mixup": ("pocc-center", "mixup"),
    "POCC with center head, CutMix": ("pocc-center", "cutmix"),
    LINEAR: ("auto", "none"),
}
MIXED_DATA = {name: name for name in ("CIFAR-10H, 3 votes", "CIFAR-10H, all votes", "LIDC")}
SMOOTHED: Learners = {
    "softmax": ("softmax", "none"),
    "POCC": ("pocc", "none"),
    "POCC with center head": ("pocc-center", "none"),
    LINEAR: ("auto", "none"),
}
SMOOTHINGS = {f"smoothing {epsilon:g}": epsilon for epsilon in (0.0, 0.1, 0.2)}


def mixing_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Networks with mixed items, on people's votes."""
    data = CROWD_SETS[cell](folders, seed)
    yield from _scores(seed, data, data.labels, MIXED)


def smoothing_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Networks on the classes of most votes on CIFAR-10H, smoothed."""
    data, epsilon = CROWD_SETS["CIFAR-10H, all votes"](folders, seed), SMOOTHINGS[cell]
    truth, count = data.truth[data.train], data.counts.shape[1]
    labels = cl.smooth(truth, epsilon, count) if epsilon else cl.precise(np.eye(count)[truth])
    yield from _scores(seed, data, labels, SMOOTHED)


def _scores(seed: int, data: CrowdSet, labels: cl.CredalSet, learners: Learners) -> Iterator[Score]:
    """Judged on calibration and test items by all votes."""
    X, new = data.inputs
    for learner, (method, augment) in learners.items():
        clf = cl.CredalClassifier(method, augment=augment, random_state=seed, device="cpu")
        probs = torch.from_numpy(np.asarray(clf.fit(X, labels).predict_proba(new))).double()
        yield from scores_of(learner, probs, *data.answers)


def scores_of(learner: str, probs: Tensor, right: Tensor, votes: Tensor) -> Iterator[Score]:
    """Each metric of a learner, given true classes (N,), −1 for none, and people's shares (N, K).

    AUARC defers by 1 − top probability. *Tempered*: each half of the items by the other half.
    """
    known = right >= 0
    sure, classes = probs[known], right[known]

    def cross_entropy(found: Tensor, rows: Tensor | slice) -> float:
        return float(-(votes[rows] * log_probs(found)).sum(1).mean())

    values = (
        accuracy(sure, classes),
        auarc(sure, classes, 1 - sure.amax(1)),
        ece(sure, classes),
        tempered_ece(sure, classes),
        cross_entropy(probs, slice(None)),
        tempered_mean(probs, votes, cross_entropy),
    )
    named = zip(METRICS, values, strict=True)
    return ((learner, column.name, value) for column, value in named)
