"""CIFAR-10 and CIFAR-100, from the authors' binary files, and the votes of people on CIFAR-10.

The paper says "80:20": we read it as 48,000 and 12,000 of the pooled images, by one permutation for
all methods and seeds. It trains on all of CIFAR-10H (Peterson et al., 2019), so that no image with
many votes is left to compare predictions with; our tasks hold some back, or use CIFAR-10N (Wei et
al., 2022). Shapes: N images, K = 10 classes.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn_experiments.data.folders import DataFolders, naming, read_verified, refuse
from credalearn_experiments.data.task import Loader, Task
from credalearn_experiments.data.teachers import teacher_features

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_PIXELS = 3 * 32 * 32
_GET = "unpack https://www.cs.toronto.edu/~kriz/{}-binary.tar.gz in the data folder"

_GET_10H = (
    "put cifar10h-counts.npy from https://github.com/jcpeterson/cifar-10h into cifar10h/ "
    "of the data folder"
)
_GET_10N = (
    "get CIFAR-10_human.pt from https://github.com/UCSC-REAL/cifar-10-100n, open it with torch "
    "and write its arrays with numpy.savez as cifar10n/cifar10n.npz in the data folder"
)
_NAMES_10N = ("clean_label", "aggre_label", "worse_label", *(f"random_label{n}" for n in (1, 2, 3)))
# Of the labels as bytes, one after the other: the archive around them is the user's own.
_SHA256_10N = "e14cd65ab126cbc76931e583d779c39e41ca4cdc91320f957d420e0777099268"


Pair = tuple[Tensor, Tensor]  # images, or features, and classes or votes
Part = Callable[[DataFolders], Pair]


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


def read_cifar10(batch: str, folders: DataFolders) -> Pair:
    """Images (uint8, shape (N, 3, 32, 32)) and labels (int64, shape (N,)) of one batch."""
    name, get = f"cifar-10-batches-bin/{batch}.bin", _GET.format("cifar-10")
    return _read_binary(name, folders, labels=1, get=get)


def split_in_two(items: int, first: int) -> tuple[Tensor, Tensor]:
    """The first so many of ``numpy.random.default_rng(0).permutation(items)``, and the rest."""
    order = torch.from_numpy(np.random.default_rng(0).permutation(items))
    return order[:first], order[first:]


def _read_binary(name: str, folders: DataFolders, *, labels: int, get: str) -> Pair:
    """Images and the last of so many labels that are before each image."""
    path = folders.find(name, what="a file of CIFAR", get=get)
    content = read_verified(path, get=get)
    with naming(path, "a batch of CIFAR", get=get):
        rows = torch.from_numpy(
            np.frombuffer(content, np.uint8).reshape(-1, labels + _PIXELS).copy()
        )
    return rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, labels - 1].long()


def _pooled(name: str, classes: tuple[str, ...], parts: list[Pair], limit: int | None) -> Task:
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


def _people(name: str, learned: Part, voted: Part | None = None) -> Loader:
    """Training on images with votes; test: ``data_batch_5`` with its true classes."""

    def load(folders: DataFolders, limit: int | None = None) -> Task:
        train, test = learned(folders), read_cifar10("data_batch_5", folders)
        return _task(name, limit, train, test, voted(folders) if voted else None)

    return load


def _h(folders: DataFolders, part: int | None = None) -> Pair:
    """All of CIFAR-10H, or a part of it: four fifths, or the fifth that is held back."""
    images, _, counts = read_cifar10h(folders)
    rows = slice(None) if part is None else split_in_two(len(counts), len(counts) * 4 // 5)[part]
    return images[rows], counts[rows]


def _n(folders: DataFolders, *, batches: Sequence[int]) -> Pair:
    """Batches of CIFAR-10 with the three votes of CIFAR-10N."""
    images = [read_cifar10(f"data_batch_{number}", folders)[0] for number in batches]
    votes = cifar10n_votes(folders).chunk(5)
    return torch.cat(images), torch.cat([votes[number - 1] for number in batches])


def cifar10h_features(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H for machines without a GPU: 64 features of the published ResNet-20 per image.

    That network has seen CIFAR-10's training images, so all items are test images: training on
    6,000, the other 4,000 are for testing, with their true classes and with their votes.
    """
    images, y, counts = read_cifar10h(folders)
    train, test = (rows[:limit] for rows in split_in_two(len(counts), len(counts) * 3 // 5))
    features = teacher_features(images[torch.cat([train, test])], folders)
    learned, rest = (features[: len(train)], counts[train]), features[len(train) :]
    return _task("cifar10h-features", limit, learned, (rest, y[test]), (rest, counts[test]))


def _task(name: str, limit: int | None, train: Pair, test: Pair, voted: Pair | None) -> Task:
    """A task of inputs with votes, inputs with true classes, and held-out inputs with votes."""
    inputs, counts = (part[:limit] for part in train)
    voted_inputs, voted_counts = (part[:limit] for part in voted) if voted else (None, None)
    return Task(
        name=name,
        classes=CIFAR10_CLASSES,
        train_inputs=inputs,
        train_y=counts.argmax(1),  # torch documents the first of equal ones
        train_counts=counts,
        test_inputs=test[0][:limit],
        test_y=test[1][:limit],
        voted_inputs=voted_inputs,
        voted_counts=voted_counts,
    )


_FIRST, _LAST = partial(_n, batches=[1]), partial(_n, batches=[5])
_PARTS: dict[str, tuple[Part, ...]] = {
    # As the paper splits it: training on CIFAR-10's test images.
    "cifar10h": (_h,),
    # A fifth of the images is held back, with their votes.
    "cifar10h-voted": (partial(_h, part=0), partial(_h, part=1)),
    # On the test images, the votes of three other people, CIFAR-10N's.
    "cifar10h-new-votes": (_h, _LAST),
    # Three votes per image, compared with CIFAR-10H's 51 by other people on another platform.
    "cifar10n": (_FIRST, _h),
    # Three votes per image, compared with three votes on other images.
    "cifar10n-voted": (_FIRST, _LAST),
    # Three votes on the other 40,000 training images.
    "cifar10n-most": (partial(_n, batches=[1, 2, 3, 4]),),
}
PEOPLE = {name: _people(name, *parts) for name, parts in _PARTS.items()} | {
    "cifar10h-features": cifar10h_features
}
"""Loaders of tasks on CIFAR-10 with people's votes."""


def cifar10n_votes(folders: DataFolders) -> Tensor:
    """Votes by class of CIFAR-10N's three people, in training order, int64, shape (50000, 10)."""
    path = folders.find("cifar10n/cifar10n.npz", what="CIFAR-10N", get=_GET_10N)
    with naming(path, "the labels of CIFAR-10N", get=_GET_10N):
        # Opened here, since NumPy leaves a damaged archive open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            labels = np.stack([file[name].astype(np.int64) for name in _NAMES_10N])
        votes = one_hot(torch.from_numpy(labels[3:]), 10).sum(0)
    digest = hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest()
    if digest != _SHA256_10N:
        refuse(path, f"the sha256 of its labels is {digest}, not {_SHA256_10N}", get=_GET_10N)
    return votes


def read_cifar10h(folders: DataFolders) -> tuple[Tensor, Tensor, Tensor]:
    """CIFAR-10's test images, their true classes, and CIFAR-10H's votes by class, int64 (N, 10)."""
    path = folders.find("cifar10h/cifar10h-counts.npy", what="CIFAR-10H", get=_GET_10H)
    content = read_verified(path, get=_GET_10H)
    images, y = read_cifar10("test_batch", folders)
    with naming(path, "the votes of CIFAR-10H", get=_GET_10H):
        counts = torch.from_numpy(np.load(io.BytesIO(content), allow_pickle=False))
    return images, y, counts
