"""The data sets of the experiments, read from folders that the user names.

Nothing is downloaded: an error about a missing file says how to get it.
"""

from collections.abc import Callable

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import PEOPLE, cifar10, cifar100
from credalearn_experiments.data.dcic import micebone, treeversity
from credalearn_experiments.data.folders import UNVERIFIED_VARIABLE, DataFolders, MissingDataError
from credalearn_experiments.data.foreign import FOREIGN
from credalearn_experiments.data.lidc import lidc
from credalearn_experiments.data.task import Task

TASKS: dict[str, Callable[[DataFolders, int | None], Task]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "micebone": micebone,
    "treeversity": treeversity,
    "lidc": lidc,
    **PEOPLE,
}
"""Loaders of tasks: given the folders and the maximum number of items per part."""

__all__ = [
    "FOREIGN",
    "TASKS",
    "UNVERIFIED_VARIABLE",
    "DataFolders",
    "MissingDataError",
    "Task",
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
    return task
