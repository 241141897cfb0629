"""Networks that a setting trains; one that several runs need is trained once."""

from collections.abc import Sequence

from credalearn.methods import BASES, METHODS
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS


def member_seeds(
    method: str, seed: int, seeds: Sequence[int], independent: bool = False
) -> tuple[int, ...]:
    """Seeds of the trained networks that a run uses, given all seeds of its setting.

    A deep ensemble of five uses the softmax networks of seeds s … s + 4, an ensemble of POCC the
    setting's own networks from s on, cyclically. With five seeds or fewer this would make all
    ensembles equal; there, and for a seed outside the setting, it uses s … s + 4. Independent
    ensembles share no members: theirs have the seeds 100·s + i.
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
    """Every network that the setting trains, as (method, seed), each once."""
    known = ALL_SETTINGS.get(setting.name, setting).seeds
    needed = [
        (BASES.get(method, method), member)
        for method in setting.methods
        for seed in setting.seeds
        for member in member_seeds(method, seed, known, independent)
    ]
    return tuple(dict.fromkeys(needed))
