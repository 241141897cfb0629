"""The data sets of the experiments, read from folders that the user names."""

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn_experiments.data.cifar import PEOPLE, cifar10, cifar100
from credalearn_experiments.data.dcic import DCIC
from credalearn_experiments.data.folders import UNVERIFIED_VARIABLE, DataFolders, MissingDataError
from credalearn_experiments.data.foreign import FOREIGN
from credalearn_experiments.data.lidc import lidc
from credalearn_experiments.data.task import Loader, Task

TASKS: dict[str, Loader]
TASKS = {"cifar10": cifar10, "cifar100": cifar100, **DCIC, "lidc": lidc, **PEOPLE}

__all__ = [
    "FOREIGN",
    "TASKS",
    "UNVERIFIED_VARIABLE",
    "DataFolders",
    "Loader",
    "MissingDataError",
    "Task",
    "load_task",
]


def load_task(name: str, folders: DataFolders, *, limit: int | None = None) -> Task:
    """The task of this name."""
    check_choice(name, TASKS, name="a task")
    task: object = TASKS[name](folders, limit)
    if not isinstance(task, Task):
        raise CredalError(
            f"the loader of task {name!r} must return a Task; it returned {type(task).__name__}. "
            "To fix: end it with return Task(...)."
        )
    return task
