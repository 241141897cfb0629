"""Which trained networks a run is built on, how many a setting needs, and what they cost.

Trainings are shared: a network that several runs need is trained once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from credalearn.methods import BASES, METHODS
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS, family_of

# Training images a second on one H200, bfloat16, compiled, eight models side by side, with all that
# belongs to a run: start, compiling, measuring. ResNet-18's is measured (59 trainings of 1,500,000
# images in 1,722 s; the steps alone make 70,000); the others are estimated from it by their
# arithmetic: 0.56 billion multiplications an image for ResNet-18 at 32 px, 0.85 for WRN-28-4, 2.87
# for DenseNet-121 at 224 px.
IMAGES_PER_SECOND = {
    "resnet18": 51_000.0,
    "wrn-28-4": 51_000 * 0.56 / 0.85,
    "torchvision:densenet121": 51_000 * 0.56 / 2.87,
}
TRAINING_IMAGES = {
    "cifar10h": 10_000,
    "cifar10": 48_000,
    "cifar100": 48_000,
    "micebone": 5_792,  # four fifths of about 7,240
    "treeversity": 7_591,  # four fifths of about 9,489
    "cifar10h-voted": 8_000,
    "cifar10n": 10_000,
}
WITHOUT_GPU = ("mlp",)  # networks that one core trains in seconds


def member_seeds(
    method: str, seed: int, seeds: Sequence[int], independent: bool = False
) -> tuple[int, ...]:
    """Seeds of the trained networks that the run of this seed is built on.

    A method of one network uses that of its own seed. A deep ensemble of five uses the softmax
    seeds s … s + 4: ten ensembles then need 14 trainings. An ensemble of POCC uses the setting's
    own POCC seeds, s and the four that follow, from the first again after the last: no training
    more. Five seeds or fewer would so make every ensemble the same one; there, and for a seed that
    is not the setting's, it is s … s + 4. Ensembles of neighboring seeds share members, so they
    differ less than independent ones would.

    Args:
        method: A key of ``METHODS``.
        seed: Of the run.
        seeds: All seeds of the setting as it is defined, not of what was asked for: the members of
            a run do not depend on which other runs were asked for beside it.
        independent: Whether every ensemble has networks of its own, of the seeds 100·s + i for
            i = 0, 1, …

    Example:
        >>> member_seeds("deep-ensemble", 9, range(1, 11))
        (9, 10, 11, 12, 13)
        >>> member_seeds("pocc-ensemble", 9, range(1, 11))
        (9, 10, 1, 2, 3)
        >>> member_seeds("deep-ensemble", 9, range(1, 11), independent=True)
        (900, 901, 902, 903, 904)
        >>> member_seeds("laplace-bridge", 9, range(1, 11))
        (9,)
    """
    base = BASES.get(method)
    size = METHODS[method].num_members
    if base is None or size == 1:
        return (seed,)
    if independent:
        return tuple(100 * seed + member for member in range(size))
    if base == "softmax" or len(seeds) <= size or seed not in seeds:
        return tuple(range(seed, seed + size))
    place = list(seeds).index(seed)
    return tuple(seeds[(place + member) % len(seeds)] for member in range(size))


def networks(setting: Setting, independent: bool = False) -> tuple[tuple[str, int], ...]:
    """Every network that the setting trains, as (method, seed), each once.

    Example:
        >>> asked = ALL_SETTINGS["cifar10h"].narrowed(seeds=(1,), methods=("decalibration", "pocc"))
        >>> networks(asked)
        (('softmax', 1), ('pocc', 1))
    """
    known = ALL_SETTINGS.get(setting.name, setting).seeds
    needed = [
        (BASES.get(method, method), member)
        for method in setting.methods
        for seed in setting.seeds
        for member in member_seeds(method, seed, known, independent)
    ]
    return tuple(dict.fromkeys(needed))


def trainings(setting: Setting, independent: bool = False) -> int:
    """How many networks are trained for the setting.

    Example:
        Ten each of EDL, DAPPr, POCC and MC dropout, and 14 of softmax for three methods.

        >>> setting = ALL_SETTINGS["cifar10h"]
        >>> trainings(setting), trainings(setting, independent=True)
        (54, 150)
    """
    return len(networks(setting, independent))


def gpu_minutes(setting: Setting, independent: bool = False) -> float | None:
    """Minutes of runs on one H200, estimated.

    Returns:
        0 where no GPU is needed, None where nothing is known of the speed of the network or the
        size of the data.

    Example:
        >>> round(gpu_minutes(ALL_SETTINGS["cifar10h"]))
        26
    """
    if setting.backbone in WITHOUT_GPU:
        return 0.0
    if setting.backbone not in IMAGES_PER_SECOND or setting.task not in TRAINING_IMAGES:
        return None
    images = trainings(setting, independent) * setting.recipe.epochs * TRAINING_IMAGES[setting.task]
    return images / IMAGES_PER_SECOND[setting.backbone] / 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What a setting, or all of a family, trains and costs.

    Args:
        name: The setting's, or the family's with ``-K-RULE`` after it.
        settings: How many it stands for.
        backbone: Name of the network.
        methods: How many.
        seeds: How many.
        epochs: Of each training.
        trainings: How many networks are trained.
        minutes: As :func:`gpu_minutes` has them.
    """

    name: str
    settings: int
    backbone: str
    methods: int
    seeds: int
    epochs: int
    trainings: int
    minutes: float | None


def cost_lines(
    settings: Iterable[Setting], independent: bool = False, *, by_family: bool = False
) -> list[CostLine]:
    """What settings cost, a line each, in order.

    Args:
        settings: Which.
        independent: Whether every ensemble has networks of its own.
        by_family: Whether all settings of a family, which differ in votes and rule alone, share a
            line.

    Example:
        >>> rules = [ALL_SETTINGS[f"cifar10h-votes-3-{rule}"] for rule in ("idm", "relax")]
        >>> [(line.name, line.trainings) for line in cost_lines(rules, by_family=True)]
        [('cifar10h-votes-K-RULE', 6)]
    """
    groups: dict[str, list[Setting]] = {}
    for setting in settings:
        family = family_of(setting.name) if by_family else None
        groups.setdefault(f"{family}-K-RULE" if family else setting.name, []).append(setting)
    return [_cost_line(name, group, independent) for name, group in groups.items()]


def _cost_line(name: str, group: Sequence[Setting], independent: bool) -> CostLine:
    first = group[0]  # of a family all have the same network, data and recipe
    minutes = [gpu_minutes(each, independent) for each in group]
    return CostLine(
        name=name,
        settings=len(group),
        backbone=first.backbone,
        methods=len({method for setting in group for method in setting.methods}),
        seeds=len(first.seeds),
        epochs=first.recipe.epochs,
        trainings=sum(trainings(each, independent) for each in group),
        minutes=None if None in minutes else sum(each or 0.0 for each in minutes),
    )
