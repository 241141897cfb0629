"""Methods compared at equal coverage: how wide are their sets once these hold what people say?"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from credalearn.bench.records import Record
from credalearn.bench.seeds import count_of_seeds, mean_and_std, runs_of
from credalearn.errors import CredalError
from credalearn.escape import escape_csv, escape_latex, escape_markdown

# Metric: title, whether it is in per cent, digits. Coverage is near what was asked for whatever the
# method, so nothing is marked there; of widths the smallest is.
_COLUMNS: dict[str, tuple[str, bool, int]] = {
    "set_width_90": ("width at 90 %", False, 3),
    "set_coverage_90": ("covered (%)", True, 1),
    "set_width_95": ("width at 95 %", False, 3),
    "set_coverage_95": ("covered (%)", True, 1),
    "set_width_90_plain": ("width at 90 %, all items alike", False, 3),
}
ABOUT = (
    "Width is the mean over items and classes of upper − lower, after half of the voted items "
    "decided how far all sets are widened; covered is the share of the other half whose vote "
    "shares lie in their widened set; means over 20 halvings a seed, ± over seeds. The default "
    "scale was chosen by widths on items of the same data sets (the 4,000 held-out CIFAR-10H "
    "images and half of the nodule patients), and items measured here are among these; "
    "docs/sets.md measures on other items."
)


@dataclass(frozen=True, slots=True)
class SetSizes:
    """The sets of one method at equal coverage.

    Args:
        method: Its name.
        seeds: How many the values are over.
        values: By metric, mean and standard deviation, None of one seed.

    Example:
        >>> SetSizes("pocc", 3, {"set_width_90": (0.11, 0.002)}).seeds
        3
    """

    method: str
    seeds: int
    values: dict[str, tuple[float, float | None]]


def set_sizes_of(records: Iterable[Record], setting: str) -> list[SetSizes]:
    """The set sizes of every method of a setting that has them on all its seeds.

    Raises:
        CredalError: If the setting has no record, or none with set sizes.

    Example:
        >>> metrics = dict.fromkeys(_COLUMNS, 0.1)
        >>> record = Record(setting="cifar10h-voted", method="pocc", seed=1, metrics=metrics)
        >>> set_sizes_of([record], "cifar10h-voted")[0].values["set_width_90"]
        (0.1, None)
    """
    found = []
    for method, runs in runs_of(records, setting).items():
        values = {}
        for metric in _COLUMNS:
            value = mean_and_std(runs, metric)
            if value is not None and value[2] == len(runs):
                values[metric] = value[:2]
        if values.keys() == _COLUMNS.keys():
            found.append(SetSizes(method, len(runs), values))
    if not found:
        raise CredalError(
            f"no method of setting {setting!r} has sizes of sets at equal coverage. To fix: take a "
            "setting whose items have held-out votes, such as cifar10h-voted."
        )
    return found


def write_set_sizes(
    rows: Sequence[SetSizes], *, form: Literal["markdown", "latex", "csv"] = "markdown"
) -> str:
    """The table: a method a row, the smallest width of a column in bold.

    Example:
        >>> metrics = dict.fromkeys(_COLUMNS, (0.1, None))
        >>> print(write_set_sizes([SetSizes("pocc", 1, metrics)]).splitlines()[2])
        | pocc | **0.100** | 10.0 | **0.100** | 10.0 | **0.100** |
    """
    if form == "csv":
        return _csv(rows)
    best = {
        metric: min(_mean(row, metric) for row in rows) for metric in _COLUMNS if "width" in metric
    }
    counts = {row.seeds for row in rows}
    corner = f"method ({count_of_seeds(min(counts))})" if len(counts) == 1 else "method (seeds)"
    lines = [[corner, *(title for title, _, _ in _COLUMNS.values())]]
    bold, plus = ("**{}**", "±") if form == "markdown" else (r"\textbf{{{}}}", r"$\pm$")
    escape = escape_markdown if form == "markdown" else escape_latex
    lines[0] = [escape(text) for text in lines[0]]
    for row in rows:
        name = row.method if len(counts) == 1 else f"{row.method} ({count_of_seeds(row.seeds)})"
        cells = [escape(name)]
        for metric in _COLUMNS:
            mean, std = _mean(row, metric), _std(row, metric)
            text = bold.format(mean) if best.get(metric) == mean else mean
            cells.append(text if std is None else f"{text} {plus} {std}")
        lines.append(cells)
    if form == "markdown":
        lines.insert(1, [":--", *["--:"] * len(_COLUMNS)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)
    head, *body = (rf"{' & '.join(line)} \\" for line in lines)
    start = [rf"\begin{{tabular}}{{l{'r' * len(_COLUMNS)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*start, *body, r"\bottomrule", r"\end{tabular}", ""])


def _mean(row: SetSizes, metric: str) -> str:
    _, percent, digits = _COLUMNS[metric]
    return f"{(100 if percent else 1) * row.values[metric][0]:.{digits}f}"


def _std(row: SetSizes, metric: str) -> str | None:
    _, percent, digits = _COLUMNS[metric]
    std = row.values[metric][1]
    return None if std is None else f"{(100 if percent else 1) * std:.{digits}f}"


def _csv(rows: Sequence[SetSizes]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    heads = [f"{metric} {what}" for metric in _COLUMNS for what in ("mean", "std")]
    writer.writerow(["method", "seeds", *heads])
    for row in rows:
        numbers = [number for metric in _COLUMNS for number in row.values[metric]]
        shown = ["" if number is None else f"{number:.12g}" for number in numbers]
        writer.writerow([escape_csv(row.method), row.seeds, *shown])
    return file.getvalue()
