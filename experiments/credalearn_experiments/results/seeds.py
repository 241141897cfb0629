"""The records of one setting by method and seed, checked to be comparable."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from credalearn._formats import many
from credalearn.errors import CredalError
from credalearn.methods import METHODS
from credalearn_experiments.plugins import BASES
from credalearn_experiments.records import KIND, Record
from credalearn_experiments.settings.catalog import ALL_SETTINGS

BySeed = Mapping[int, Record]
Runs = Mapping[str, BySeed]
"""``runs[method][seed]``"""
Nested = Mapping[Any, "Record | Nested"]
"""Records by method and seed, or by more keys."""

POCC_COLLAPSED = "pocc, collapsed"


def seeds(count: int) -> str:
    """The number of seeds in words."""
    return many(count, "seed")


def row_names(counts: Mapping[str, int]) -> dict[str, str]:
    """Methods as they are printed: with their numbers of seeds where these differ."""
    same = len(set(counts.values())) == 1
    return {m: m if same else f"{m} ({seeds(count)})" for m, count in counts.items()}


def runs_of(records: Iterable[Record], setting: str) -> dict[str, dict[int, Record]]:
    """The setting's records by method and seed; of a collapsed one with the paper's ``pocc``."""
    records = list(records)
    runs = own_runs(records, setting)
    if not runs:
        raise CredalError(
            f"there is no record of setting {setting!r}. To fix: use another, or make some with "
            f"`credalearn-experiments run {setting}`."
        )
    known = ALL_SETTINGS.get(setting)
    if known is not None and known.collapsed:  # the paper has POCC on the labels before that
        if "pocc" in runs:
            runs[POCC_COLLAPSED] = runs.pop("pocc")
        shared = {seed for found in runs.values() for seed in found}
        originals = own_runs(records, known.task).get("pocc", {})
        originals = {seed: record for seed, record in originals.items() if seed in shared}
        runs |= {"pocc": originals} if originals else {}
    check_one_kind(runs, f"setting {setting!r}")
    return _in_order(runs, setting)


def own_runs(records: Iterable[Record], setting: str) -> dict[str, dict[int, Record]]:
    """A setting's runs by method and seed, without networks that are only members of ensembles."""
    runs: dict[str, dict[int, Record]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        if record.setting == setting and "left_out" not in record.config:
            first = runs.setdefault(record.method, {}).setdefault(record.seed, record)
            if first.metrics != record.metrics:
                raise CredalError(
                    f"a run must have one record; {record.name} has two that differ. To fix: read "
                    "one folder."
                )
    # Members are the runs of a base or a teacher on seeds that no other method has.
    bases = {BASES[method] for method in runs if method in BASES}
    bases |= {"softmax" for method in runs if method in METHODS and METHODS[method].teachers}
    others = {seed for method, found in runs.items() if method not in bases for seed in found}
    for method in bases & runs.keys():
        runs[method] = {seed: each for seed, each in runs[method].items() if seed in others}
    return _in_order({method: found for method, found in runs.items() if found}, setting)


def _in_order(runs: dict[str, dict[int, Record]], setting: str) -> dict[str, dict[int, Record]]:
    """Methods in the order of the setting, then of the package, then all others."""
    known = ALL_SETTINGS.get(setting)
    order = dict.fromkeys([*(known.methods if known is not None else ()), *METHODS, *runs])
    return {method: runs[method] for method in order if method in runs}


def check_one_kind(held: Nested, where: str) -> None:
    """Refuse runs that differ in length, size, start, data, or in the text of an own method."""
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for record in records_in(held):
        for what in (*KIND, "method_plugin"):
            owner = record.method if what == "method_plugin" else ""
            kind = str(record.config.get(what))
            kinds.setdefault((what, owner), {}).setdefault(kind, record.name)
    for (what, _), found in kinds.items():
        if len(found) > 1:  # a rehearsal would spoil every mean
            shown = ", ".join(f"{what}={kind} ({name})" for kind, name in found.items())
            raise CredalError(
                f"the runs of {where} must all have the same {what}; got {shown}. To fix: keep "
                "rehearsals, and runs of another plugin, in a separate store."
            )


def records_in(held: Nested) -> Iterator[Record]:
    """Every record, in order."""
    for each in held.values():
        if isinstance(each, Record):
            yield each
        else:
            yield from records_in(each)


def has(held: Nested, metric: str) -> bool:
    """Whether any record has the metric."""
    return any(metric in record.metrics for record in records_in(held))


def mean_and_std(runs: BySeed, metric: str) -> tuple[float, float | None, int] | None:
    """Mean, standard deviation (None for one seed) and number of the seeds that have the metric."""
    values = [record.metrics[metric] for record in runs.values() if metric in record.metrics]
    if not values:
        return None
    std = round(float(np.std(values)), 12) if len(values) > 1 else None
    return round(float(np.mean(values)), 12), std, len(values)


def mean_of_every(runs: BySeed, metric: str) -> tuple[float, float | None] | None:
    """Mean and deviation; None unless every seed has the metric."""
    found = mean_and_std(runs, metric)
    return found[:2] if found is not None and found[2] == len(runs) else None
