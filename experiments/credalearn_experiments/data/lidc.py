"""Lung nodules rated by radiologists, as a task."""

import numpy as np
import torch

from credalearn.app.nodules import CLASSES, load_nodules
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.task import Task


def lidc(folders: DataFolders, limit: int | None = None) -> Task:  # noqa: ARG001
    """The nodules of three in five patients, to train on; a majority is the true class to test."""
    nodules = load_nodules()
    patients = np.unique(nodules.patients)
    shuffled = np.random.default_rng(0).permutation(patients)
    learned = np.isin(nodules.patients, shuffled[: len(patients) * 3 // 5])
    train, voted = (np.flatnonzero(mask)[:limit] for mask in (learned, ~learned))
    test = np.flatnonzero(~learned & nodules.has_majority)[:limit]
    features = torch.from_numpy(nodules.features).float()
    votes, top = torch.from_numpy(nodules.votes), torch.from_numpy(nodules.majority)
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
