"""A run: one method with one seed in one setting, and the runs that it is built on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.methods import METHODS
from credalearn.methods.softmax import ENSEMBLE_SIZE
from credalearn_experiments.plugins import BASES, PLUGIN_METHODS, PLUGIN_TASKS
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS


@dataclass(frozen=True, slots=True)
class Run:
    """One method with one seed in one setting."""

    setting: Setting
    method: str
    seed: int
    limit: int | None = None  # maximum number of training and of test items
    weights: str | None = None  # describes the file that a pretrained network starts from
    left_out: int | None = None  # the fold that a teacher does not see

    @property
    def label(self) -> str:
        """The method, as folders and records name it."""
        return self.method if self.left_out is None else f"{self.method}-fold-{self.left_out}"

    @property
    def name(self) -> str:
        """Path of its folder in a store."""
        return f"{self.setting.name}/{self.label}/seed-{self.seed}"

    @property
    def bases(self) -> "tuple[Run, ...]":
        """The runs whose trained networks this one uses; none if it trains its own."""
        base = BASES.get(self.method)
        if base is None:
            return ()
        seeds = ALL_SETTINGS.get(self.setting.name, self.setting).seeds
        members = member_seeds(self.method, self.seed, seeds)
        return tuple(replace(self, method=base, seed=seed) for seed in members)

    @property
    def teachers(self) -> "tuple[Run, ...]":
        """The runs whose networks teach its own: a deep ensemble's, or one without each fold."""
        kind = METHODS[self.method].teachers
        runs = (
            replace(self, method="softmax", seed=self.seed + fold, left_out=fold)
            for fold in range(ENSEMBLE_SIZE if kind else 0)
        )
        return tuple(x if kind == "cross-fitted" else replace(x, left_out=None) for x in runs)

    @property
    def foreign_limit(self) -> int | None:
        """Maximum number of foreign images per set: an eighth of the limit, at least 2."""
        return None if self.limit is None else max(2, self.limit // 8)

    @property
    def group_key(self) -> object:
        """What models trained side by side must share: all but labels, method and seed."""
        alike: dict[str, Any] = {"name": "", "labels": None, "collapsed": False, "centered": False}
        setting = replace(self.setting, **alike, methods=(), seeds=())
        return setting, self.limit, self.weights

    @property
    def asked(self) -> dict[str, Any]:
        """Everything that decides the outcome, as plain JSON; part of every record."""
        asked = {
            **self.setting.as_plain(),
            "epochs": self.setting.recipe.epochs,
            "method": self.method,
            "seed": self.seed,
            "limit": self.limit,
        }
        some = {  # as far as known: records from before have none
            "weights": self.weights,
            "task_plugin": PLUGIN_TASKS.get(self.setting.task),
            "method_plugin": PLUGIN_METHODS.get(self.method),
            "left_out": self.left_out,
        }
        asked |= {name: value for name, value in some.items() if value is not None}
        if shared := [run.seed for run in (*self.bases, *self.teachers) if run.left_out is None]:
            asked["members"] = "shared"
            asked["member_seeds"] = shared
        return asked


def member_seeds(method: str, seed: int, seeds: Sequence[int]) -> tuple[int, ...]:
    """Seeds of the trained networks that a run uses, given all seeds of its setting."""
    base, size = BASES.get(method), METHODS[method].num_members
    if base is None or size == 1:
        return (seed,)
    # An ensemble of POCC uses the setting's own networks from its seed on, cyclically; with as few
    # seeds as members, all ensembles would be equal.
    if base == "softmax" or len(seeds) <= size or seed not in seeds:
        return tuple(range(seed, seed + size))
    place = list(seeds).index(seed)
    return tuple(seeds[(place + member) % len(seeds)] for member in range(size))


def plan(
    settings: Sequence[Setting], *, limit: int | None = None, weights: Path | None = None
) -> list[Run]:
    """Every run of the settings, each once, after the runs that it is built on."""
    runs: dict[Run, None] = {}
    described = None if weights is None else "random"
    if weights is not None and weights != Path("none"):  # runs from two files stay apart
        described = f"{weights.name}, sha256 {sha256_of(weights)[:16]}"
    for setting in settings:
        start = described if setting.pretrained else None
        wanted = [
            Run(setting, method, seed, limit=limit, weights=start)
            for method in setting.methods
            for seed in setting.seeds
        ]
        trained = [each for run in wanted for each in (*run.teachers, *(run.bases or (run,)))]
        runs |= dict.fromkeys(trained) | dict.fromkeys(wanted)
    return list(runs)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from text: ``"3"`` is the first three, ``"2-5"`` the seeds from 2 to 5."""
    found = re.fullmatch(r"(?:([1-9]\d{0,2})-)?(\d{1,3})", text)
    seeds = range(int(found[1] or 1), int(found[2]) + 1) if found else ()
    if not seeds:
        raise CredalError(
            "seeds must be a count such as 3, or a range such as 2-5, from 1 to 999; got "
            f"{text!r}. To fix: write one seed as '4-4'."
        )
    return tuple(seeds)
