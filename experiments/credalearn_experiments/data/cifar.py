"""CIFAR-10 and CIFAR-100 as the paper's tasks, with labels that are made (smoothing, teacher).

The paper says "80:20". We read it as 48,000 and 12,000 of the pooled 60,000 images, by one
permutation that all methods and seeds share.
"""

import numpy as np
import torch

from credalearn_experiments.data.cifar_files import (
    CIFAR10,
    CIFAR100,
    CifarLayout,
    cifar100_classes,
    read_batch,
)
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.task import Task

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def cifar10(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10, pooled and split 80:20 by ``split_80_20``.

    Args:
        folders: Where the files lie, in either layout.
        limit: At most so many training and so many test images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged.
    """
    return _pooled("cifar10", CIFAR10, CIFAR10_BATCHES, CIFAR10_CLASSES, folders, limit)


def cifar100(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-100 with its 100 fine classes, pooled and split 80:20 by ``split_80_20``.

    Args:
        folders: Where the files lie, in either layout.
        limit: At most so many training and so many test images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged.
    """
    classes = cifar100_classes(folders)
    return _pooled("cifar100", CIFAR100, ("train", "test"), classes, folders, limit)


def split_80_20(items: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which pooled images train and which test: the first 80 % of a permutation, and the rest.

    The permutation is ``numpy.random.default_rng(0).permutation(items)``, over the training
    images in their order and then the test images in theirs. It depends on nothing else.

    Example:
        >>> train, test = split_80_20(60_000)
        >>> len(train), len(test), train[:3].tolist()
        (48000, 12000, [4013, 23840, 29603])
    """
    return split_in_two(items, items * 4 // 5)


def split_in_two(items: int, first: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first so many of ``numpy.random.default_rng(0).permutation(items)``, and the rest.

    Example:
        >>> split_in_two(5, 3)
        (tensor([2, 4, 3]), tensor([0, 1]))
    """
    order = torch.from_numpy(np.random.default_rng(0).permutation(items))
    return order[:first], order[first:]


def _pooled(
    name: str,
    layout: CifarLayout,
    batches: tuple[str, ...],
    classes: tuple[str, ...],
    folders: DataFolders,
    limit: int | None,
) -> Task:
    parts = [read_batch(layout, batch, folders) for batch in batches]
    images = torch.cat([images for images, _ in parts])
    y = torch.cat([labels for _, labels in parts])
    train, test = (rows[:limit] for rows in split_80_20(len(y)))
    return Task(
        name=name,
        classes=classes,
        train_inputs=images[train],
        train_y=y[train],
        train_soft=None,
        test_inputs=images[test],
        test_y=y[test],
    )
