"""The data sets of the experiments, read from folders that the user names.

Nothing is downloaded: a missing set says which file is missing and how to get it.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from credalearn._checks import check_choice, check_whole
from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import cifar10, cifar100
from credalearn_experiments.data.cifar_people import (
    cifar10h,
    cifar10h_counts,
    cifar10h_shares,
    cifar10n_labels,
    cifar10n_votes,
)
from credalearn_experiments.data.cifar_voted import cifar10h_features, cifar10h_voted, cifar10n
from credalearn_experiments.data.dcic import micebone, treeversity
from credalearn_experiments.data.folders import DATA_VARIABLE, DataFolders, MissingDataError
from credalearn_experiments.data.foreign import (
    ForeignLoader,
    fashion_mnist,
    imagenet,
    places365,
    svhn,
    tiny_imagenet,
)
from credalearn_experiments.data.lidc import lidc
from credalearn_experiments.data.reading import UNVERIFIED_VARIABLE
from credalearn_experiments.data.task import Task

TASKS: dict[str, Callable[[DataFolders, int | None], Task]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cifar10h": cifar10h,
    "micebone": micebone,
    "treeversity": treeversity,
    "cifar10h-voted": cifar10h_voted,
    "cifar10h-features": cifar10h_features,
    "cifar10n": cifar10n,
    "lidc": lidc,
}
FOREIGN: dict[str, ForeignLoader] = {
    "svhn": svhn,
    "places365": places365,
    "fashion-mnist": fashion_mnist,
    "imagenet": imagenet,
    "tiny-imagenet": tiny_imagenet,
}

WITHOUT_FOLDER = {"lidc"}
"""Tasks that need no data folder."""

__all__ = [
    "DATA_VARIABLE",
    "FOREIGN",
    "TASKS",
    "UNVERIFIED_VARIABLE",
    "WITHOUT_FOLDER",
    "DataFolders",
    "ForeignLoader",
    "MissingDataError",
    "Task",
    "cifar10h_counts",
    "cifar10h_shares",
    "cifar10n_labels",
    "cifar10n_votes",
    "load_foreign",
    "load_task",
]


def load_task(name: str, folders: DataFolders, *, limit: int | None = None) -> Task:
    """One of the learning tasks: the paper's, split as there, or one of ours.

    Args:
        name: A key of ``TASKS``.
        folders: Where the data files lie.
        limit: At most so many training and so many test items, the first ones of each.

    Raises:
        CredalError: If there is no such task, a file is missing or damaged, or the loader of a
            user's own gives something else, or more items than the limit.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folders = DataFolders([Path(tempfile.mkdtemp())])
        >>> try:
        ...     load_task("micebone", folders)
        ... except CredalError as error:
        ...     print(str(error).split(" in ")[0])
        MiceBone's file of votes is missing: no MiceBone/annotations.json
    """
    _check("a task", name, TASKS, limit)
    task: object = TASKS[name](folders, limit)
    if not isinstance(task, Task):
        raise CredalError(
            f"the loader of task {name!r} must give a Task; it gave {type(task).__name__}. To fix: "
            "end it with return Task(...)."
        )
    for part, inputs in (("training", task.train_inputs), ("test", task.test_inputs)):
        if limit is not None and len(inputs) > limit:
            raise CredalError(
                f"the task {name!r} must have {limit} {part} items at most, the limit that it was "
                f"given; it has {len(inputs)}. To fix: let its loader take [:limit] of every part."
            )
    return task


def load_foreign(name: str, folders: DataFolders, *, size: int, limit: int | None = None) -> Tensor:
    """Images of a foreign set, uint8, shape (N, 3, size, size).

    Args:
        name: A key of ``FOREIGN``.
        folders: Where the data files lie.
        size: The side wanted, in pixels.
        limit: At most so many, the first ones.

    Raises:
        MissingDataError: If a file is missing.
        CredalError: If there is no such set, or a file is damaged or holds no image.

    Example:
        >>> sorted(FOREIGN)
        ['fashion-mnist', 'imagenet', 'places365', 'svhn', 'tiny-imagenet']
    """
    _check("a foreign set", name, FOREIGN, limit)
    check_whole(size, least=1, name="size", remedy="give the side in pixels, such as 32")
    images = FOREIGN[name](folders, size, limit)
    if not len(images):
        raise CredalError(f"the foreign set {name} must hold an image or more; it holds none.")
    return images


def _check(what: str, name: str, table: Mapping[str, object], limit: int | None) -> None:
    check_choice(name, table, name=what)
    if limit is not None:
        check_whole(limit, least=1, name="limit", remedy="give None for all items")
