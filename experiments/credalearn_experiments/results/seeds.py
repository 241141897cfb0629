"""The records of one setting side by side: by method and seed, checked to be of one kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from credalearn.errors import CredalError
from credalearn.methods import BASES, METHODS
from credalearn.metrics import (
    BalancedQuality,
    Significance,
    balanced_quality,
    significance_ranking,
)
from credalearn_experiments.plugins import PLUGIN_METHODS
from credalearn_experiments.records import KIND, Record
from credalearn_experiments.settings.catalog import ALL_SETTINGS, by_family
from credalearn_experiments.settings.costs import member_seeds
from credalearn_experiments.settings.paper import SEVEN

Runs = Mapping[str, Mapping[int, Record]]
"""``runs[method][seed]``"""
Held = Mapping[Any, "Record | Held"]
"""Records by method and seed, or by more: of any depth."""

POCC_COLLAPSED = "pocc, collapsed"
MAIN = ("accuracy", "ece", "auarc")
FEWEST_SEEDS = 5  # for a test: with S seeds the smallest p is 2^-S, and 1/16 is above 5 %


@dataclass(frozen=True, slots=True)
class Balance:
    """Balanced scores of methods that were compared, over the seeds that all of them have.

    Args:
        quality: By method, its balanced quality score (BQS).
        significance: By method, its net wins and the score that follows (BQS-ST).
        seeds: Over which.
    """

    quality: Mapping[str, BalancedQuality]
    significance: Mapping[str, Significance]
    seeds: tuple[int, ...]


def runs_of(records: Iterable[Record], setting: str) -> dict[str, dict[int, Record]]:
    """The setting's records by method, in the paper's order, then by seed.

    Softmax and POCC networks that are members of ensembles only are left out: those of seeds that
    no other method has, and that are not the setting's, or an ensemble's where the setting does not
    name the method itself; with them a method that has no other runs.

    The paper sets methods trained on collapsed labels beside POCC trained on the labels as they
    are. So in a collapsed setting the method ``pocc`` is that of the setting it was collapsed from,
    on the seeds that others have here; POCC on collapsed labels stands last, as ``pocc,
    collapsed``.

    Args:
        records: Of any settings.
        setting: Name of the one wanted.

    Raises:
        CredalError: If there is no record of it, two records of a run differ, or runs differ in
            epochs or in the number of items.

    Example:
        >>> records = [
        ...     Record(setting="cifar10h", method=method, seed=1, metrics={"accuracy": 0.9})
        ...     for method in ("pocc", "edl")
        ... ]
        >>> list(runs_of(records, "cifar10h"))
        ['edl', 'pocc']
    """
    records = list(records)
    runs = own_runs(records, setting)
    if not runs:
        held = ", ".join(by_family({record.setting for record in records}))
        raise CredalError(
            f"there is no record of setting {setting!r}; there are some of {held}. To fix: take "
            "one of these, or make some with `credalearn-experiments run`."
        )
    known = ALL_SETTINGS.get(setting)
    if known is not None and known.collapsed:
        if "pocc" in runs:
            runs[POCC_COLLAPSED] = runs.pop("pocc")
        seeds = {seed for found in runs.values() for seed in found}
        originals = own_runs(records, known.task).get("pocc", {})
        beside = {seed: record for seed, record in originals.items() if seed in seeds}
        runs |= {"pocc": beside} if beside else {}
    check_one_kind(records_in(runs), f"setting {setting!r}")
    return _in_order(runs, setting)


def records_in(held: Held) -> Iterator[Record]:
    """Every record, in order.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> [each.name for each in records_in({"pocc": {1: record}, "edl": {}})]
        ['s pocc seed 1']
    """
    for each in held.values():
        if isinstance(each, Record):
            yield each
        else:
            yield from records_in(each)


def has(held: Held, metric: str) -> bool:
    """Whether any record has the metric.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> has({"pocc": {1: record}}, "accuracy"), has({"pocc": {1: record}}, "ece")
        (True, False)
    """
    return any(metric in record.metrics for record in records_in(held))


def first_record(held: Held) -> Record:
    """Any record tells of what kind they all are.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> first_record({"pocc": {1: record}}).name
        's pocc seed 1'
    """
    return next(records_in(held))


def paper_methods(setting: str) -> tuple[str, ...]:
    """The methods that the paper's tables compare in this setting: seven, or five at 224 px.

    Example:
        >>> paper_methods("micebone")
        ('edl', 'decalibration', 'dappr', 'pocc', 'deep-ensemble')
    """
    known = ALL_SETTINGS.get(setting)
    return tuple(m for m in SEVEN if known is None or m in known.methods)


def compared_methods(
    runs: Runs, setting: str, asked: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The methods asked for, or else those of the paper's that have runs.

    In a setting that is not the paper's and lacks one of its methods, or has one of a user's own,
    all that have runs unless some are asked for.

    Raises:
        CredalError: If one that is asked for has no run.

    Example:
        >>> runs = {"pocc": {}, "softmax": {}, "edl": {}}
        >>> compared_methods(runs, "cifar10h"), compared_methods(runs, "my-setting")
        (('edl', 'pocc'), ('pocc', 'softmax', 'edl'))
        >>> compared_methods(dict.fromkeys(("softmax", *SEVEN), {}), "my-setting") == SEVEN
        True
    """
    if asked is None:
        known = ALL_SETTINGS.get(setting)
        theirs = known is not None and known.published is not None
        # One that is not known is a user's own too, whose plugin is not given.
        own = {m for m in runs if m in PLUGIN_METHODS or m not in (*METHODS, POCC_COLLAPSED)}
        all_seven = set(SEVEN) <= set(runs) and not own
        asked = paper_methods(setting) if theirs or all_seven else tuple(runs)
        return tuple(method for method in asked if method in runs)
    for method in asked:
        if method not in runs:
            raise CredalError(
                f"method {method!r} cannot be compared in setting {setting!r}: it has no run "
                f"there. To fix: take one of {', '.join(runs)}."
            )
    return tuple(asked)


