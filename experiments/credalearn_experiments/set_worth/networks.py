"""Small networks on features, next to the default learner: mixed items, and smoothed labels."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

import credalearn as cl
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.scores import Score, scores_of

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
    labels = cl.from_votes(data.counts[data.train])
    yield from _scores("mixing", cell, seed, data, labels, MIXED)


def smoothing_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Networks on the classes of most votes on CIFAR-10H, smoothed."""
    data, epsilon = CROWD_SETS["CIFAR-10H, all votes"](folders, seed), SMOOTHINGS[cell]
    truth, count = data.truth[data.train], data.counts.shape[1]
    labels = cl.smooth(truth, epsilon, count) if epsilon else cl.precise(np.eye(count)[truth])
    yield from _scores("smoothing", cell, seed, data, labels, SMOOTHED)


def _scores(
    study: str, cell: str, seed: int, data: CrowdSet, labels: cl.CredalSet, learners: Learners
) -> Iterator[Score]:
    """Judged on calibration and test items by all votes."""
    X, new = data.features(data.train, data.others)
    judged = data.judged[data.others]
    votes = torch.from_numpy(judged / judged.sum(1, keepdims=True))
    right = torch.from_numpy(data.truth[data.others])
    for learner, (method, augment) in learners.items():
        clf = cl.CredalClassifier(method, augment=augment, random_state=seed, device="cpu")
        probs = torch.from_numpy(np.asarray(clf.fit(X, labels).predict_proba(new))).double()
        for metric, value in scores_of(probs, right, votes):
            yield study, cell, learner, seed, metric, value
