"""Ours beside the published figures, and how far apart, in published standard deviations.

Shares of ours are turned into the paper's unit: per cent, but for net scores (counts) and AUROC.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from credalearn_experiments.published import PublishedValue, published
from credalearn_experiments.records import Record
from credalearn_experiments.results.notes import notes
from credalearn_experiments.results.seeds import (
    MAIN,
    Balance,
    Runs,
    balance,
    mean_and_std,
    paper_methods,
    runs_of,
)
from credalearn_experiments.settings.paper import PAPER_METHODS, SETTINGS

Ours = tuple[float, float | None, int]
"""Mean, standard deviation where there is one, and number of seeds, in the paper's unit."""

_WITH_SPEARMAN = ("accuracy", "ece", "spearman_error")
# Figures that are a metric's mean over the seeds: its name, and what it is multiplied by.
_PLAIN = {
    "ACC": ("accuracy", 100),
    "ECE": ("ece", 100),
    "AUARC": ("auarc", 100),
    "Spearman": ("spearman_error", 100),
    "AUARC:MMI": ("auarc_mmi", 100),
    "AUARC:H-Diff": ("auarc_entropy_difference", 100),
    "OOD-AUROC:SVHN": ("auroc_svhn", 1),
    "OOD-AUROC:Places365": ("auroc_places365", 1),
    "OOD-AUROC:FMNIST": ("auroc_fashion_mnist", 1),
    "OOD-AUROC:ImageNet": ("auroc_imagenet", 1),
}
# Figures that compare all methods of a table, and the metrics that they compare.
_BALANCED = {"BQS": MAIN, "BQS-Spearman": _WITH_SPEARMAN}
_SIGNIFICANCE = {"BQS-ST": MAIN, "BQS-ST-Spearman": _WITH_SPEARMAN}
_NET = {"net_ACC": "accuracy", "net_1-ECE": "ece", "net_AUARC": "auarc"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published figure and ours.

    Args:
        published: The figure, and where it stands in the paper.
        setting: Our name of the setting.
        method: Our name of the method.
        mean: Ours, in the paper's unit.
        std: Standard deviation of ours over the seeds; None of one seed, of net
            scores and of what follows from them.
        seeds: How many ours is made of.

    Example:
        >>> row = published(table="tab:result", method="POCC", metric="ACC")[0]
        >>> Comparison(row, "cifar10h", "pocc", 87.8, 0.3, 10).difference
        2.0
    """

    published: PublishedValue
    setting: str
    method: str
    mean: float
    std: float | None
    seeds: int

    @property
    def difference(self) -> float | None:
        """Ours − theirs in published standard deviations; None where none, or 0, is printed."""
        if not self.published.std:
            return None
        return round((self.mean - self.published.mean) / self.published.std, 9)


def setting_of(row: PublishedValue) -> str | None:
    """Our name of the setting that a published figure belongs to; None if we have none.

    Example:
        >>> setting_of(published()[0])
        'cifar10h'
    """
    where = (row.dataset, row.supervision, row.setting)
    return next((name for name, each in SETTINGS.items() if each.published == where), None)


def answerable() -> tuple[PublishedValue, ...]:
    """Published figures that records can answer: of a known setting, method and metric.

    Example:
        >>> len(answerable()), len(published())
        (1826, 1826)
    """
    methods = set(PAPER_METHODS.values())
    metrics = {*_PLAIN, *_BALANCED, *_SIGNIFICANCE, *_NET}
    return tuple(
        row
        for row in published()
        if row.method in methods and row.metric in metrics and setting_of(row) is not None
    )


def compare(records: Iterable[Record]) -> list[Comparison]:
    """Every published figure that the records answer, in the paper's order.

    A mean is over the seeds that the method has. What compares methods (BQS, BQS-ST, net scores)
    is answered where all methods of the paper's table have runs, over the seeds that all have; what
    rests on tests, where these are five or more.

    Args:
        records: Of any settings.

    Raises:
        CredalError: If two records of a run differ, or runs of a setting differ in kind.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.878})
        >>> [(row.published.table, row.mean, row.difference) for row in compare([record])]
        [('tab:result', 87.8, 2.0), ('Table: Correlation-Disagree', 87.8, 2.0)]
    """
    records = list(records)
    held = {record.setting for record in records}
    runs = {name: runs_of(records, name) for name in SETTINGS if name in held}
    balances = {
        name: {m: balance(found, paper_methods(name), m) for m in (MAIN, _WITH_SPEARMAN)}
        for name, found in runs.items()
    }
    ours_of = {theirs: ours for ours, theirs in PAPER_METHODS.items()}
    rows = []
    for row in answerable():
        setting, method = setting_of(row), ours_of[row.method]
        if setting is None or method not in runs.get(setting, {}):
            continue
        ours = _ours(runs[setting], balances[setting], method, row.metric)
        if ours is not None:
            rows.append(Comparison(row, setting, method, *ours))
    return rows


def comparison_markdown(records: Iterable[Record], rows: Sequence[Comparison] | None = None) -> str:
    r"""The comparison to read: a table for each table and setting of the paper.

    Args:
        records: Of any settings: what must be said of them stands under each setting.
        rows: What :func:`compare` returned; made of the records unless given.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"auarc": 0.974})
        >>> print(comparison_markdown([record]).split("\n###")[1].split("\n- ")[0])
         cifar10h: tab:result
        <BLANKLINE>
        | method | seeds | AUARC |
        | :-- | --: | --: |
        | pocc | 1 | 97.4 (97.1 ± 0.2, +1.5) |
        <BLANKLINE>
    """
    records = list(records)
    groups: dict[str, dict[str, list[Comparison]]] = {}
    for each in compare(records) if rows is None else rows:
        groups.setdefault(each.setting, {}).setdefault(each.published.table, []).append(each)
    if not groups:
        return "No published figure can be answered by these records.\n"
    parts = ["Ours, then (theirs, difference in their standard deviations).\n"]
    for setting, tables in groups.items():
        parts += [f"### {setting}: {table}\n\n{_grid(group)}" for table, group in tables.items()]
        lines = [*notes(records, setting), *_without_difference(tables.values())]
        parts.append("".join(f"- {line}\n" for line in lines))
    return "\n".join(parts)


def comparison_csv(rows: Iterable[Comparison]) -> str:
    """The comparison as CSV, one published figure a line.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"auarc": 0.974})
        >>> print(comparison_csv(compare([record])).splitlines()[1])
        tab:result,cifar10h,pocc,AUARC,97.4,,1,97.1,0.2,1.5
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    ours, theirs = ("mean", "std", "seeds"), ("published mean", "published std")
    writer.writerow(["table", "setting", "method", "metric", *ours, *theirs, "difference"])
    for row in rows:
        figure = row.published
        numbers = (row.mean, row.std, row.seeds, figure.mean, figure.std, row.difference)
        shown = ["" if number is None else f"{number:z.6g}" for number in numbers]
        writer.writerow([figure.table, row.setting, row.method, figure.metric, *shown])
    return file.getvalue()


