"""Is one better than the other? Differences paired by seed: of methods, or of two settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from credalearn.errors import CredalError
from credalearn_experiments.drawing import Column, ResultTable
from credalearn_experiments.drawing.tables import Value
from credalearn_experiments.records import Record
from credalearn_experiments.results.seeds import Runs, check_one_kind, count_of_seeds, records_in

LEAST_DIFFERENCE = 0.001  # a tenth of a point of accuracy: below it nobody would change a rule
CONFIDENCE = 0.95  # of a difference's interval
ABOUT = (
    "A seed starts both from the same weights and the same order of the items, no more: on a GPU "
    "the same training run twice ends elsewhere. A standard error of few seeds is itself "
    "uncertain, and too small for ensembles that share networks."
)
FEWEST_PAIRED = 3  # seeds: of two, t is 12.7, and the interval may pass 100 points
COLUMNS = {
    "accuracy": Column("ACC", marked=False, digits=2),
    "ece": Column("ECE", better="lower", marked=False, digits=2),
    "auarc": Column("AUARC, own score", marked=False, digits=2),
    "auarc_top_probability": Column("AUARC, top probability", marked=False, digits=2),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric less another run's, paired by seed: both had the same data and the same start.

    Args:
        mean: Over the seeds that both have.
        standard_error: Of that mean; None of one seed, and only then.
        seeds: How many.
        above: On how many of them the difference is above 0.
        below: On how many below.

    Raises:
        CredalError: If there is no seed, or a standard error of one, or none of several.

    Example:
        >>> Difference(-0.005, 0.001, 3).verdict, Difference(-0.005, 0.002, 3).verdict
        ('worse', 'not told apart')
    """

    mean: float
    standard_error: float | None
    seeds: int
    above: int = 0
    below: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1 or (self.standard_error is None) != (self.seeds == 1):
            raise CredalError(
                "a difference needs one seed or more, and a standard error just where there are "
                f"several; got seeds={self.seeds!r}, standard_error={self.standard_error!r}."
            )

    @property
    def interval(self) -> tuple[float, float] | None:
        r"""Both ends of the 95 % interval :math:`\bar d \pm t_{.975, S-1}\,\text{se}`; S seeds.

        Exact where differences are normal (Student, 1908); None of fewer than three seeds. Two
        standard errors instead would call 18 % of equal cells worse or better with 3 seeds, where t
        is 4.30.

        Example:
            >>> [round(end, 4) for end in Difference(-0.005, 0.001, 3).interval]
            [-0.0093, -0.0007]
        """
        if self.standard_error is None or self.seeds < FEWEST_PAIRED:
            return None
        room = float(student.ppf((1 + CONFIDENCE) / 2, self.seeds - 1)) * self.standard_error
        return self.mean - room, self.mean + room

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``not told apart`` beyond noise, or ``too few seeds to tell``."""
        if self.interval is None:
            return "too few seeds to tell"
        low, high = self.interval
        if abs(self.mean) < LEAST_DIFFERENCE or low <= 0 <= high:
            return "not told apart"
        return "worse" if self.mean < 0 else "better"


def paired(
    runs: Mapping[int, Record], beside: Mapping[int, Record], metric: str
) -> Difference | None:
    """The metric of one method's runs less that of another's, over the seeds that both have.

    Args:
        runs: By seed.
        beside: What they are compared with, by seed.
        metric: Which.

    Returns:
        None where no seed has the metric in both.

    Example:
        >>> runs = {
        ...     seed: Record(setting="s", method="pocc", seed=seed, metrics={"ece": seed / 100})
        ...     for seed in (1, 2, 3)
        ... }
        >>> beside = {seed: runs[1] for seed in (2, 3, 4)}
        >>> paired(runs, beside, "ece")
        Difference(mean=0.015, standard_error=0.005, seeds=2, above=2, below=0)
    """
    pairs = [
        runs[seed].metrics[metric] - beside[seed].metrics[metric]
        for seed in sorted(runs.keys() & beside.keys())
        if metric in runs[seed].metrics and metric in beside[seed].metrics
    ]
    if not pairs:
        return None
    error = float(np.std(pairs, ddof=1) / len(pairs) ** 0.5) if len(pairs) > 1 else None
    return Difference(
        round(float(np.mean(pairs)), 12),
        None if error is None else round(error, 12),
        len(pairs),
        above=sum(each > 0 for each in pairs),
        below=sum(each < 0 for each in pairs),
    )


def beside_method(runs: Runs, method: str) -> dict[str, dict[str, Difference]]:
    """Every other method of a setting less this one: by method and metric.

    Raises:
        CredalError: If the setting has no run of it, or none that shares a seed with it.

    Example:
        >>> metrics = {"pocc": 0.88, "softmax": 0.89}
        >>> runs = {
        ...     name: {1: Record(setting="s", method=name, seed=1, metrics={"accuracy": value})}
        ...     for name, value in metrics.items()
        ... }
        >>> beside_method(runs, "pocc")["softmax"]["accuracy"].mean
        0.01
    """
    if method not in runs:
        raise CredalError(f"there is no run of {method!r}. To fix: take one of {', '.join(runs)}.")
    others = {name: (found, runs[method]) for name, found in runs.items() if name != method}
    return _found(others, f"the method {method!r}")


def beside_setting(runs: Runs, other: Runs) -> dict[str, dict[str, Difference]]:
    """Every method of a setting less itself in another setting: by method and metric.

    Raises:
        CredalError: If no method has a run with the same seed in both, or runs differ in epochs, in
            the number of items or in the weights.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> beside_setting({"pocc": {1: record}}, {"pocc": {1: record}})["pocc"]["accuracy"].mean
        0.0
    """
    check_one_kind(records_in({1: runs, 2: other}), "two settings that are compared")
    both = {name: (found, other[name]) for name, found in runs.items() if name in other}
    return _found(both, "the other setting")


def _found(
    pairs: Mapping[str, tuple[Mapping[int, Record], Mapping[int, Record]]], than: str
) -> dict[str, dict[str, Difference]]:
    found: dict[str, dict[str, Difference]] = {}
    for name, (runs, beside) in pairs.items():
        for metric in COLUMNS:
            each = paired(runs, beside, metric)
            if each is not None:
                found.setdefault(name, {})[metric] = each
    if not found:
        raise CredalError(
            f"no run shares a seed and a metric with {than}. To fix: take another, or run both "
            "with the same --seeds."
        )
    return found


def difference_tables(
    found: Mapping[str, Mapping[str, Difference]],
) -> tuple[ResultTable, ResultTable]:
    """Differences in points with their standard errors, and on how many seeds each is better.

    Example:
        >>> one = {"accuracy": Difference(0.006, 0.001, 5, above=4, below=1)}
        >>> points, seeds = difference_tables({"softmax": one})
        >>> points.rows["softmax (5 seeds)"], seeds.rows["softmax (5 seeds)"]
        ({'ACC': (0.006, 0.001)}, {'ACC': (4, None)})
    """
    columns = {m: c for m, c in COLUMNS.items() if any(m in row for row in found.values())}
    points: dict[str, dict[str, Value]] = {}
    better: dict[str, dict[str, Value]] = {}
    for name, row in found.items():
        title = f"{name} ({count_of_seeds(max(each.seeds for each in row.values()))})"
        points[title], better[title] = {}, {}
        for metric, column in columns.items():
            each = row.get(metric)
            points[title][column.name] = better[title][column.name] = None
            if each is not None:
                ahead = each.above if column.better == "higher" else each.below
                points[title][column.name] = (each.mean, each.standard_error)
                better[title][column.name] = (ahead, None)
    counts = [replace(column, percent=False, digits=0) for column in columns.values()]
    return (
        ResultTable(list(columns.values()), points, spread="standard error"),
        ResultTable(counts, better),
    )
