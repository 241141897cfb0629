"""A run: one method with one seed in one setting, and the runs that it is built on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.methods import BASES, METHODS
from credalearn_experiments.plugins import PLUGIN_METHODS, PLUGIN_TASKS
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.settings.costs import member_seeds

_MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """What is done once and kept.

    Args:
        setting: What is trained on what, and how.
        method: Name of the method.
        seed: Of everything random.
        independent: Whether an ensemble has networks of its own instead of sharing them.
        limit: At most so many training and so many test items; None for all. See
            :attr:`foreign_limit`.
        weights: What a pretrained network starts from, in words; None where it starts from nothing.

    Example:
        >>> run = Run(ALL_SETTINGS["cifar10h"], "decalibration", 3)
        >>> run.name, [base.name for base in run.bases]
        ('cifar10h/decalibration/seed-3', ['cifar10h/softmax/seed-3'])
    """

    setting: Setting
    method: str
    seed: int
    independent: bool = False
    limit: int | None = None
    weights: str | None = None

    @property
    def name(self) -> str:
        """Where it stands in a store."""
        return f"{self.setting.name}/{self.method}/seed-{self.seed}"

    @property
    def bases(self) -> "tuple[Run, ...]":
        """The runs whose trained networks this one is built on; none if it trains its own."""
        base = BASES.get(self.method)
        if base is None:
            return ()
        return tuple(
            Run(self.setting, base, seed, limit=self.limit, weights=self.weights)
            for seed in self._members
        )

    @property
    def foreign_limit(self) -> int | None:
        """Foreign images of a set, and training images that they are told from, at most.

        An eighth of the limit, 2 or more: with as many, three quarters of a rehearsal on a CPU
        would go into predictions.

        Example:
            >>> Run(ALL_SETTINGS["cifar10h"], "pocc", 1, limit=512).foreign_limit
            64
        """
        return None if self.limit is None else max(2, self.limit // 8)

    @property
    def surroundings(self) -> tuple[object, ...]:
        """What models must share to be trained side by side: all but labels, method and seed.

        Example:
            >>> one, other = (
            ...     Run(ALL_SETTINGS[f"cifar10h-votes-{name}"], "pocc", 1)
            ...     for name in ("3-idm", "all-relax")
            ... )
            >>> one.surroundings == other.surroundings
            True
        """
        setting = self.setting
        return (
            *(
                setting.task,
                setting.backbone,
                setting.pretrained,
                replace(setting.recipe, random_state=0),
            ),
            *(setting.image_size, setting.augment, setting.foreign, self.limit, self.weights),
        )

    @property
    def asked(self) -> dict[str, Any]:
        """What decides the outcome, as plain JSON."""
        asked = {
            **self.setting.as_plain(),
            "epochs": self.setting.recipe.epochs,
            "method": self.method,
            "seed": self.seed,
            "limit": self.limit,
        }
        if self.weights is not None:
            asked["weights"] = self.weights
        if self.setting.task in PLUGIN_TASKS:
            asked["task_plugin"] = PLUGIN_TASKS[self.setting.task]
        if self.method in PLUGIN_METHODS:
            asked["method_plugin"] = PLUGIN_METHODS[self.method]
        if self.bases:
            asked["members"] = "independent" if self.independent else "shared"
            asked["member_seeds"] = list(self._members)
        return asked

    @property
    def _members(self) -> tuple[int, ...]:
        known = ALL_SETTINGS.get(self.setting.name, self.setting).seeds
        return member_seeds(self.method, self.seed, known, self.independent)


def plan(
    settings: Sequence[Setting],
    *,
    independent: bool = False,
    limit: int | None = None,
    weights: Path | None = None,
) -> list[Run]:
    """Every run of the settings, each once, with what it is built on before it.

    All trainings of a setting come first, so that as many as possible are there to be trained side
    by side.

    Example:
        >>> setting = ALL_SETTINGS["cifar10h"]
        >>> narrow = setting.narrowed(methods=("decalibration", "pocc"), seeds=(1,))
        >>> [run.name.removeprefix("cifar10h/") for run in plan([narrow])]
        ['softmax/seed-1', 'pocc/seed-1', 'decalibration/seed-1']
    """
    runs: dict[Run, None] = {}
    for setting in settings:
        wanted = [
            Run(
                setting,
                method,
                seed,
                independent=independent and METHODS[method].num_members > 1,
                limit=limit,
                weights=_in_words(weights) if setting.pretrained else None,
            )
            for method in setting.methods
            for seed in setting.seeds
        ]
        trained = [base for run in wanted for base in (run.bases or (run,))]
        runs |= dict.fromkeys(trained) | dict.fromkeys(wanted)
    return list(runs)


def _in_words(weights: Path | None) -> str | None:
    """Name and digest of a file of weights, so that runs from two files are not taken for one."""
    if weights is None:
        return None
    if weights == Path("none"):
        return "random"
    if not weights.is_file():
        return weights.name  # the run says what is wrong with it
    return f"{weights.name}, sha256 {sha256_of(weights)[:16]}"


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from words: ``"3"`` is the first three, ``"2-5"`` and ``"1,4"`` are those named.

    Raises:
        CredalError: If it is none of these.

    Example:
        >>> parse_seeds("3"), parse_seeds("2-4,9"), parse_seeds("4,")
        ((1, 2, 3), (2, 3, 4, 9), (4,))
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and "-" not in text:
        parts = [f"1-{text.strip()}"]
    seeds: list[int] = []
    for part in parts:
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not part:
            continue
        if not first.strip().isdecimal() or not last.strip().isdecimal():
            seeds = []
            break
        if int(last) - int(first) >= _MOST_SEEDS:
            raise CredalError(
                f"{part!r} would be {int(last) - int(first) + 1:,} seeds. To fix: for the one seed "
                f"{last} write '{last},'."
            )
        seeds += range(int(first), int(last) + 1)
    if not seeds or min(seeds) < 1:
        raise CredalError(
            f"seeds are a number of them such as 3, or those wanted such as 2-5 or 1,4; got "
            f"{text!r}."
        )
    return tuple(dict.fromkeys(seeds))
