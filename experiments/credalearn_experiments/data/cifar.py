"""CIFAR-10 and CIFAR-100, from the authors' binary files, as tasks with labels that are made.

Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009. The paper says "80:20".
We read it as 48,000 and 12,000 of the pooled 60,000 images, by one permutation for all methods and
seeds.
"""

import numpy as np
import torch
from torch import Tensor

from credalearn_experiments.data.folders import DataFolders, naming, read_verified
from credalearn_experiments.data.task import Task

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_PIXELS = 3 * 32 * 32
_GET = "unpack https://www.cs.toronto.edu/~kriz/{}-binary.tar.gz in the data folder"


def cifar10(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10, pooled and split 80:20."""
    parts = [read_cifar10(batch, folders) for batch in CIFAR10_BATCHES]
    return _pooled("cifar10", CIFAR10_CLASSES, parts, limit)


def cifar100(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-100 with its 100 fine classes, pooled and split 80:20."""
    get = _GET.format("cifar-100")
    # Before each image a coarse and a fine label.
    parts = [
        _read_binary(f"cifar-100-binary/{name}.bin", folders, labels=2, get=get)
        for name in ("train", "test")
    ]
    classes = tuple(f"class {number}" for number in range(100))
    return _pooled("cifar100", classes, parts, limit)


def read_cifar10(batch: str, folders: DataFolders) -> tuple[Tensor, Tensor]:
    """Images (uint8, shape (N, 3, 32, 32)) and labels (int64, shape (N,)) of one batch."""
    name, get = f"cifar-10-batches-bin/{batch}.bin", _GET.format("cifar-10")
    return _read_binary(name, folders, labels=1, get=get)


def split_in_two(items: int, first: int) -> tuple[Tensor, Tensor]:
    """The first so many of ``numpy.random.default_rng(0).permutation(items)``, and the rest."""
    order = torch.from_numpy(np.random.default_rng(0).permutation(items))
    return order[:first], order[first:]


def _read_binary(
    name: str, folders: DataFolders, *, labels: int, get: str
) -> tuple[Tensor, Tensor]:
    """Images and the last of so many labels that are before each image."""
    path = folders.find(name, what="a file of CIFAR", get=get)
    content = read_verified(path, get=get)
    with naming(path, "a batch of CIFAR", get=get):
        rows = torch.from_numpy(
            np.frombuffer(content, np.uint8).reshape(-1, labels + _PIXELS).copy()
        )
    return rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, labels - 1].long()


def _pooled(
    name: str, classes: tuple[str, ...], parts: list[tuple[Tensor, Tensor]], limit: int | None
) -> Task:
    images, y = (torch.cat(each) for each in zip(*parts, strict=True))
    train, test = (rows[:limit] for rows in split_in_two(len(y), len(y) * 4 // 5))
    return Task(
        name=name,
        classes=classes,
        train_inputs=images[train],
        train_y=y[train],
        test_inputs=images[test],
        test_y=y[test],
    )
