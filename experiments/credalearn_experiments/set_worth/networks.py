"""Small networks on features, next to the default learner: mixed items, and smoothed labels."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

import credalearn as cl
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.scores import scores_of
from credalearn_experiments.studies import Score

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
    yield from _scores(seed, data, labels, MIXED)


def smoothing_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Networks on the classes of most votes on CIFAR-10H, smoothed."""
    data, epsilon = CROWD_SETS["CIFAR-10H, all votes"](folders, seed), SMOOTHINGS[cell]
    truth, count = data.truth[data.train], data.counts.shape[1]
    labels = cl.smooth(truth, epsilon, count) if epsilon else cl.precise(np.eye(count)[truth])
    yield from _scores(seed, data, labels, SMOOTHED)


def _scores(seed: int, data: CrowdSet, labels: cl.CredalSet, learners: Learners) -> Iterator[Score]:
    """Judged on calibration and test items by all votes."""
    X, new = data.features(data.train, data.others)
    for learner, (method, augment) in learners.items():
        clf = cl.CredalClassifier(method, augment=augment, random_state=seed, device="cpu")
        probs = torch.from_numpy(np.asarray(clf.fit(X, labels).predict_proba(new))).double()
        yield from scores_of(learner, probs, *data.answers)