def count_of_seeds(count: int) -> str:
    """The number in words that fit it.

    Example:
        >>> count_of_seeds(1), count_of_seeds(10)
        ('1 seed', '10 seeds')
    """
    return f"{count} seed{'' if count == 1 else 's'}"


def mean_and_std(runs: Mapping[int, Record], metric: str) -> tuple[float, float | None, int] | None:
    """Mean, standard deviation and number of the seeds that have the metric; None without any.

    The deviation divides by the number of seeds, as everywhere in this package; that of one seed
    is None, for it says nothing.

    Example:
        >>> runs = {
        ...     seed: Record(setting="s", method="pocc", seed=seed, metrics={"ece": 0.1 * seed})
        ...     for seed in (1, 3)
        ... }
        >>> mean_and_std(runs, "ece")
        (0.2, 0.1, 2)
    """
    values = [record.metrics[metric] for record in runs.values() if metric in record.metrics]
    if not values:
        return None
    std = round(float(np.std(values)), 12) if len(values) > 1 else None
    return round(float(np.mean(values)), 12), std, len(values)


def mean_of_every(runs: Mapping[int, Record], metric: str) -> tuple[float, float | None] | None:
    """Mean and deviation as :func:`mean_and_std` has them; None unless every seed has the metric.

    Example:
        >>> metrics = {1: {"ece": 0.1, "accuracy": 0.9}, 2: {"ece": 0.1}}
        >>> runs = {
        ...     seed: Record(setting="s", method="pocc", seed=seed, metrics=found)
        ...     for seed, found in metrics.items()
        ... }
        >>> mean_of_every(runs, "ece"), mean_of_every(runs, "accuracy")
        ((0.1, 0.0), None)
    """
    found = mean_and_std(runs, metric)
    return found[:2] if found is not None and found[2] == len(runs) else None


def balance(runs: Runs, methods: Sequence[str], metrics: Sequence[str] = MAIN) -> Balance | None:
    """Balanced scores of the methods over the seeds that all of them have.

    Args:
        runs: Of one setting.
        methods: Which to compare; the scores change with them.
        metrics: Which metrics count.

    Returns:
        None where there are fewer than two methods, a method has no run, or no seed is common.

    Example:
        >>> values = {"pocc": (0.9, 0.1, 0.97), "edl": (0.8, 0.2, 0.95)}
        >>> runs = {
        ...     name: {1: Record(setting="s", method=name, seed=1, metrics=dict(zip(MAIN, row)))}
        ...     for name, row in values.items()
        ... }
        >>> found = balance(runs, ["pocc", "edl"])
        >>> found.quality["pocc"].mean, found.significance["pocc"].score, found.seeds
        (1.0, None, (1,))
    """
    if len(methods) < 2 or any(method not in runs for method in methods):
        return None
    seeds = common_seeds(runs, methods, metrics)
    if not seeds:
        return None
    table = seed_table(runs, methods, metrics, seeds)
    return Balance(
        balanced_quality(table, metrics=metrics),
        significance_ranking(table, metrics=metrics),
        seeds,
    )


