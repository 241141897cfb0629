"""Lung nodules rated by radiologists, as a task."""

import numpy as np
import torch

from credalearn.app.annotations.agreement import majority
from credalearn.app.nodules import BESIDE, CLASSES, load_nodules
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.task import Task


def lidc(folders: DataFolders, limit: int | None = None) -> Task:  # noqa: ARG001
    """The nodules of three in five patients, to train on; a majority is the true class to test."""
    nodules = load_nodules()
    patient, counts = nodules["patient"].to_numpy(), nodules.select(CLASSES).to_numpy(order="c")
    patients = np.unique(patient)
    shuffled = np.random.default_rng(0).permutation(patients)
    learned = np.isin(patient, shuffled[: len(patients) * 3 // 5])
    train, voted = (np.flatnonzero(mask)[:limit] for mask in (learned, ~learned))
    test = np.flatnonzero(~learned & (majority(counts) >= 0))[:limit]
    features = torch.from_numpy(nodules.drop(BESIDE).to_numpy(order="c")).float()
    votes, top = torch.from_numpy(counts), torch.from_numpy(counts.argmax(1))
    return Task(
        name="lidc",
        classes=CLASSES,
        train_inputs=features[train],
        train_y=top[train],
        test_inputs=features[test],
        test_y=top[test],
        train_counts=votes[train],
        voted_inputs=features[voted],
        voted_counts=votes[voted],
    )
