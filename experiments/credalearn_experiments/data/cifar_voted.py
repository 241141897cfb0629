"""CIFAR-10 with people's votes on the training images and on images that no network is trained on.

The paper trains on all of CIFAR-10H, so that no image with many votes is left to hold predictions
against. These tasks hold some back. Shapes: N images, K = 10 classes.
"""

import torch
from torch import Tensor

from credalearn_experiments.data.cifar import CIFAR10_CLASSES, split_80_20, split_in_two
from credalearn_experiments.data.cifar_files import CIFAR10, read_batch
from credalearn_experiments.data.cifar_people import (
    check_as_many,
    cifar10h_counts,
    cifar10n_votes,
    top_class,
)
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.task import Task
from credalearn_experiments.data.teachers import teacher_features


def cifar10h_voted(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H with a fifth of its images held back, votes and all.

    Training: 8,000 of CIFAR-10's test images, the first of ``split_80_20``, with their votes.
    Voted: the other 2,000, about 51 votes each. Test: training images 40,000 to 49,999 with their
    true classes, as in ``cifar10h``.

    Args:
        folders: Where the files lie.
        limit: At most so many training, test and voted images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged, or there are probabilities but no counts.
    """
    counts = cifar10h_counts(folders)
    images, _ = read_batch(CIFAR10, "test_batch", folders)
    check_as_many(counts, images)
    test_images, test_y = read_batch(CIFAR10, "data_batch_5", folders)
    train, voted = (rows[:limit] for rows in split_80_20(len(counts)))
    return Task(
        name="cifar10h-voted",
        classes=CIFAR10_CLASSES,
        **_with_votes(images[train], counts[train]),
        test_inputs=test_images[:limit],
        test_y=test_y[:limit],
        voted_inputs=images[voted],
        voted_counts=counts[voted],
    )


def cifar10n(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10N's three real votes an image (Wei et al., 2022), held against CIFAR-10H's 51.

    Training: CIFAR-10's training images 0 to 9,999, that is ``data_batch_1``, with the votes of
    three people. Test: training images 40,000 to 49,999. Voted: CIFAR-10's 10,000 test images with
    the votes of CIFAR-10H, by other people on another platform.

    Args:
        folders: Where the files lie.
        limit: At most so many training, test and voted images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged, or there are probabilities but no counts.
    """
    voted_counts = cifar10h_counts(folders)
    votes = cifar10n_votes(folders)
    train_images, _ = read_batch(CIFAR10, "data_batch_1", folders)
    test_images, test_y = read_batch(CIFAR10, "data_batch_5", folders)
    voted_images, _ = read_batch(CIFAR10, "test_batch", folders)
    check_as_many(voted_counts, voted_images)
    return Task(
        name="cifar10n",
        classes=CIFAR10_CLASSES,
        **_with_votes(train_images[:limit], votes[: len(train_images)][:limit]),
        test_inputs=test_images[:limit],
        test_y=test_y[:limit],
        voted_inputs=voted_images[:limit],
        voted_counts=voted_counts[:limit],
    )


def cifar10h_features(folders: DataFolders, limit: int | None = None) -> Task:
    """CIFAR-10H for machines without a GPU: rows of 64 features instead of images.

    The features are what the classifier of the published ResNet-20 teacher is given. It was
    trained on CIFAR-10's training images, so the paper's test images would not be honest here: all
    items are CIFAR-10's test images. Training: the first 6,000 of the permutation that
    ``split_80_20`` uses, with their votes. Test: the other 4,000 with their true classes. Voted:
    the same 4,000 with their votes.

    Args:
        folders: Where the files lie, ``teachers/`` among them.
        limit: At most so many training and so many test images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged, or there are probabilities but no counts.
    """
    counts = cifar10h_counts(folders)
    images, y = read_batch(CIFAR10, "test_batch", folders)
    check_as_many(counts, images)
    train, test = (rows[:limit] for rows in split_in_two(len(counts), len(counts) * 3 // 5))
    features = teacher_features(images[torch.cat([train, test])], folders)
    held_out = features[len(train) :]
    return Task(
        name="cifar10h-features",
        classes=CIFAR10_CLASSES,
        **_with_votes(features[: len(train)], counts[train]),
        test_inputs=held_out,
        test_y=y[test],
        voted_inputs=held_out,
        voted_counts=counts[test],
    )


def _with_votes(inputs: Tensor, counts: Tensor) -> dict[str, Tensor]:
    """The training part of a task; its classes are the top of the votes."""
    return {
        "train_inputs": inputs,
        "train_y": top_class(counts),
        "train_soft": counts.double() / counts.sum(1, keepdim=True),
        "train_counts": counts,
    }
