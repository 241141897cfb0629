"""Methods, tasks and settings of a user's own, from a Python file that is read before any command.

``credalearn-experiments --plugin FILE`` reads it, as do the processes that do the runs; docs/extending.md
shows one.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.abc import ExecutionLoader
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from credalearn._checks import check_choice
from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.methods import BASES, METHODS, Method
from credalearn.nets import BACKBONE_NAMES, known_backbone
from credalearn.scores import SCORES
from credalearn_experiments.data import TASKS, WITHOUT_FOLDER, DataFolders, Task
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS

PLUGIN_METHODS: dict[str, str] = {}
PLUGIN_TASKS: dict[str, str] = {}
"""By name, the digest of the file that a method or a task is from: runs of another are others."""


def register_method(name: str, method: Method, *, built_on: str | None = None) -> None:
    """Make a method known under this name.

    Args:
        name: As settings and ``--method`` have it.
        method: What it does.
        built_on: Method whose trained networks it takes instead of training its own, as it must
            where it has several members; of which seeds says
            :func:`credalearn_experiments.settings.costs.member_seeds`.

    Raises:
        CredalError: If the name is taken or no folder's, there is no such score, or the networks do
            not fit.

    Example:
        >>> register_method("my-softmax", METHODS["softmax"])
        >>> METHODS.pop("my-softmax").num_heads
        1
    """
    _check_free(METHODS, "method", name)
    check_choice(method.score, SCORES, name=f"the score of method {name!r}")
    if built_on is not None:
        _check_base(name, method, built_on)
        BASES[name] = built_on
    elif method.num_members > 1:
        raise CredalError(
            f"the {method.num_members} members of method {name!r} are networks that another method "
            "trained. To fix: name that method, as in register_method(..., built_on='softmax')."
        )
    METHODS[name] = method


def register_task(name: str, load: Callable[[DataFolders, int | None], Task]) -> None:
    """Make a task known under this name.

    Args:
        name: As settings have it.
        load: Given the folders of ``--data``, which may be none, and the limit of items, None for
            all: the task.

    Raises:
        CredalError: If the name is taken or no folder's, or the loader takes other arguments.

    Example:
        >>> register_task("my-nodules", TASKS["lidc"])
        >>> len(TASKS.pop("my-nodules")(DataFolders(()), 9).train_y)
        9
        >>> WITHOUT_FOLDER.remove("my-nodules")
    """
    _check_free(TASKS, "task", name)
    try:
        inspect.signature(load).bind(DataFolders(()), None)
    except TypeError as error:
        raise CredalError(
            f"the loader of task {name!r} must take two arguments, the folders and the limit; "
            f"{error}. To fix: define it as def load(folders, limit)."
        ) from error
    TASKS[name] = load
    WITHOUT_FOLDER.add(name)


def register_setting(setting: Setting) -> None:
    """Make a setting known under its name; its task and its methods must be known before.

    Raises:
        CredalError: If the name is taken or no folder's, or there is no such task or backbone.

    Example:
        >>> register_setting(ALL_SETTINGS["cifar10h"])
        Traceback (most recent call last):
        credalearn.errors.CredalError: a setting 'cifar10h' is known already. To fix: take another
        name.
    """
    _check_free(ALL_SETTINGS, "setting", setting.name)
    check_choice(setting.task, TASKS, name=f"the task of setting {setting.name!r}")
    if not known_backbone(setting.backbone):
        raise CredalError(
            f"the backbone of setting {setting.name!r} must be one of {BACKBONE_NAMES}; got "
            f"{setting.backbone!r}. To fix: take one of these."
        )
    ALL_SETTINGS[setting.name] = setting


@cache
def load_plugin(path: Path) -> None:
    """Run the Python file, once a process, and keep its digest with the methods and tasks it has.

    Raises:
        CredalError: If it is no Python file.

    Example:
        >>> load_plugin(Path("absent.py"))
        Traceback (most recent call last):
        credalearn.errors.CredalError: a plugin is a Python file; there is none at absent.py. To
        fix: give the path of a file that ends in .py.
    """
    if path.suffix != ".py" or not path.is_file():
        raise CredalError(
            f"a plugin is a Python file; there is none at {path}. To fix: give the path of a file "
            "that ends in .py."
        )
    digest = sha256_of(path)[:16]
    loader = _AsItIs(f"credalearn_plugin_{digest}", str(path))  # there may be several
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look for it there
    methods, tasks = dict(METHODS), dict(TASKS)
    loader.exec_module(module)
    for table, before, own in ((METHODS, methods, PLUGIN_METHODS), (TASKS, tasks, PLUGIN_TASKS)):
        own |= {
            name: f"sha256 {digest}" for name, it in table.items() if it is not before.get(name)
        }


class _AsItIs(SourceFileLoader):
    """Compiles the file anew: one kept before would stand for another of its size and second."""

    def get_code(self, fullname: str) -> CodeType | None:
        return ExecutionLoader.get_code(self, fullname)


def _check_base(name: str, method: Method, base: str) -> None:
    """Refuse networks that the method could not take, before they are trained."""
    check_choice(base, [m for m in METHODS if m not in BASES], name=f"what {name!r} is built on")
    needed = (method.num_heads, method.dropout)
    there = (METHODS[base].num_heads, METHODS[base].dropout)
    if needed != there:
        raise CredalError(
            f"method {name!r} must have the heads and the dropout of {base!r}, which it is built "
            f"on, {there}; got {needed}. To fix: make it of that method by dataclasses.replace."
        )


def _check_free(table: Mapping[str, object], what: str, name: str) -> None:
    if not name or name.startswith(".") or set(name) & set("/\\"):  # "../a" would leave the store
        raise CredalError(
            f"the name of a {what} must be one that a folder can have: not empty, no / or \\ in "
            f"it, no dot in front; got {name!r}. To fix: take another name."
        )
    if name in table:
        raise CredalError(f"a {what} {name!r} is known already. To fix: take another name.")
