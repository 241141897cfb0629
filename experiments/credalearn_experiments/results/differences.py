"""Differences paired by seed: between methods, between settings, or from a baseline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from credalearn.errors import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import run_notes
from credalearn_experiments.results.seeds import (
    BySeed,
    check_one_kind,
    own_runs,
    runs_of,
    seeds,
)
from credalearn_experiments.results.table import Column, Table, Value

LEAST_DIFFERENCE = 0.001  # a tenth of a point of accuracy: too small to change a rule for
CONFIDENCE = 0.95
FEWEST_PAIRED = 3  # seeds: with two, t is 12.7, and the interval may exceed 100 points
_COLUMNS = {
    "accuracy": Column("ACC", marked=False, digits=2),
    "ece": Column("ECE", "lower", marked=False, digits=2),
    "auarc": Column("AUARC, own score", marked=False, digits=2),
    "auarc_top_probability": Column("AUARC, top probability", marked=False, digits=2),
}
_ABOUT = (
    "Both runs of a seed start from the same weights and see the items in the same order, no more: "
    "on a GPU the same training run twice ends differently. A standard error of few seeds is "
    "itself uncertain, and too small for ensembles that share networks."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric minus that of another run of the same seed, over the seeds that both have."""

    mean: float
    standard_error: float | None  # None for one seed
    seeds: int
    above: int = 0  # number of seeds with a difference above 0
    below: int = 0

    @classmethod
    def paired(
        cls, runs: BySeed, other: BySeed, metric: str, theirs: str | None = None
    ) -> "Difference | None":
        """The metric of some runs minus that of others (``theirs``); None without a common seed."""
        theirs = theirs or metric
        pairs = [
            runs[seed].metrics[metric] - other[seed].metrics[theirs]
            for seed in sorted(runs.keys() & other.keys())
            if metric in runs[seed].metrics and theirs in other[seed].metrics
        ]
        return cls.of(pairs) if pairs else None

    @classmethod
    def of(cls, pairs: Sequence[float] | np.ndarray) -> "Difference":
        """The mean of differences, one per seed."""
        error = float(np.std(pairs, ddof=1) / len(pairs) ** 0.5) if len(pairs) > 1 else None
        return cls(
            round(float(np.mean(pairs)), 12),
            None if error is None else round(error, 12),
            len(pairs),
            above=sum(each > 0 for each in pairs),
            below=sum(each < 0 for each in pairs),
        )

    @property
    def value(self) -> Value:
        """Mean and standard error, for a table."""
        return self.mean, self.standard_error

    @property
    def margin(self) -> float | None:
        """Half the width of the 95 % interval of Student's t; None for one seed."""
        return None if self.standard_error is None else _factor(self.seeds) * self.standard_error

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None below three seeds."""
        if self.margin is None or self.seeds < FEWEST_PAIRED:
            return None
        return self.mean - self.margin, self.mean + self.margin

    @property
    def p_value(self) -> float | None:
        """Of Student's two-sided test of no difference; None below three seeds."""
        if self.interval is None or self.standard_error is None:
            return None
        if self.standard_error == 0:
            return float(self.mean == 0)
        return float(2 * student.sf(abs(self.mean) / self.standard_error, self.seeds - 1))

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``no clear difference``, or ``too few seeds``."""
        if self.interval is None:
            return "too few seeds"
        low, high = self.interval
        if abs(self.mean) < LEAST_DIFFERENCE or low <= 0 <= high:
            return "no clear difference"
        return "worse" if self.mean < 0 else "better"


def differences_page(
    records: Iterable[Record], setting: str, than: str, others: Iterable[Record] | None = None
) -> list[Table | str]:
    """Every method of a setting minus one, or minus itself in another setting or folder."""
    records = list(records)
    runs = runs_of(records, setting)
    notes = run_notes(runs)
    if than in runs:
        pairs = {name: (found, runs[than]) for name, found in runs.items() if name != than}
    elif others or (than != setting and than in {record.setting for record in records}):
        # In a collapsed setting, POCC on collapsed labels is compared.
        runs = own_runs(records, setting)
        theirs = own_runs(others, setting) if others else own_runs(records, than)
        check_one_kind({1: runs, 2: theirs}, "two settings that are compared")
        pairs = {name: (found, theirs[name]) for name, found in runs.items() if name in theirs}
        notes = list(dict.fromkeys([*notes, *run_notes(theirs)]))
    else:
        raise CredalError(
            "--than must be a method or another setting that has records, or a folder of records; "
            f"got {than!r}. To fix: use one of {', '.join(runs)}, or another setting."
        )
    found: dict[str, dict[str, Difference]] = {}
    for name, (ours, other) in pairs.items():
        by_metric = {metric: Difference.paired(ours, other, metric) for metric in _COLUMNS}
        row = {_COLUMNS[metric].name: each for metric, each in by_metric.items() if each}
        if row:
            found[f"{name} ({seeds(max(each.seeds for each in row.values()))})"] = row
    if not found:
        raise CredalError(
            f"no run shares a seed and a metric with {than!r}. To fix: use another, or run both "
            "with the same --seeds."
        )
    columns = [c for c in _COLUMNS.values() if any(c.name in row for row in found.values())]
    lower = {column.name for column in columns if column.better == "lower"}
    means = {row: {name: each.value for name, each in x.items()} for row, x in found.items()}
    ahead = {
        name: {c: (each.below if c in lower else each.above, None) for c, each in row.items()}
        for name, row in found.items()
    }
    counts = [replace(column, percent=False, digits=0) for column in columns]
    title = f"{setting} minus {than}, paired by seed, ± the standard error"
    better = f"{setting}: number of seeds on which it is better than {than}"
    tables = [Table(title, columns, means), Table(better, counts, ahead)]
    counts_of = sorted({each.seeds for row in found.values() for each in row.values()})
    factors = [f"{_factor(n):.2f} for {n} seeds" for n in counts_of if n >= FEWEST_PAIRED]
    about = f"A 95 % interval is ± so many standard errors (Student's t): {', '.join(factors)}."
    return [*tables, *notes, *([about] if factors else []), _ABOUT]


def _factor(seeds: int) -> float:
    """Half the width of the interval of a mean of so many seeds, in standard errors."""
    return float(student.ppf((1 + CONFIDENCE) / 2, seeds - 1))
