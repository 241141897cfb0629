"""Networks that a setting trains, and an estimate of their GPU time.

A network that several runs need is trained once.
"""

from collections.abc import Sequence

from credalearn.methods import BASES, METHODS
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS

# Training images per second on one H200, bfloat16, compiled, eight models side by side, including
# start, compilation and evaluation. ResNet-18 is measured (59 trainings of 1,500,000 images in
# 1,722 s); the others are estimated by multiplications per image: 0.56 billion for ResNet-18 at
# 32 px, 0.85 for WRN-28-4, 2.87 for DenseNet-121 at 224 px. An MLP needs no GPU.
_IMAGES_PER_SECOND = {
    "resnet18": 51_000.0,
    "wrn-28-4": 51_000 * 0.56 / 0.85,
    "torchvision:densenet121": 51_000 * 0.56 / 2.87,
    "mlp": float("inf"),
}
_TRAINING_IMAGES = {
    "cifar10h": 10_000,
    "cifar10": 48_000,
    "cifar100": 48_000,
    "micebone": 5_792,
    "treeversity": 7_591,
    "cifar10h-voted": 8_000,
    "cifar10n": 10_000,
    "cifar10h-features": 6_000,
    "lidc": 837,
}


def member_seeds(
    method: str, seed: int, seeds: Sequence[int], independent: bool = False
) -> tuple[int, ...]:
    """Seeds of the trained networks that a run uses.

    A method of one network uses its own seed. A deep ensemble of five uses the softmax networks of
    seeds s … s + 4: ten ensembles need 14 trainings. An ensemble of POCC uses the setting's own
    POCC networks, seed s and the next four, cyclically: no further training. With five seeds or
    fewer this would make all ensembles equal; there, and for a seed outside the setting, it uses
    s … s + 4. Ensembles of neighboring seeds share members, so they vary less than independent
    ones.

    Args:
        method: A key of ``METHODS``.
        seed: Seed of the run.
        seeds: All seeds of the setting as it is defined, so that the members do not depend on
            which other runs are asked for.
        independent: Whether every ensemble has its own networks, of seeds 100·s + i.

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
        Ten each of EDL, DAPPr, POCC and MC dropout, and 14 of softmax for three methods.

        >>> len(networks(ALL_SETTINGS["cifar10h"]))
        54
    """
    known = ALL_SETTINGS.get(setting.name, setting).seeds
    needed = [
        (BASES.get(method, method), member)
        for method in setting.methods
        for seed in setting.seeds
        for member in member_seeds(method, seed, known, independent)
    ]
    return tuple(dict.fromkeys(needed))


def gpu_minutes(setting: Setting, independent: bool = False) -> float | None:
    """Estimated minutes on one H200; None for an unknown network or task.

    Example:
        >>> round(gpu_minutes(ALL_SETTINGS["cifar10h"]))
        26
    """
    if setting.backbone not in _IMAGES_PER_SECOND or setting.task not in _TRAINING_IMAGES:
        return None
    trainings = len(networks(setting, independent))
    images = trainings * setting.recipe.epochs * _TRAINING_IMAGES[setting.task]
    return images / _IMAGES_PER_SECOND[setting.backbone] / 60
