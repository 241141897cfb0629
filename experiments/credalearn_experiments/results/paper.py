"""The paper's published figures: how far ours are from them, and which settings have runs.

The paper's unit is percent, except for net scores (counts) and AUROC; it has ten seeds per figure.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

from credalearn._formats import enumerated
from credalearn_experiments.records import Record, metric_of
from credalearn_experiments.results.balance import (
    MAIN,
    Balance,
    balance,
    compared,
    notes,
    paper_methods,
)
from credalearn_experiments.results.seeds import POCC_COLLAPSED, Runs, has, mean_and_std, runs_of
from credalearn_experiments.results.table import Table, Value, plain
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.paper import PAPER, SETTINGS

_WITH_SPEARMAN = ("accuracy", "ece", "spearman_error")
# Figures that are the mean of a metric: its name, and what it is multiplied by.
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
_NET = {"net_ACC": "accuracy", "net_1-ECE": "ece", "net_AUARC": "auarc"}


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """One printed number, and where it is in the paper."""

    table: str  # the paper's own label
    setting: str  # by our names, as the method
    method: str
    metric: str  # net_ACC is wins − losses in significance tests on ACC
    mean: float
    std: float | None


@cache
def published() -> tuple[PublishedValue, ...]:
    """Every printed number, in the paper's order, from ``published.csv``."""
    text = files("credalearn_experiments").joinpath("published.csv").read_text(encoding="utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        mean, std = float(row.pop("mean")), row.pop("std")
        rows.append(PublishedValue(**row, mean=mean, std=float(std) if std else None))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published figure, and ours in its unit."""

    published: PublishedValue
    mean: float
    std: float | None  # None for one seed, net scores and BQS-ST
    seeds: int

    @property
    def difference(self) -> float | None:
        """Ours − theirs in published standard deviations; None where none, or 0, is printed."""
        if not self.published.std:
            return None
        return round((self.mean - self.published.mean) / self.published.std, 9)


def compare(records: Iterable[Record]) -> list[Comparison]:
    """Every published figure that the records answer, in the paper's order."""
    records = list(records)
    held = {record.setting for record in records}
    runs = {name: runs_of(records, name) for name in PAPER if name in held}
    balances = {
        (name, metrics): balance(found, paper_methods(name), metrics)
        for name, found in runs.items()
        for metrics in (MAIN, _WITH_SPEARMAN)
    }
    rows = []
    for row in published():
        if row.method in runs.get(row.setting, {}):
            metrics = _WITH_SPEARMAN if row.metric.endswith("-Spearman") else MAIN
            rows.append(_compared(row, runs[row.setting], balances[row.setting, metrics]))
    return [row for row in rows if row is not None]


def _compared(row: PublishedValue, runs: Runs, scores: Balance | None) -> Comparison | None:
    """Our figure in the paper's unit; None without one."""
    method, metric = row.method, row.metric
    if metric in _PLAIN:
        name, scale = _PLAIN[metric]
        mean, std, count = mean_and_std(runs[method], name) or (None, None, 0)
    elif scores is None:
        return None
    elif metric in ("BQS", "BQS-Spearman"):
        scale, (mean, std), count = 100, scores.mean_and_std(method), len(scores.seeds)
    else:
        place, std, count = scores.significance[method], None, len(scores.seeds)
        net = None if place.net is None else place.net.get(_NET.get(metric, ""))
        scale, mean = (1, net) if metric in _NET else (100, place.score)
    if mean is None:  # no seed, or too few for a test
        return None
    return Comparison(row, float(scale * mean), None if std is None else scale * std, count)


def comparison_page(records: Sequence[Record], rows: Iterable[Comparison]) -> list[Table | str]:
    """A table for each table and setting of the paper, and the notes on each setting."""
    by_setting: dict[str, dict[str, list[Comparison]]] = {}
    for each in rows:
        theirs = each.published
        by_setting.setdefault(theirs.setting, {}).setdefault(theirs.table, []).append(each)
    if not by_setting:
        return ["No published figure can be answered with these records."]
    parts: list[Table | str] = ["Ours, then (theirs, difference in their standard deviations)."]
    for setting, tables in by_setting.items():
        parts += [_table(f"{setting}: {name}", group) for name, group in tables.items()]
        runs = runs_of(records, setting)
        parts += notes(runs, setting, compared(runs, setting))
        if any(each.published.std == 0 for group in tables.values() for each in group):
            parts.append("No difference is given where the paper prints a deviation of 0.0.")
    return parts


def _table(title: str, group: Sequence[Comparison]) -> Table:
    rows: dict[str, dict[str, Value]] = {}
    for method in dict.fromkeys(each.published.method for each in group):
        own = [each for each in group if each.published.method == method]
        counts = sorted({each.seeds for each in own})
        counted = "–".join(map(str, counts[:: max(len(counts) - 1, 1)]))
        rows[method] = {"seeds": counted, **{each.published.metric: _cell(each) for each in own}}
    names = dict.fromkeys(["seeds", *(each.published.metric for each in group)])
    return Table(title, [plain(name) for name in names], rows)


def _cell(row: Comparison) -> str:
    metric = row.published.metric
    digits = 0 if metric in _NET else 3 if metric.startswith("OOD") else 1

    def value(mean: float, std: float | None) -> str:
        text = f"{mean:z.{digits}f}"
        return text if std is None else f"{text} ± {std:.{digits}f}"

    theirs = value(row.published.mean, row.published.std)
    away = "" if row.difference is None else f", {row.difference:+.1f}"
    return f"{value(row.mean, row.std)} ({theirs}{away})"


REASONS = "not-run.csv"
"""In a folder of records: patterns of settings, and why they are not, or only partly, run."""

_NAMES = ("seeds of each method", "missing", "why", "published figures answered")


def read_reasons(folder: Path) -> dict[str, str]:
    """Reasons by pattern of settings, in the order of the file; none without such a file."""
    path = folder / REASONS
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["setting"]: row["reason"] for row in csv.DictReader(file)}


