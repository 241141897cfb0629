"""The data sets of the experiments, read from folders that the user names.

Nothing is downloaded: an error about a missing file says how to get it.
"""

from collections.abc import Callable

from torch import Tensor

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import cifar10, cifar100
from credalearn_experiments.data.cifar_people import (
    cifar10h,
    cifar10h_features,
    cifar10h_new_votes,
    cifar10h_voted,
    cifar10n,
    cifar10n_most,
    cifar10n_voted,
)
from credalearn_experiments.data.dcic import micebone, treeversity
from credalearn_experiments.data.folders import UNVERIFIED_VARIABLE, DataFolders, MissingDataError
from credalearn_experiments.data.foreign import (
    fashion_mnist,
    imagenet,
    places365,
    svhn,
    tiny_imagenet,
)
from credalearn_experiments.data.lidc import lidc
from credalearn_experiments.data.task import Task

TASKS: dict[str, Callable[[DataFolders, int | None], Task]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cifar10h": cifar10h,
    "micebone": micebone,
    "treeversity": treeversity,
    "cifar10h-voted": cifar10h_voted,
    "cifar10h-features": cifar10h_features,
    "cifar10h-new-votes": cifar10h_new_votes,
    "cifar10n": cifar10n,
    "cifar10n-voted": cifar10n_voted,
    "cifar10n-most": cifar10n_most,
    "lidc": lidc,
}
"""Loaders of tasks: given the folders and the maximum number of items per part."""

FOREIGN: dict[str, Callable[[DataFolders, int, int | None], Tensor]] = {
    "svhn": svhn,
    "places365": places365,
    "fashion-mnist": fashion_mnist,
    "imagenet": imagenet,
    "tiny-imagenet": tiny_imagenet,
}
"""Loaders of foreign images: given the folders, the size in pixels and the maximum number."""

__all__ = [
    "FOREIGN",
    "TASKS",
    "UNVERIFIED_VARIABLE",
    "DataFolders",
    "MissingDataError",
    "Task",
    "load_foreign",
    "load_task",
]


def load_task(name: str, folders: DataFolders, *, limit: int | None = None) -> Task:
    """The task of this name, with at most ``limit`` items in each part, the first ones."""
    check_choice(name, TASKS, name="a task")
    task: object = TASKS[name](folders, limit)
    if not isinstance(task, Task):
        raise CredalError(
            f"the loader of task {name!r} must return a Task; it returned {type(task).__name__}. "
            "To fix: end it with return Task(...)."
        )
    for part, inputs in (("training", task.train_inputs), ("test", task.test_inputs)):
        if limit is not None and len(inputs) > limit:
            raise CredalError(
                f"task {name!r} must have at most {limit} {part} items, its limit; it has "
                f"{len(inputs)}. To fix: take [:limit] of every part in its loader."
            )
    return task


def load_foreign(name: str, folders: DataFolders, *, size: int, limit: int | None = None) -> Tensor:
    """At most ``limit`` images of a foreign set, uint8, shape (N, 3, size, size)."""
    check_choice(name, FOREIGN, name="a foreign set")
    images = FOREIGN[name](folders, size, limit)
    if not len(images):
        raise CredalError(f"the foreign set {name} must have at least one image; it has none.")
    return images
