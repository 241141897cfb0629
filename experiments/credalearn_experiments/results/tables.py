"""The tables of a setting: the paper's, deferral by other scores, foreign images, set sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from credalearn_experiments.records import Record, metric_of
from credalearn_experiments.results.balance import DEFERRAL_SCORES, MAIN, Balance, compared, notes
from credalearn_experiments.results.seeds import Runs, has, mean_of_every, row_names, runs_of, seeds
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_COLUMNS = {
    "accuracy": Column("ACC"),
    "ece": Column("ECE", "lower"),
    "auarc": Column("AUARC"),
    "normalized_auarc": Column("normalized AUARC"),
    "spearman_error": Column("Spearman"),
}
# By the metric that is balanced with accuracy and ECE: title, and the end of the scores' names.
_BALANCED = {
    "normalized_auarc": ("Normalized AUARC", "-normalized"),
    "spearman_error": ("Rank correlation of uncertainty and error", "-Spearman"),
}
_SCORES = {
    "auarc": Column("own score", digits=2),
    "auarc_top_probability": Column("top probability", digits=2),
    "auarc_lower_probability": Column("lower probability", digits=2),
    "auarc_mmi": Column("MMI", digits=2),
    "auarc_entropy_difference": Column("H_diff", digits=2),
}
_TEMPERED = {
    "ece": Column("ECE as trained", "lower"),
    "ece_tempered": Column("ECE, one temperature", "lower"),
}
_FOREIGN = {
    "AUROC, foreign against test images": "auroc",
    "AUROC, foreign against training images": "auroc_training",
}
# Coverage is close to the target for every method, so it is not marked.
_SET_SIZES = {
    metric: Column(name, "lower", marked="width" in metric, percent=False, digits=3)
    for metric, name in {
        "set_width_90": "width at 90 %",
        "set_coverage_90": "covered at 90 %",
        "set_width_95": "width at 95 %",
        "set_coverage_95": "covered at 95 %",
        "set_width_90_plain": "width at 90 %, all items alike",
        "set_width_90_stretched": "the same, stretched before",
        "set_width_90_formula": "the same, center ± f·√(p(1 − p))",
        "set_width_90_scaled": "width at 90 %, best scale",
    }.items()
}


def setting_page(
    records: Iterable[Record], setting: str, balance: Sequence[str] | None = None
) -> list[Table | str]:
    """Every table that the records can fill; ``balance`` are the methods that BQS compares."""
    runs = runs_of(records, setting)
    main = compared(runs, setting, asked=balance)
    title = f"{setting}: Accuracy, calibration and deferral"
    tables = [_balanced_table(title, runs, MAIN, main, "")]
    title = f"{setting}: Calibration error after one temperature"
    tables += _measured(title, runs, _TEMPERED, ["ece_tempered"])
    scores = {metric: column for metric, column in _SCORES.items() if has(runs, metric)}
    tables += _measured(f"{setting}: AUARC by score", runs, scores)
    if main is not None and has(runs, "auarc_top_probability"):
        tables.append(_by_deferral(f"{setting}: Balanced scores by score", runs, setting, balance))
    for metric, (title, suffix) in _BALANCED.items():
        if has(runs, metric):
            metrics = ("accuracy", "ece", metric)
            found = compared(runs, setting, metrics, balance)
            tables.append(_balanced_table(f"{setting}: {title}", runs, metrics, found, suffix))
    foreign = ALL_SETTINGS[setting].foreign if setting in ALL_SETTINGS else ()
    for place in foreign:
        names = {metric_of(m.replace("auarc", "auroc"), place): x for m, x in _SCORES.items()}
        columns = {m: replace(x, percent=False, digits=3) for m, x in names.items() if has(runs, m)}
        if len(columns) > 1:
            tables += _measured(f"{setting}: AUROC by score, {place}", runs, columns)
    for title, prefix in _FOREIGN.items():
        titles = {metric_of(prefix, each): each for each in foreign}
        columns = {m: Column(x, percent=False, digits=3) for m, x in titles.items() if has(runs, m)}
        tables += _measured(f"{setting}: {title}", runs, columns)
    tables += _measured(f"{setting}: Sets at equal coverage of people's votes", runs, _SET_SIZES)
    return [*tables, *notes(runs, setting, main)]


def _measured(
    title: str, runs: Runs, columns: Mapping[str, Column], needed: Iterable[str] = ()
) -> list[Table]:
    """A table of the runs that have one of the metrics, or of those that are needed; or none."""
    wanted = set(needed) or columns.keys()
    some = {
        method: {seed: each for seed, each in by_seed.items() if wanted & each.metrics.keys()}
        for method, by_seed in runs.items()
    }
    some = {method: by_seed for method, by_seed in some.items() if by_seed}
    return [method_table(title, some, columns)] if some else []


def _by_deferral(title: str, runs: Runs, setting: str, asked: Sequence[str] | None) -> Table:
    """The balanced scores, with each method's own score and with others in its place."""
    rows: dict[str, dict[str, Value]] = {}
    columns = []
    for score in DEFERRAL_SCORES:
        found = compared(runs, setting, asked=asked, score=score)
        if found is not None:
            more, cells = _balanced(found, f", {score}")
            columns += more
            rows |= {method: rows.get(method, {}) | each for method, each in cells.items()}
    return Table(title, columns, rows)


def _balanced(found: Balance, suffix: str) -> tuple[list[Column], dict[str, dict[str, Value]]]:
    """Columns of both balanced scores, and their values by method."""
    quality, tested = Column(f"BQS{suffix}"), Column(f"BQS-ST{suffix}")
    cells: dict[str, dict[str, Value]] = {}
    for method, place in found.significance.items():
        score = None if place.score is None else (place.score, None)
        cells[method] = {quality.name: found.mean_and_std(method), tested.name: score}
    return [quality, *([tested] if found.tested else [])], cells


def method_table(title: str, runs: Runs, columns: Mapping[str, Column]) -> Table:
    """One row per method, with the number of seeds in the corner, or by each where they differ."""
    counts = {method: len(by_seed) for method, by_seed in runs.items()}
    same = len(set(counts.values())) == 1
    rows: dict[str, dict[str, Value]] = {
        name: {c.name: mean_of_every(runs[method], metric) for metric, c in columns.items()}
        for method, name in row_names(counts).items()
    }
    corner = f"method ({seeds(max(counts.values()))})" if same else "method (seeds)"
    return Table(title, list(columns.values()), rows, corner=corner)


def _balanced_table(
    title: str, runs: Runs, metrics: Sequence[str], found: Balance | None, suffix: str
) -> Table:
    """The metrics, and their balanced scores as further columns."""
    table = method_table(title, runs, {metric: _COLUMNS[metric] for metric in metrics})
    if found is None:
        return table
    same = {len(by_seed) for by_seed in runs.values()} == {len(found.seeds)}
    few = "" if same else f", {seeds(len(found.seeds))}"
    more, cells = _balanced(found, f"{suffix}{few}")
    named = zip(runs, table.rows.items(), strict=True)
    rows = {name: {**row, **cells.get(method, {})} for method, (name, row) in named}
    return Table(title, [*table.columns, *more], rows, corner=table.corner)
