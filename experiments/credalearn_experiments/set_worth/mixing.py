"""Mixed items: networks on features with mixup and CutMix, next to the default learner."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import credalearn as cl
from credalearn_experiments.data.crowd_sets import CROWD_SETS
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.scores import Score, scores_of

MIXED_DATA = {name: name for name in ("CIFAR-10H, 3 votes", "CIFAR-10H, all votes", "LIDC")}
LINEAR = "default learner, linear"
MIXED: dict[str, tuple[str, Any]] = {  # method and augmentation
    "softmax": ("softmax", "none"),
    "softmax, mixup": ("softmax", "mixup"),
    "softmax, CutMix": ("softmax", "cutmix"),
    "POCC with center head": ("pocc-center", "none"),
    "POCC with center head, mixup": ("pocc-center", "mixup"),
    "POCC with center head, CutMix": ("pocc-center", "cutmix"),
    LINEAR: ("auto", "none"),
}


def mixing_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every network on one split, judged on calibration and test items by all votes."""
    data = CROWD_SETS[cell](folders, seed)
    X, new = data.features(data.train, data.others)
    labels = cl.from_votes(data.counts[data.train])
    judged = data.judged[data.others]
    votes = torch.from_numpy(judged / judged.sum(1, keepdims=True))
    right = torch.from_numpy(data.truth[data.others])
    for learner, (method, augment) in MIXED.items():
        clf = cl.CredalClassifier(method, augment=augment, random_state=seed, device="cpu")
        probs = torch.from_numpy(np.asarray(clf.fit(X, labels).predict_proba(new))).double()
        for metric, value in scores_of(probs, right, votes):
            yield "mixing", cell, learner, seed, metric, value
