"""What people said about CIFAR-10's images: CIFAR-10H and CIFAR-10N.

Shapes: N images, K = 10 classes.
"""

import hashlib
import io
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import CIFAR10_CLASSES
from credalearn_experiments.data.cifar_files import CIFAR10, read_batch
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.reading import naming, read_verified, refuse
from credalearn_experiments.data.task import Task

_GET_10H = (
    "put cifar10h-counts.npy from https://github.com/jcpeterson/cifar-10h into cifar10h/ "
    "of the data folder"
)
_GET_10N = (
    "get CIFAR-10_human.pt from https://github.com/UCSC-REAL/cifar-10-100n, open it with torch "
    "and write the arrays that it holds by numpy.savez as cifar10n/cifar10n.npz in the data folder"
)
_NAMES_10N = (
    *("clean_label", "aggre_label", "worse_label"),
    *("random_label1", "random_label2", "random_label3"),
)
# Of the labels as bytes, one after the other: the archive around them is the user's own.
_SHA256_10N = "e14cd65ab126cbc76931e583d779c39e41ca4cdc91320f957d420e0777099268"


def cifar10h(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H (Peterson et al., 2019) as the paper splits it.

    Training: CIFAR-10's 10,000 test images with the shares of about 51 people's votes each.
    Test: training images 40,000 to 49,999, that is ``data_batch_5``, with their true classes. No
    other batch is read. Training classes are the top of the votes, the lowest class on ties.

    Args:
        folders: Where the files lie.
        limit: At most so many training and so many test images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged, or votes and images differ in number.
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
    """The shares of people's votes in test order, float64, shape (10000, 10).

    From the counts where they are at hand, else from the published probabilities; rows are
    divided by their sums.

    Raises:
        CredalError: If the file is missing or damaged, or a row has a negative value or no vote.
    """
    path = folders.find(
        "cifar10h/cifar10h-counts.npy",
        "cifar10h/cifar10h-probs.npy",
        what="CIFAR-10H",
        get=_GET_10H,
    )
    shares = torch.from_numpy(_read_10h(path).astype(np.float64))
    return shares / shares.sum(1, keepdim=True)


def cifar10h_counts(folders: DataFolders) -> Tensor:
    """How many people chose each class, in test order, int64, shape (10000, 10).

    Raises:
        CredalError: If there are only probabilities, which do not say how many people voted; or if
            the file is missing or damaged.
    """
    name = "cifar10h/cifar10h-counts.npy"
    probs = folders.look("cifar10h/cifar10h-probs.npy")
    if folders.look(name) is None and probs is not None:
        raise CredalError(
            f"CIFAR-10H's votes are needed as counts, {name}; {probs} holds probabilities, which "
            f"do not say how many people voted. To fix: {_GET_10H}."
        )
    path = folders.find(name, what="CIFAR-10H", get=_GET_10H)
    votes = _read_10h(path)
    counts = votes.astype(np.int64)
    wrong = np.flatnonzero((votes != counts).any(1))
    with naming(path, "the votes of CIFAR-10H", get=_GET_10H):
        if len(wrong):
            held = votes[wrong[0]].tolist()
            raise CredalError(f"counts are whole numbers; row {wrong[0]} is {held}")
    return torch.from_numpy(counts)


def cifar10n_labels(folders: DataFolders) -> dict[str, Tensor]:
    """CIFAR-10N's labels (Wei et al., 2022) in training order, each int64 of shape (50000,).

    ``random_label1`` to ``random_label3`` are three people's, ``aggre_label`` their majority,
    ``worse_label`` a wrong one where there is any, ``clean_label`` the true class.

    Read from ``cifar10n/cifar10n.npz``. The authors' own ``.pt`` file is not read: it can run code.

    Raises:
        CredalError: If the file is missing or damaged.
    """
    path = folders.find("cifar10n/cifar10n.npz", what="CIFAR-10N", get=_GET_10N)
    with naming(path, "the labels of CIFAR-10N", get=_GET_10N):
        # Opened here, since numpy leaves a damaged archive open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            labels = {name: file[name] for name in _NAMES_10N}
        items = len(labels["clean_label"])
        for name, values in labels.items():
            _check_labels(name, values, items)
    said = hashlib.sha256(b"".join(labels[name].astype(np.uint8).tobytes() for name in _NAMES_10N))
    if said.hexdigest() != _SHA256_10N:
        refuse(
            path, f"the sha256 of its labels is {said.hexdigest()}, not {_SHA256_10N}", get=_GET_10N
        )
    return {name: torch.from_numpy(values.astype(np.int64)) for name, values in labels.items()}


def cifar10n_votes(folders: DataFolders) -> Tensor:
    """How many of CIFAR-10N's three people chose each class, int64, shape (50000, 10).

    Raises:
        CredalError: If the file is missing or damaged.
    """
    labels = cifar10n_labels(folders)
    people = torch.stack([labels[f"random_label{person}"] for person in (1, 2, 3)], dim=1)
    return torch.nn.functional.one_hot(people, 10).sum(1)


def check_as_many(votes: Tensor, images: Tensor) -> None:
    """Refuse votes of CIFAR-10H that are not one row an image of CIFAR-10's test batch."""
    if len(votes) != len(images):
        raise CredalError(
            f"CIFAR-10H must have votes for every image of CIFAR-10's test_batch; it has "
            f"{len(votes)} rows for {len(images)} images. To fix: {_GET_10H}."
        )


def top_class(votes: Tensor) -> Tensor:
    """The class with most votes in each row, the lowest on ties, shape (N,).

    Example:
        >>> top_class(torch.tensor([[1, 2, 2], [3, 0, 3]])).tolist()
        [1, 0]
    """
    return votes.argmax(1)  # of equal ones torch promises the first


def _read_10h(path: Path) -> NDArray[np.generic]:
    """The numbers of a file of CIFAR-10H, a row an image, none negative, no row without a vote."""
    content = read_verified(path, get=_GET_10H)
    with naming(path, "the votes of CIFAR-10H", get=_GET_10H):
        votes = np.load(io.BytesIO(content), allow_pickle=False)
        if votes.ndim != 2 or votes.shape[1] != 10 or votes.dtype.kind not in "iuf":
            raise CredalError(
                f"numbers of shape (10000, 10) are wanted; it has {votes.dtype} of shape "
                f"{votes.shape}"
            )
        ok = (votes >= 0).all(1) & (votes.sum(1) > 0) & np.isfinite(votes).all(1)
        if not ok.all():
            row = int(np.flatnonzero(~ok)[0])
            raise CredalError(
                f"each row needs a vote and no negative; row {row} is {votes[row].tolist()}"
            )
    found: NDArray[np.generic] = votes
    return found


def _check_labels(name: str, values: NDArray[np.generic], items: int) -> None:
    if values.shape != (items,) or values.dtype.kind not in "iu" or not items:
        raise CredalError(
            f"{name} must hold a class for each of {items} images; it has {values.dtype} of shape "
            f"{values.shape}"
        )
    classes = values.astype(np.int64)
    if classes.min() < 0 or classes.max() > 9:
        row = int(np.flatnonzero((classes < 0) | (classes > 9))[0])
        raise CredalError(f"classes go from 0 to 9; {name} has {classes[row]} at image {row}")