def _ours(
    runs: Runs, balances: dict[tuple[str, str, str], Balance | None], method: str, metric: str
) -> Ours | None:
    """What the records say, in the paper's unit; None where they say nothing."""
    if metric in _PLAIN:
        name, scale = _PLAIN[metric]
        found = mean_and_std(runs[method], name)
        if found is None:
            return None
        mean, std, count = found
        return scale * mean, None if std is None else scale * std, count
    metrics = {**_BALANCED, **_SIGNIFICANCE}.get(metric, MAIN)
    scores = balances[metrics]
    if scores is None:
        return None
    if metric in _BALANCED:
        quality = scores.quality[method]
        std = 100 * quality.std if len(scores.seeds) > 1 else None
        return 100 * quality.mean, std, len(scores.seeds)
    place = scores.significance[method]
    if place.net is None or place.score is None:  # too few seeds for any test
        return None
    score = place.net[_NET[metric]] if metric in _NET else 100 * place.score
    return float(score), None, len(scores.seeds)


def _without_difference(tables: Iterable[Sequence[Comparison]]) -> list[str]:
    """Why some figures of a setting have no difference, though the paper prints a deviation."""
    if not any(each.published.std == 0 for group in tables for each in group):
        return []
    return ["No difference where the paper prints a deviation of 0.0: none can be counted in it."]


def _grid(group: Sequence[Comparison]) -> str:
    metrics = list(dict.fromkeys(each.published.metric for each in group))
    lines = [["method", "seeds", *metrics], [":--", "--:", *["--:"] * len(metrics)]]
    for method in dict.fromkeys(each.method for each in group):
        by_metric = {each.published.metric: each for each in group if each.method == method}
        counts = sorted({each.seeds for each in by_metric.values()})
        cells = [_cell(by_metric[m]) if m in by_metric else "–" for m in metrics]
        lines.append([method, "–".join(map(str, counts[:: max(len(counts) - 1, 1)])), *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(row: Comparison) -> str:
    metric = row.published.metric
    digits = 0 if metric in _NET else 3 if metric.startswith("OOD") else 1

    def value(mean: float, std: float | None) -> str:
        text = f"{mean:z.{digits}f}"
        return text if std is None else f"{text} ± {std:.{digits}f}"

    theirs = value(row.published.mean, row.published.std)
    away = "" if row.difference is None else f", {row.difference:+.1f}"
    return f"{value(row.mean, row.std)} ({theirs}{away})".replace("-", "−")
