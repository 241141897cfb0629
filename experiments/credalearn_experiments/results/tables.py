"""Tables of a setting from its records: the paper's, and the same deferral by other scores.

``markdown``, ``latex`` and ``to_csv`` of :mod:`credalearn_experiments.drawing` write them.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from credalearn.metrics.balanced import LARGER_IS_BETTER
from credalearn_experiments.drawing import Column, ResultTable
from credalearn_experiments.drawing.tables import Value
from credalearn_experiments.records import Record
from credalearn_experiments.results.seeds import (
    FEWEST_SEEDS,
    MAIN,
    Balance,
    Runs,
    balance,
    compared_methods,
    count_of_seeds,
    has,
    mean_of_every,
    records_in,
    runs_of,
)
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_TITLES = {
    "accuracy": "ACC",
    "ece": "ECE",
    "auarc": "AUARC",
    "normalized_auarc": "normalized AUARC",
    "spearman_error": "Spearman",
}
_MAIN = "Accuracy, calibration and deferral"
# By title, what stands beside the balanced scores of it, and what follows their names; all but the
# first only where there are runs with the last of its metrics.
_BALANCED: dict[str, tuple[tuple[str, ...], str]] = {
    _MAIN: (MAIN, ""),
    "Normalized AUARC": (("accuracy", "ece", "normalized_auarc"), "-normalized"),
    "Rank correlation of uncertainty and error": (
        ("accuracy", "ece", "spearman_error"),
        "-Spearman",
    ),
}
_SCORES = {
    "auarc": "own score",
    "auarc_top_probability": "top probability",
    "auarc_lower_probability": "lower probability",
    "auarc_mmi": "MMI",
    "auarc_entropy_difference": "H_diff",
}


def balanced_table(
    runs: Runs,
    setting: str,
    *,
    metrics: Sequence[str] = MAIN,
    suffix: str = "",
    compared: Sequence[str] | None = None,
) -> ResultTable:
    """Metrics, with BQS and BQS-ST of them over the seeds that all have.

    Args:
        runs: Of one setting.
        setting: Its name.
        metrics: Which; accuracy, calibration and deferral unless given.
        suffix: What follows the names of the two scores.
        compared: Methods that BQS and BQS-ST compare; unless given those of the paper's that have
            runs. Others have a dash there.

    Raises:
        CredalError: If one that is to be compared has no run.

    Example:
        >>> from credalearn_experiments.drawing import markdown
        >>> values = {"edl": (0.87, 0.1, 0.974), "pocc": (0.88, 0.02, 0.974)}
        >>> runs = {
        ...     name: {1: Record(setting="s", method=name, seed=1, metrics=dict(zip(MAIN, row)))}
        ...     for name, row in values.items()
        ... }
        >>> print(markdown(balanced_table(runs, "cifar10h")))
        | method (1 seed) | ACC (%) ↑ | ECE (%) ↓ | AUARC (%) ↑ | BQS (%) ↑ |
        | :-- | --: | --: | --: | --: |
        | edl | <u>87.0</u> | <u>10.0</u> | **97.4** | <u>33.3</u> |
        | pocc | **88.0** | **2.0** | **97.4** | **100.0** |
        <BLANKLINE>
    """
    columns = {
        metric: Column(_TITLES[metric], better="higher" if LARGER_IS_BETTER[metric] else "lower")
        for metric in metrics
    }
    found = balance(runs, compared_methods(runs, setting, compared), metrics)
    return table_of(runs, columns, found, suffix)


def scores_table(runs: Runs) -> ResultTable:
    """AUARC by each method's own uncertainty and by scores that are the same for all.

    Example:
        >>> values = {"auarc": 0.97, "auarc_lower_probability": 0.98}
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics=values)
        >>> scores_table({"pocc": {1: record}}).rows["pocc"]["lower probability"]
        (0.98, None)
    """
    held = {metric: name for metric, name in _SCORES.items() if has(runs, metric)}
    columns = {metric: Column(name, digits=2) for metric, name in held.items()}
    return table_of(runs, columns or {"auarc": Column("own score", digits=2)})


def foreign_table(
    runs: Runs, setting: str, *, inside: Literal["test", "training"] = "test"
) -> ResultTable | None:
    """AUROC of telling foreign images by the method's own score; None where none were looked at.

    Runs that looked at none are not counted among the seeds.

    Args:
        runs: Of one setting.
        setting: Its name.
        inside: What they are told from: test images, or those that were trained on.

    Example:
        >>> values = {"accuracy": 0.9, "auroc_fashion_mnist": 0.83}
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics=values)
        >>> foreign_table({"pocc": {1: record}}, "cifar10h").rows["pocc"]
        {'fashion-mnist': (0.83, None)}
    """
    prefix = "auroc_" if inside == "test" else "auroc_training_"
    found = {
        metric
        for record in records_in(runs)
        for metric in record.metrics
        if metric.startswith(prefix)
        and (inside == "training" or not metric.startswith("auroc_training_"))
    }
    known = ALL_SETTINGS.get(setting)
    if not found or (known is not None and not known.foreign):  # of POCC beside collapsed labels
        return None
    looked = {
        method: {seed: record for seed, record in by_seed.items() if found & record.metrics.keys()}
        for method, by_seed in runs.items()
    }
    foreign = known.foreign if known is not None else ()
    order = [f"{prefix}{name.replace('-', '_')}" for name in foreign]
    metrics = [*(name for name in order if name in found), *sorted(found - set(order))]
    names = {metric: metric.removeprefix(prefix).replace("_", "-") for metric in metrics}
    return table_of(
        {method: by_seed for method, by_seed in looked.items() if by_seed},
        {metric: Column(name, percent=False, digits=3) for metric, name in names.items()},
    )


def setting_tables(
    records: Iterable[Record], setting: str, *, compared: Sequence[str] | None = None
) -> dict[str, ResultTable]:
    """Every table that the records of a setting can fill, by title.

    Args:
        records: Of any settings.
        setting: Name of the one wanted.
        compared: Methods whose balanced scores are compared; the paper's unless given.

    Example:
        >>> values = dict(zip(MAIN, (0.9, 0.1, 0.97)))
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics=values)
        >>> list(setting_tables([record], "cifar10h"))
        ['Accuracy, calibration and deferral', 'AUARC by score']
    """
    runs = runs_of(records, setting)
    tables: dict[str, ResultTable] = {}
    for title, (metrics, suffix) in _BALANCED.items():
        if title == _MAIN or has(runs, metrics[-1]):
            tables[title] = balanced_table(
                runs, setting, metrics=metrics, suffix=suffix, compared=compared
            )
        if title == _MAIN and has(runs, "auarc"):
            tables["AUARC by score"] = scores_table(runs)
    insides: dict[str, Literal["test", "training"]] = {
        "AUROC, foreign against test images": "test",
        "AUROC, foreign against training images": "training",
    }
    for title, inside in insides.items():
        foreign = foreign_table(runs, setting, inside=inside)
        if foreign is not None:
            tables[title] = foreign
    return tables


def table_of(
    runs: Runs, columns: dict[str, Column], found: Balance | None = None, suffix: str = ""
) -> ResultTable:
    """A row a method; the number of seeds stands in the corner, or by each where they differ.

    Args:
        runs: Of one setting.
        columns: By metric; a method that lacks it on a seed has a dash.
        found: Balanced scores, as further columns.
        suffix: What follows their names.

    Example:
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.02})
        >>> table_of({"pocc": {1: record}}, {"ece": Column("ECE", better="lower")}).corner
        'method (1 seed)'
    """
    counts = {method: len(by_seed) for method, by_seed in runs.items()}
    alike = len(set(counts.values())) == 1
    rows: dict[str, dict[str, Value]] = {}
    balanced: list[Column] = []
    if found is not None:
        few = (
            ""
            if {len(found.seeds)} == set(counts.values())
            else f", {count_of_seeds(len(found.seeds))}"
        )
        balanced.append(Column(f"BQS{suffix}{few}"))
        if len(found.seeds) >= FEWEST_SEEDS:
            balanced.append(Column(f"BQS-ST{suffix}{few}"))
    for method, by_seed in runs.items():
        values: list[Value] = [mean_of_every(by_seed, metric) for metric in columns]
        if found is not None:
            values += _balanced_values(found, method)[: len(balanced)]
        name = method if alike else f"{method} ({count_of_seeds(counts[method])})"
        names = [column.name for column in (*columns.values(), *balanced)]
        rows[name] = dict(zip(names, values, strict=True))
    corner = (
        f"method ({count_of_seeds(next(iter(counts.values())))})" if alike else "method (seeds)"
    )
    return ResultTable([*columns.values(), *balanced], rows, corner=corner)


def _balanced_values(found: Balance, method: str) -> list[Value]:
    if method not in found.quality:
        return [None, None]
    quality, score = found.quality[method], found.significance[method].score
    std = quality.std if len(found.seeds) > 1 else None
    return [(quality.mean, std), None if score is None else (score, None)]
