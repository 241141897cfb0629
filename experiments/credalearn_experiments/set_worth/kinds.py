"""Kinds of imprecise labels: votes, statements, teachers and smoothing, learned with and without.

Each precise rival learns from the same labels made precise; networks have one hidden layer. And the
metrics that all classifiers are judged by. Shapes: N items, K classes.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn._targets import truth_of
from credalearn._temperature import log_probs
from credalearn.metrics import accuracy, auarc, ece
from credalearn_experiments.data.cifar import read_cifar10h
from credalearn_experiments.data.crowd_sets import (
    CROWD_SETS,
    CrowdSet,
    read_cifar10s,
    stated_sets,
)
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.teachers import teacher_logits
from credalearn_experiments.evaluation import tempered_ece, tempered_mean
from credalearn_experiments.results.table import Column
from credalearn_experiments.set_worth.widths import guaranteed_sets
from credalearn_experiments.studies import Score

METRICS = (
    Column("accuracy"),
    Column("AUARC"),
    Column("ECE", better="lower"),
    Column("ECE, tempered", better="lower"),
    Column("cross-entropy to people", better="lower", percent=False, digits=3),
    Column("cross-entropy, tempered", better="lower", percent=False, digits=3),
)
MIXES: dict[str, Any] = {"": "none", ", mixup": "mixup", ", CutMix": "cutmix"}
CENTER, LINEAR = "POCC with center head", "default learner, linear"

# Method, augmentation and labels: the sets, their centers, or the top classes of the centers.
Learners = dict[str, tuple[str, Any, str]]
PRECISE: Learners = {
    **{f"softmax{mix}": ("softmax", augment, "centers") for mix, augment in MIXES.items()},
    "softmax, top classes": ("softmax", "none", "top"),
    "default learner, centers": ("auto", "none", "centers"),
    "default learner, top classes": ("auto", "none", "top"),
}
CREDAL: Learners = {
    "POCC": ("pocc", "none", "sets"),
    **{f"{CENTER}{mix}": ("pocc-center", augment, "sets") for mix, augment in MIXES.items()},
    "default learner, sets": ("auto", "none", "sets"),
}

Labels = Callable[[CrowdSet, DataFolders], cl.CredalSet]


def _voted(data: CrowdSet, _: DataFolders) -> cl.CredalSet:
    return data.labels


def _stated(data: CrowdSet, folders: DataFolders) -> cl.CredalSet:
    people = read_cifar10s("human_soft_labels_data", folders)
    return stated_sets([people[str(image)] for image in data.train])


def _taught(data: CrowdSet, folders: DataFolders) -> cl.CredalSet:
    return cl.from_teacher(_teacher(folders)[data.train], temperature=2.5)


@cache
def _teacher(folders: DataFolders) -> Tensor:
    images, device = read_cifar10h(folders)[0], torch.device("cpu")
    return teacher_logits("shufflenetv2", images, folders, dataset="cifar10", device=device)


def _smoothed(epsilon: float) -> Labels:
    return lambda data, _: cl.smooth(data.truth[data.train], epsilon, data.counts.shape[1])


KINDS: dict[str, tuple[str, Labels]] = {
    "three votes": ("CIFAR-10H, 3 votes", _voted),
    "51 votes": ("CIFAR-10H, all votes", _voted),
    "radiologists": ("LIDC", _voted),
    "statements": ("CIFAR-10S", _stated),
    "a teacher": ("CIFAR-10H, all votes", _taught),
    "smoothing 0.1": ("CIFAR-10H, all votes", _smoothed(0.1)),
    "smoothing 0.2": ("CIFAR-10H, all votes", _smoothed(0.2)),
}


def kind_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Every learner on one kind of labels, judged by all votes on calibration and test items.

    All their sets are calibrated alike, with the best scale: what is left is what a set adds.
    """
    name, make = KINDS[cell]
    data = CROWD_SETS[name](folders, random_state)
    (X, new), sets, credal = data.inputs, guaranteed_sets(data, data.judged), make(data, folders)
    top = truth_of(credal, None, np.arange(credal.num_classes))
    labels = {"sets": credal, "centers": cl.precise(credal.reference), "top": cl.precise(top)}
    boxes = {}
    for learner, (method, augment, own) in (PRECISE | CREDAL).items():
        clf = cl.CredalClassifier(method, augment=augment, random_state=random_state, device="cpu")
        clf.fit(X, labels[own], groups=data.train_groups)
        boxes[learner] = clf.predict_credal(new, meaning="votes")
        probs, said = clf.predict_credal(new).probs.double(), boxes[learner].probs.double()
        yield from scores_of(learner, probs, *data.answers, said)
    yield from sets.scores(boxes, scaled=boxes)


def scores_of(
    learner: str, probs: Tensor, right: Tensor, votes: Tensor, said: Tensor | None = None
) -> Iterator[Score]:
    """Each metric of a learner, given true classes (N,), −1 for none, and people's shares (N, K).

    ``said`` are its probabilities of votes, where they are others than those of the truth.
    AUARC defers by 1 − top probability. *Tempered*: each half of the items by the other half.
    """
    known, said = right >= 0, probs if said is None else said
    sure, classes = probs[known], right[known]

    def cross_entropy(found: Tensor, rows: Tensor | slice) -> float:
        return float(-(votes[rows] * log_probs(found)).sum(1).mean())

    values = (
        accuracy(sure, classes),
        auarc(sure, classes, 1 - sure.amax(1)),
        ece(sure, classes),
        tempered_ece(sure, classes),
        cross_entropy(said, slice(None)),
        tempered_mean(said, votes, cross_entropy),
    )
    named = zip(METRICS, values, strict=True)
    return ((learner, column.name, value) for column, value in named)