def common_seeds(runs: Runs, methods: Sequence[str], metrics: Sequence[str]) -> tuple[int, ...]:
    """Seeds on which every method has every metric, in order.

    Example:
        >>> common_seeds({"pocc": {}}, ["pocc"], ["ece"])
        ()
    """
    having = [
        {seed for seed, record in runs[method].items() if set(metrics) <= set(record.metrics)}
        for method in methods
    ]
    return tuple(sorted(set.intersection(*having))) if having else ()


def seed_table(
    runs: Runs, methods: Sequence[str], metrics: Sequence[str], seeds: Sequence[int]
) -> dict[str, dict[str, list[float]]]:
    """``table[method][metric]``: one value a seed, as :mod:`credalearn.metrics` takes it.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.1})
        >>> seed_table({"pocc": {1: record}}, ["pocc"], ["ece"], [1])
        {'pocc': {'ece': [0.1]}}
    """
    return {
        method: {
            metric: [runs[method][seed].metrics[metric] for seed in seeds] for metric in metrics
        }
        for method in methods
    }


def check_one_kind(records: Iterable[Record], where: str) -> None:
    """Refuse runs of unlike length, size, start or data, and of one method that was edited between.

    A rehearsal among them would spoil every mean.

    Args:
        records: Those that are to stand side by side.
        where: What they are of, for the message.

    Raises:
        CredalError: If they differ in epochs, in the number of items, in the weights or in the
            plugin that a task or a method is from.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.1})
        >>> check_one_kind([record, record], "setting 's'")
    """
    held = list(records)
    for what in KIND:
        _check_alike(held, what, where)
    for method in {record.method for record in held}:
        own = [record for record in held if record.method == method]
        _check_alike(own, "method_plugin", f"{where} by {method!r}")


def _check_alike(records: Iterable[Record], what: str, where: str) -> None:
    kinds: dict[str, str] = {}
    for record in records:
        kinds.setdefault(str(record.config.get(what)), record.name)
    if len(kinds) > 1:
        shown = ", ".join(f"{what}={kind} ({name})" for kind, name in kinds.items())
        raise CredalError(
            f"the runs of {where} must all have the same {what}; got {shown}. "
            "To fix: keep rehearsals, and runs of another plugin, in a store of their own."
        )


def _by_method(records: Iterable[Record]) -> dict[str, dict[int, Record]]:
    runs: dict[str, dict[int, Record]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        first = runs.setdefault(record.method, {}).setdefault(record.seed, record)
        if first.metrics != record.metrics:
            raise CredalError(
                f"a run must have one record; {record.name} has two that differ: "
                f"{dict(first.metrics)} and {dict(record.metrics)}. To fix: read one folder."
            )
    return runs


def own_runs(records: Iterable[Record], setting: str) -> dict[str, dict[int, Record]]:
    """A setting's runs by method and seed, without those that are members of ensembles only.

    In a collapsed setting ``pocc`` is POCC on collapsed labels here.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> own_runs([record], "cifar10h")["pocc"][1].metrics
        {'accuracy': 0.9}
    """
    runs = _by_method([record for record in records if record.setting == setting])
    known = ALL_SETTINGS.get(setting)
    listed = set(known.methods) if known is not None else set()
    bases = {BASES[method] for method in {*runs, *listed} if method in BASES}
    named = known.seeds if known is not None else ()
    members = {
        (BASES[method], member)
        for method, found in runs.items()
        if method in BASES and BASES[method] not in listed
        for seed, record in found.items()
        for member in member_seeds(
            method, seed, named, record.config.get("members") == "independent"
        )
    }
    others = {seed for method, found in runs.items() if method not in bases for seed in found}
    kept = {}
    for method, found in runs.items():
        # One that nothing is built on shows that the method was run for itself.
        alone = any(seed in found and (method, seed) not in members for seed in named)
        wanted = others | set(named if alone else ())
        own = {seed: record for seed, record in found.items() if seed in wanted}
        members_only = not own and any(BASES.get(other) == method for other in runs)
        if not members_only:
            kept[method] = own if method in bases and own else found
    return _in_order(kept, setting)


def _in_order(runs: dict[str, dict[int, Record]], setting: str) -> dict[str, dict[int, Record]]:
    """Methods as the setting names them, then as the package does, then all others."""
    known = ALL_SETTINGS.get(setting)
    order = [*(known.methods if known is not None else ()), *METHODS]
    places = {method: place for place, method in reversed(list(enumerate(order)))}
    return dict(sorted(runs.items(), key=lambda item: places.get(item[0], len(order))))
