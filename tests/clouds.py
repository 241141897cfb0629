"""Items in separate clouds, one per class, with the votes of noisy annotators."""

from functools import cache
from typing import Any

import numpy as np
from torch import nn

import credalearn as cl


@cache
def clouds(num_classes: int = 3, num_items: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items (N, 5), their classes (N,), and the counts (N, K) of five votes per item."""
    random = np.random.default_rng(num_classes)
    y = np.arange(num_items) % num_classes
    centers = 6 * random.normal(size=(num_classes, 5))
    X = random.normal(size=(num_items, 5)) + centers[y]
    wrong = random.random((num_items, 5)) < 0.2
    votes = np.where(wrong, random.integers(num_classes, size=(num_items, 5)), y[:, None])
    return X, y, (votes[:, :, None] == np.arange(num_classes)).sum(1)


def tiny() -> nn.Module:
    """A backbone of one's own, for tables of five."""
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU())


def classifier(method: Any = "pocc", **options: Any) -> cl.CredalClassifier:
    """A classifier that trains in a moment, on the CPU: its results are the same bit for bit."""
    defaults = {"epochs": 3, "batch_size": 32, "learning_rate": 1e-2, "device": "cpu"}
    return cl.CredalClassifier(method, **{**defaults, **options})