def state_page(records: Sequence[Record], reasons: Mapping[str, str]) -> list[Table | str]:
    """One row for each setting of the paper, and of ours on images, run or not."""
    held = {record.setting for record in records}
    answered = Counter(row.published.setting for row in compare(records))
    printed = Counter(row.setting for row in published())
    rows: dict[str, dict[str, Value]] = {}
    for name, setting in SETTINGS.items():
        runs = runs_of(records, name) if name in held else {}
        missing = _missing(setting, runs)
        why = next((reasons[x] for x in reasons if fnmatchcase(name, x)), "") if missing else ""
        figures = f"{answered[name]} of {printed[name]}" if name in PAPER else ""
        texts = (_seeds(name, runs), missing, why, figures)
        rows[name] = {column: text or None for column, text in zip(_NAMES, texts, strict=True)}
    columns = [plain(x, text=x != _NAMES[-1]) for x in _NAMES]
    done = sum(bool(rows[name][_NAMES[0]]) for name in PAPER)
    total = f"{answered.total():,} of {printed.total():,}"
    note = f"{done} of the paper's {len(PAPER)} settings have runs; {total} figures are answered."
    return [Table("The paper's settings, and ours", columns, rows, corner="setting"), note]


def _seeds(setting: str, runs: Runs) -> str:
    """Methods by their number of seeds, such as ``10: the paper's 7, softmax``."""
    groups: dict[int, list[str]] = {}
    for method, found in runs.items():
        name = "pocc on collapsed labels" if method == POCC_COLLAPSED else method
        groups.setdefault(len(found), []).append(name)
    paper = paper_methods(setting)
    texts = []
    for count, methods in groups.items():
        if set(paper) <= set(methods):
            methods = [f"the paper's {len(paper)}", *(m for m in methods if m not in paper)]
        texts.append(f"{count}: {', '.join(methods)}")
    return "; ".join(texts)


def _missing(setting: Setting, runs: Runs) -> str:
    """Methods, seeds and foreign images that the paper has and the records do not."""
    if not runs:
        return "all"
    fewest = min(len(runs[method]) for method in setting.methods if method in runs)
    places = [x for x in setting.foreign if not has(runs, metric_of("auroc", x))]
    parts = [method for method in setting.methods if method not in runs]
    parts += [f"{len(setting.seeds) - fewest} seeds"] if fewest < len(setting.seeds) else []
    parts += [f"foreign images of {enumerated(places)}"] if places else []
    return ", ".join(parts)
