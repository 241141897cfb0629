"""CIFAR-10 with people's votes: CIFAR-10H (Peterson et al., 2019), CIFAR-10N (Wei et al., 2022).

The paper trains on all of CIFAR-10H, so that no image with many votes is left to compare
predictions with. Our tasks hold some back. Shapes: N images, K = 10 classes.
"""

import hashlib
import io

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn_experiments.data.cifar import CIFAR10_CLASSES, read_cifar10, split_in_two
from credalearn_experiments.data.folders import DataFolders, naming, read_verified, refuse
from credalearn_experiments.data.task import Task
from credalearn_experiments.data.teachers import teacher_features

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

Pair = tuple[Tensor, Tensor]


def cifar10h(folders: DataFolders, limit: int | None = None) -> Task:
    """As the paper splits it: training on CIFAR-10's test images, test on ``data_batch_5``."""
    images, _, counts = read_cifar10h(folders)
    return _task("cifar10h", (images[:limit], counts[:limit]), _test(folders, limit))


def cifar10h_voted(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H with a fifth of its images held back, with their votes; test as in ``cifar10h``."""
    images, _, counts = read_cifar10h(folders)
    train, voted = (rows[:limit] for rows in split_in_two(len(counts), len(counts) * 4 // 5))
    learned, held_out = (images[train], counts[train]), (images[voted], counts[voted])
    return _task("cifar10h-voted", learned, _test(folders, limit), held_out)


def cifar10h_new_votes(folders: DataFolders, limit: int | None = None) -> Task:
    """As ``cifar10h``, with the votes of three other people, CIFAR-10N's, on its test images."""
    images, _, counts = read_cifar10h(folders)
    test, votes = _test(folders, limit), cifar10n_votes(folders)[-len(images) :][:limit]
    learned = (images[:limit], counts[:limit])
    return _task("cifar10h-new-votes", learned, test, (test[0], votes))


def cifar10n(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10N's three votes per image, compared with CIFAR-10H's 51.

    Training: ``data_batch_1`` with the votes of three people. Test: as in ``cifar10h``. Voted:
    CIFAR-10's test images with the votes of CIFAR-10H, by other people on another platform.
    """
    images, _, counts = read_cifar10h(folders)
    train, _ = read_cifar10("data_batch_1", folders)
    learned = (train[:limit], cifar10n_votes(folders)[: len(train)][:limit])
    return _task("cifar10n", learned, _test(folders, limit), (images[:limit], counts[:limit]))


def cifar10n_voted(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10N's three votes per image, compared with three votes on other images.

    Training: as in ``cifar10n``. Test: ``data_batch_5``. Voted: the same, with three votes each.
    """
    train, _ = read_cifar10("data_batch_1", folders)
    test, votes = _test(folders, limit), cifar10n_votes(folders)
    learned = (train[:limit], votes[: len(train)][:limit])
    held_out = (test[0], votes[4 * len(train) :][:limit])
    return _task("cifar10n-voted", learned, test, held_out)


def cifar10n_most(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10N's three votes on the other 40,000 training images. Test: ``data_batch_5``."""
    batches = [read_cifar10(f"data_batch_{number}", folders)[0] for number in range(1, 5)]
    images = torch.cat(batches)[:limit]
    learned = (images, cifar10n_votes(folders)[: len(images)])
    return _task("cifar10n-most", learned, _test(folders, limit))


def cifar10h_features(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H for machines without a GPU: rows of 64 features instead of images.

    The features are the inputs of the classifier of the published ResNet-20 teacher. It was trained
    on CIFAR-10's training images, which would be dishonest as test images: all items are CIFAR-10's
    test images. Training: 6,000 with their votes. Test: the other 4,000 with their true classes.
    Voted: the same 4,000 with their votes.
    """
    images, y, counts = read_cifar10h(folders)
    train, test = (rows[:limit] for rows in split_in_two(len(counts), len(counts) * 3 // 5))
    features = teacher_features(images[torch.cat([train, test])], folders)
    learned, rest = (features[: len(train)], counts[train]), features[len(train) :]
    return _task("cifar10h-features", learned, (rest, y[test]), (rest, counts[test]))


def _test(folders: DataFolders, limit: int | None) -> Pair:
    images, y = read_cifar10("data_batch_5", folders)
    return images[:limit], y[:limit]


def _task(
    name: str, train: Pair, test: Pair, voted: Pair | tuple[None, None] = (None, None)
) -> Task:
    """A task of inputs with votes, inputs with true classes, and held-out inputs with votes."""
    return Task(
        name=name,
        classes=CIFAR10_CLASSES,
        train_inputs=train[0],
        train_y=train[1].argmax(1),  # torch documents the first of equal ones
        train_counts=train[1],
        test_inputs=test[0],
        test_y=test[1],
        voted_inputs=voted[0],
        voted_counts=voted[1],
    )


def cifar10n_votes(folders: DataFolders) -> Tensor:
    """Votes by class of CIFAR-10N's three people, in training order, int64, shape (50000, 10).

    From ``cifar10n/cifar10n.npz``. The authors' own ``.pt`` file is not read: it can run code.
    """
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
