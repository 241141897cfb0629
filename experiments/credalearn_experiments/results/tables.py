"""The tables of a setting: the paper's, deferral by other scores, foreign images, set sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from credalearn.errors import CredalError
from credalearn.metrics.balanced import LARGER_IS_BETTER
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import MAIN, Balance, compared
from credalearn_experiments.results.notes import notes
from credalearn_experiments.results.seeds import (
    Runs,
    has,
    mean_of_every,
    records_in,
    runs_of,
    seeds,
)
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_NAMES = {
    "accuracy": "ACC",
    "ece": "ECE",
    "auarc": "AUARC",
    "normalized_auarc": "normalized AUARC",
    "spearman_error": "Spearman",
}
_FIRST = "Accuracy, calibration and deferral"
# By title, the metrics that are balanced, and what follows the names of their scores.
_BALANCED: dict[str, tuple[tuple[str, ...], str]] = {
    _FIRST: (MAIN, ""),
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
_FOREIGN = {
    "AUROC, foreign against test images": "auroc_",
    "AUROC, foreign against training images": "auroc_training_",
}
_SET_SIZES = {
    "set_width_90": "width at 90 %",
    "set_coverage_90": "covered at 90 %",
    "set_width_95": "width at 95 %",
    "set_coverage_95": "covered at 95 %",
    "set_width_90_plain": "width at 90 %, all items alike",
}
_ABOUT_SETS = (
    "Width is the mean over items and classes of upper − lower, after half of the voted items "
    "decided how far all sets are widened; covered is the share of the other half whose vote "
    "shares lie in their widened set; means over 20 halvings per seed, ± over seeds."
    " For CIFAR-10H, CIFAR-10N and the nodules the default scale was chosen by widths on items of "
    "the same data sets, some of which are measured here; docs/sets.md measures on other items."
)


def setting_page(
    records: Iterable[Record],
    setting: str,
    *,
    balance: Sequence[str] | None = None,
    asked: Sequence[str] | None = None,
) -> list[Table | str]:
    """Every table that the records can fill; ``balance`` are the methods that BQS compares."""
    runs = runs_of(records, setting)
    tables = []
    for title, (metrics, suffix) in _BALANCED.items():
        if title == _FIRST or has(runs, metrics[-1]):
            columns = {
                name: Column(_NAMES[name], "higher" if LARGER_IS_BETTER[name] else "lower")
                for name in metrics
            }
            found = compared(runs, setting, metrics, asked=balance)
            tables.append(_balanced(method_table(title, runs, columns), runs, found, suffix))
        if title == _FIRST and has(runs, "auarc"):
            scores = {m: Column(name, digits=2) for m, name in _SCORES.items() if has(runs, m)}
            tables.append(method_table("AUARC by score", runs, scores))
    tables += [
        table
        for title, prefix in _FOREIGN.items()
        if (table := _foreign_table(title, runs, setting, prefix)) is not None
    ]
    titled = [replace(table, title=f"{setting}: {table.title}") for table in tables]
    return [*titled, *notes(runs, setting, compared(runs, setting, asked=balance), asked)]


def sets_page(records: Iterable[Record], settings: Sequence[str]) -> list[Table | str]:
    """Set sizes at equal coverage of every method that has them on all its seeds."""
    parts: list[Table | str] = []
    # Coverage is close to the target for every method, so it is not marked.
    columns = {
        metric: Column(name, "lower", marked="width" in metric, percent=False, digits=3)
        for metric, name in _SET_SIZES.items()
    }
    for setting in settings:
        runs = runs_of(records, setting)
        sized = {
            method: by_seed
            for method, by_seed in runs.items()
            if all(columns.keys() <= record.metrics.keys() for record in by_seed.values())
        }
        if not sized:
            raise CredalError(
                f"no method of setting {setting!r} has set sizes at equal coverage. To fix: use a "
                "setting whose items have held-out votes, such as cifar10h-features."
            )
        title = f"{setting}: sets at equal coverage of people's votes"
        parts += [method_table(title, sized, columns), *notes(runs, setting)]
    return [*parts, _ABOUT_SETS]


def method_table(title: str, runs: Runs, columns: Mapping[str, Column]) -> Table:
    """One row per method, with the number of seeds in the corner, or by each where they differ."""
    counts = {method: len(by_seed) for method, by_seed in runs.items()}
    same = len(set(counts.values())) == 1
    rows: dict[str, dict[str, Value]] = {
        method if same else f"{method} ({seeds(counts[method])})": {
            column.name: mean_of_every(by_seed, metric) for metric, column in columns.items()
        }
        for method, by_seed in runs.items()
    }
    corner = f"method ({seeds(next(iter(counts.values())))})" if same else "method (seeds)"
    return Table(title, list(columns.values()), rows, corner=corner)


def _balanced(table: Table, runs: Runs, found: Balance | None, suffix: str) -> Table:
    """The table with balanced scores as further columns."""
    if found is None:
        return table
    counts = {len(by_seed) for by_seed in runs.values()}
    few = "" if counts == {len(found.seeds)} else f", {seeds(len(found.seeds))}"
    quality, tested = Column(f"BQS{suffix}{few}"), Column(f"BQS-ST{suffix}{few}")
    rows: dict[str, dict[str, Value]] = {}
    for (name, row), method in zip(table.rows.items(), runs, strict=True):
        rows[name] = dict(row)
        if method in found.quality:
            score = found.significance[method].score
            rows[name][quality.name] = found.mean_and_std(method)
            rows[name][tested.name] = None if score is None else (score, None)
    columns = [*table.columns, quality, *([tested] if found.tested else [])]
    return replace(table, columns=columns, rows=rows)


def _foreign_table(title: str, runs: Runs, setting: str, prefix: str) -> Table | None:
    """AUROC of detecting foreign images by the method's own score, over seeds that measured it."""
    known = ALL_SETTINGS.get(setting)
    if known is not None and not known.foreign:  # POCC's in a collapsed setting
        return None
    found = {
        metric
        for record in records_in(runs)
        for metric in record.metrics
        if metric.startswith(prefix)
        and (prefix != "auroc_" or not metric.startswith("auroc_training_"))
    }
    order = [f"{prefix}{name.replace('-', '_')}" for name in (known.foreign if known else ())]
    metrics = [*(name for name in order if name in found), *sorted(found - set(order))]
    columns = {
        metric: Column(metric.removeprefix(prefix).replace("_", "-"), percent=False, digits=3)
        for metric in metrics
    }
    looked = {
        method: {seed: record for seed, record in by_seed.items() if found & record.metrics.keys()}
        for method, by_seed in runs.items()
    }
    looked = {method: by_seed for method, by_seed in looked.items() if by_seed}
    return method_table(title, looked, columns) if looked else None
