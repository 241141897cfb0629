"""Which trained networks a run is built on, how many a setting needs, and what they cost.

Trainings are shared: a network that several runs need is trained once.
"""

from collections.abc import Sequence

from credalearn.bench.settings import Setting
from credalearn.bench.settings.catalogue import ALL_SETTINGS
from credalearn.errors import CredalError
from credalearn.methods import BASES, METHODS

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


def base_of(method: str) -> str | None:
    """The method whose trained networks this one is built on; None if it trains its own.

    Raises:
        CredalError: If the method is unknown.

    Example:
        >>> base_of("deep-ensemble"), base_of("pocc-ensemble"), base_of("edl")
        ('softmax', 'pocc', None)
    """
    if method not in METHODS:
        raise CredalError(f"method {method!r} is unknown; known are {', '.join(METHODS)}.")
    return BASES.get(method)


def member_seeds(
    method: str, seed: int, seeds: Sequence[int], independent: bool = False
) -> tuple[int, ...]:
    """Seeds of the trained networks that the run of this seed is built on.

    A method of one network uses that of its own seed. A deep ensemble of five uses the softmax
    seeds s … s + 4: ten ensembles then need 14 trainings. An ensemble of POCC uses the setting's
    own POCC seeds, s and the four that follow, from the first again after the last: no training
    more. Five seeds or fewer would so make every ensemble the same one; there, and for a seed that
    is not the setting's, it is s … s + 4. Ensembles of neighbouring seeds share members, so they
    differ less than independent ones would.

    Args:
        method: A key of ``METHODS``.
        seed: Of the run.
        seeds: All seeds of the setting as it is defined, not of what was asked for: the members of
            a run do not depend on which other runs were asked for beside it.
        independent: Whether every ensemble has networks of its own, of the seeds 100·s + i for
            i = 0, 1, …

    Raises:
        CredalError: If the method is unknown.

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
    base = base_of(method)
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
        (base_of(method) or method, member)
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


def gpu_minutes(setting: Setting, independent: bool = False) -> float:
    """Minutes of runs on one H200, estimated.

    Raises:
        CredalError: If nothing is known of the speed of the network or the size of the data.

    Example:
        >>> round(gpu_minutes(ALL_SETTINGS["cifar10h"]))
        26
    """
    if setting.backbone not in IMAGES_PER_SECOND or setting.task not in TRAINING_IMAGES:
        raise CredalError(
            "the cost is known for the networks "
            f"{', '.join(IMAGES_PER_SECOND)} and the tasks {', '.join(TRAINING_IMAGES)}; setting "
            f"{setting.name!r} has {setting.backbone!r} and {setting.task!r}."
        )
    images = trainings(setting, independent) * setting.recipe.epochs * TRAINING_IMAGES[setting.task]
    return images / IMAGES_PER_SECOND[setting.backbone] / 60
