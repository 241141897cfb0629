"""Methods, tasks and settings of a user's own, from a Python file that is read before any command.

``credalearn bench --plugin FILE`` reads it, as do the processes that do the runs; docs/extending.md
shows one.
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from credalearn.bench.catalogue import ALL_SETTINGS
from credalearn.bench.data import TASKS, WITHOUT_FOLDER, DataFolders, Task
from credalearn.bench.setting import Setting
from credalearn.errors import CredalError
from credalearn.methods import METHODS, Method


def register_method(name: str, method: Method) -> None:
    """Make a method known under this name.

    Raises:
        CredalError: If the name is taken.

    Example:
        >>> register_method("my-softmax", METHODS["softmax"])
        >>> METHODS.pop("my-softmax").num_heads
        1
    """
    _check_free(METHODS, "method", name)
    METHODS[name] = method


def register_task(name: str, load: Callable[[DataFolders, int | None], Task]) -> None:
    """Make a task known under this name.

    Args:
        name: As settings have it.
        load: Given the folders of ``--data``, which may be none, and the limit of items, None for
            all: the task.

    Raises:
        CredalError: If the name is taken.

    Example:
        >>> register_task("my-nodules", TASKS["lidc"])
        >>> len(TASKS.pop("my-nodules")(DataFolders(()), 9).train_y)
        9
        >>> WITHOUT_FOLDER.remove("my-nodules")
    """
    _check_free(TASKS, "task", name)
    TASKS[name] = load
    WITHOUT_FOLDER.add(name)


def register_setting(setting: Setting) -> None:
    """Make a setting known under its name; its methods must be known before.

    Raises:
        CredalError: If the name is taken.

    Example:
        >>> register_setting(ALL_SETTINGS["cifar10h"])
        Traceback (most recent call last):
        credalearn.errors.CredalError: a setting 'cifar10h' is known already. To fix: take another
        name.
    """
    _check_free(ALL_SETTINGS, "setting", setting.name)
    ALL_SETTINGS[setting.name] = setting


@cache
def load_plugin(path: Path) -> None:
    """Run the Python file, once a process.

    Raises:
        CredalError: If it is no Python file.

    Example:
        >>> load_plugin(Path("absent.py"))
        Traceback (most recent call last):
        credalearn.errors.CredalError: a plugin is a Python file; there is none at absent.py.
    """
    spec = importlib.util.spec_from_file_location("credalearn_plugin", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise CredalError(f"a plugin is a Python file; there is none at {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look for it there
    spec.loader.exec_module(module)


def _check_free(table: Mapping[str, object], what: str, name: str) -> None:
    if name in table:
        raise CredalError(f"a {what} {name!r} is known already. To fix: take another name.")
