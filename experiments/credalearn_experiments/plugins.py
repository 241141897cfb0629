"""Methods, tasks and settings of a user's own, from Python files: docs/how-to/extending.md."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from torch import Tensor

from credalearn._checks import check_choice
from credalearn._files import sha256_of
from credalearn._scores import SCORES
from credalearn.errors import CredalError
from credalearn.methods import METHODS, Method, Model
from credalearn.predictions import CredalPredictions
from credalearn.train import Training
from credalearn_experiments.data import TASKS, Loader
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS

# Methods that can be built on the trained networks of another, without training their own.
BASES = {
    "pocc-ensemble": "pocc",
    "deep-ensemble": "softmax",
    "laplace-bridge": "softmax",
    "decalibration": "softmax",
}
PLUGIN_METHODS: dict[str, str] = {}
PLUGIN_TASKS: dict[str, str] = {}
"""By name, the digest of the file that a method or a task comes from; part of a run's record."""
_ITEMS = 2  # that a method is tried on


def register_method(name: str, method: Method, *, built_on: str | None = None) -> None:
    """Make a method known; ``built_on`` is another whose trained networks it uses, if any."""
    _check_name(METHODS, "method", name)
    check_choice(method.score, SCORES, name=f"the score of method {name!r}")
    if built_on is None and method.num_members > 1:
        raise CredalError(
            f"the {method.num_members} members of method {name!r} are networks of another method. "
            "To fix: name that method, as in register_method(..., built_on='softmax')."
        )
    if built_on is not None:
        trained = [each for each in METHODS if each not in BASES]
        check_choice(built_on, trained, name=f"the base of method {name!r}")
        needed, there = ((each.num_heads, each.dropout) for each in (method, METHODS[built_on]))
        if needed != there:
            raise CredalError(
                f"method {name!r} must have the heads and the dropout of its base {built_on!r}, "
                f"{there}; got {needed}. To fix: make it with dataclasses.replace of that method."
            )
        BASES[name] = built_on
    METHODS[name] = method


def register_task(name: str, load: Loader) -> None:
    """Make a task known; ``load`` returns it, given the data folders and the limit."""
    _check_name(TASKS, "task", name)
    TASKS[name] = load


def register_setting(setting: Setting) -> None:
    """Make a setting known under its name; register its task and methods first."""
    _check_name(ALL_SETTINGS, "setting", setting.name)
    check_choice(setting.task, TASKS, name=f"the task of setting {setting.name!r}")
    ALL_SETTINGS[setting.name] = setting


@cache
def load_plugin(path: Path) -> None:
    """Run a Python file, once per process; keep its digest with the methods and tasks it has."""
    if path.suffix != ".py" or not path.is_file():
        raise CredalError(
            f"a plugin must be a Python file; there is none at {path}. To fix: pass the path of a "
            "file that ends in .py."
        )
    digest = sha256_of(path)[:16]
    module = ModuleType(f"credalearn_plugin_{digest}")  # there may be several files of one name
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses of the file look for it there
    methods, tasks = dict(METHODS), dict(TASKS)
    # Not imported: Python may take an edited file for the one that it compiled before.
    exec(compile(path.read_bytes(), path, "exec"), vars(module))
    for table, before, own in ((METHODS, methods, PLUGIN_METHODS), (TASKS, tasks, PLUGIN_TASKS)):
        new = [key for key, value in table.items() if value is not before.get(key)]
        own |= dict.fromkeys(new, f"sha256 {digest}")


def check_method(name: str, training: Training) -> None:
    """Try a method on two items: its loss and, unless more is learned later, its predictions."""
    method = replace(METHODS[name], num_passes=1)
    model = Model(method, (training.network,), {}, random_state=0)
    outputs, some = model.outputs(training.inputs[:_ITEMS]), training.labels[:_ITEMS]
    loss: object = method.loss(outputs.logits[:, 0].to(some.reference.device), some, 0)
    if not isinstance(loss, Tensor) or loss.ndim:
        shown = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise CredalError(
            f"the loss of method {name!r} must be a scalar tensor, a mean over items; for "
            f"{len(some)} items it returned {shown}. To fix: end it with .mean()."
        )
    if method.post_hoc is None and method.teachers is None:
        check_predictions(name, method.predictions(outputs, {}))


def check_predictions(name: str, found: object) -> CredalPredictions:
    """The predictions of a method, refused if they have another type."""
    if not isinstance(found, CredalPredictions):
        raise CredalError(
            f"the predictions of method {name!r} must be CredalPredictions; it returned "
            f"{type(found).__name__}. To fix: use CredalPredictions.from_vertices, or "
            "hull_of_outputs."
        )
    return found


def _check_name(table: Mapping[str, object], what: str, name: str) -> None:
    if not name or name.startswith(".") or set(name) & set("/\\"):  # "../a" would leave the store
        raise CredalError(
            f"the name of a {what} must be a possible folder name, without / and \\ and without a "
            f"leading dot; got {name!r}. To fix: use another name."
        )
    if name in table:
        raise CredalError(f"there is already a {what} {name!r}. To fix: use another name.")
