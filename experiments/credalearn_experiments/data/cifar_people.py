"""What people said about CIFAR-10's images: CIFAR-10H and CIFAR-10N.

Shapes: N images, K = 10 classes.
"""

import hashlib
import io
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import CIFAR10_CLASSES
from credalearn_experiments.data.cifar_files import CIFAR10, read_batch
from credalearn_experiments.data.files import naming, read_verified, refuse
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.task import Task

_GET_10H = (
    "put cifar10h-counts.npy from https://github.com/jcpeterson/cifar-10h into cifar10h/ "
    "of the data folder"
)
_GET_10N = (
    "get CIFAR-10_human.pt from https://github.com/UCSC-REAL/cifar-10-100n, open it with torch "
    "and write its arrays with numpy.savez as cifar10n/cifar10n.npz in the data folder"
)
_NAMES_10N = (
    *("clean_label", "aggre_label", "worse_label"),
    *("random_label1", "random_label2", "random_label3"),
)
# Of the labels as bytes, one after the other: the archive around them is the user's own.
_SHA256_10N = "e14cd65ab126cbc76931e583d779c39e41ca4cdc91320f957d420e0777099268"


def cifar10h(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H (Peterson et al., 2019) as the paper splits it.

    Training: CIFAR-10's 10,000 test images with the shares of about 51 votes each. Test: training
    images 40,000 to 49,999, that is ``data_batch_5``, with their true classes. Training classes are
    the top of the votes, the lowest class on ties.
    """
    soft = cifar10h_shares(folders)
    train_images, _ = read_batch(CIFAR10, "test_batch", folders)
    check_as_many(soft, train_images)
    test_images, test_y = read_batch(CIFAR10, "data_batch_5", folders)
    return Task(
        name="cifar10h",
        classes=CIFAR10_CLASSES,
        train_inputs=train_images[:limit],
        train_y=top_class(soft)[:limit],
        train_soft=soft[:limit],
        test_inputs=test_images[:limit],
        test_y=test_y[:limit],
    )


def cifar10h_shares(folders: DataFolders) -> Tensor:
    """Shares of the votes in test order, float64, shape (10000, 10).

    From the counts if they are there, otherwise from the published probabilities.

    Raises:
        CredalError: If the file is missing or damaged, or a row has a negative value or no vote.
    """
    names = ("cifar10h/cifar10h-counts.npy", "cifar10h/cifar10h-probs.npy")
    shares = torch.from_numpy(_read_10h(folders, *names).astype(np.float64))
    return shares / shares.sum(1, keepdim=True)


def cifar10h_counts(folders: DataFolders) -> Tensor:
    """Votes by class in test order, int64, shape (10000, 10).

    Raises:
        CredalError: If the file of counts is missing or damaged; probabilities do not say how many
            people voted.
    """
    votes = _read_10h(folders, "cifar10h/cifar10h-counts.npy")
    counts = votes.astype(np.int64)
    if (counts != votes).any():
        raise CredalError(f"the counts of CIFAR-10H must be whole numbers. To fix: {_GET_10H}.")
    return torch.from_numpy(counts)


def cifar10n_votes(folders: DataFolders) -> Tensor:
    """Votes by class of CIFAR-10N's three people (Wei et al., 2022), int64, shape (50000, 10).

    In training order, from ``cifar10n/cifar10n.npz``. The authors' own ``.pt`` file is not read: it
    can run code.

    Raises:
        CredalError: If the file is missing or damaged.
    """
    path = folders.find("cifar10n/cifar10n.npz", what="CIFAR-10N", get=_GET_10N)
    with naming(path, "the labels of CIFAR-10N", get=_GET_10N):
        # Opened here, since NumPy leaves a damaged archive open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            labels = np.stack([file[name].astype(np.int64) for name in _NAMES_10N])
        if labels.ndim != 2 or labels.min() < 0 or labels.max() > 9:
            raise CredalError("its labels must be six arrays of classes 0 to 9")
    digest = hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest()
    if digest != _SHA256_10N:
        difference = f"the sha256 of its labels is {digest}, not {_SHA256_10N}"
        refuse(path, difference, get=_GET_10N)
    people = torch.from_numpy(labels[3:])
    return torch.nn.functional.one_hot(people, 10).sum(0)


def check_as_many(votes: Tensor, images: Tensor) -> None:
    """Refuse votes of CIFAR-10H that are not one row per image of CIFAR-10's test batch."""
    if len(votes) != len(images):
        raise CredalError(
            f"CIFAR-10H must have votes for every image of CIFAR-10's test_batch; it has "
            f"{len(votes)} rows for {len(images)} images. To fix: {_GET_10H}."
        )


def top_class(votes: Tensor) -> Tensor:
    """The class with most votes in each row, the lowest on ties, shape (N,)."""
    return votes.argmax(1)  # torch documents the first of equal ones


def _read_10h(folders: DataFolders, *names: str) -> NDArray[Any]:
    """A file of CIFAR-10H: one row per image, none negative, no row without a vote."""
    path = folders.find(*names, what="CIFAR-10H", get=_GET_10H)
    content = read_verified(path, get=_GET_10H)
    with naming(path, "the votes of CIFAR-10H", get=_GET_10H):
        votes: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
        if votes.ndim != 2 or votes.shape[1] != 10 or votes.dtype.kind not in "iuf":
            raise CredalError(f"it has {votes.dtype} of shape {votes.shape}")
        ok = (votes >= 0).all(1) & (votes.sum(1) > 0) & np.isfinite(votes).all(1)
        if not ok.all():
            row = int(np.flatnonzero(~ok)[0])
            raise CredalError(f"row {row} is {votes[row].tolist()}")
    return votes
