"""Figures of a setting or a family from records; the path's suffix chooses PNG, SVG or PDF."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from credalearn.errors import CredalError
from credalearn_experiments.records import CURVE_POINTS, Record, metric_of
from credalearn_experiments.results.balance import (
    COMMON,
    DEFERRAL_SCORES,
    ENTROPY,
    OWN,
    compared,
    figure_title,
    rehearsal,
)
from credalearn_experiments.results.seeds import has, mean_and_std, row_names, runs_of
from credalearn_experiments.results.style import COLORS, line_of, save_figure
from credalearn_experiments.results.votes import METRICS, Cells, numbers_of
from credalearn_experiments.settings.catalog import ALL_SETTINGS, FAMILIES

_SHOWN = 96  # points of a curve, up to 95 % deferred: beyond, few items are left
_MARKERS_PER_CURVE = 8
_LEGEND_INSIDE = 4  # lines; a longer legend would hide curves
PANELS = ("accuracy", "ece", "auarc", "human_cross_entropy", "human_coverage", "set_width_90")
_FAR_BELOW = 0.05  # the best accuracy: a rule that loses that much has failed

Points = Mapping[str, tuple[float, float | None]]
"""Mean and standard deviation, None for one seed, by method."""

# By score: marker, color and name in the legend; the same in every figure.
_LOOKS = {
    OWN: ("o", COLORS[0], "own score"),
    ENTROPY: ("s", COLORS[1], "entropy difference instead of MMI"),
    COMMON: ("^", COLORS[2], "1 − top probability"),
}
_APART = 0.2  # rows between the markers of one method, so that none hides another


def rejection_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """Accuracy of the rest against the share deferred by each method's own uncertainty."""
    runs = runs_of(records, setting)
    curves = {
        method: np.array([r.curves["accuracy_rejection"] for r in found.values() if r.curves])
        for method, found in runs.items()
    }
    counts = {method: len(found) for method, found in curves.items() if len(found)}
    if not counts:
        raise CredalError(f"no record of setting {setting!r} has a curve accuracy_rejection.")

    def draw(figure: Figure) -> None:
        axes, deferred = figure.subplots(), 100 * np.linspace(0, 1, CURVE_POINTS)[:_SHOWN]
        every = -(-len(deferred) // _MARKERS_PER_CURVE)
        for place, (method, name) in enumerate(row_names(counts).items()):
            values, line = 100 * curves[method][:, :_SHOWN], line_of(place)
            mean, spread = values.mean(0), values.std(0)
            # Each curve starts its markers elsewhere, so that they do not hide each other.
            first = place * every // len(counts)
            axes.plot(deferred, mean, label=name, markevery=(first, every), **line)
            low, high = (mean - spread).clip(min=0), (mean + spread).clip(max=100)
            axes.fill_between(deferred, low, high, color=line["color"], alpha=0.12, linewidth=0)
        about = ", ± one standard deviation" if max(counts.values()) > 1 else ""
        axes.set(xlabel="deferred to a human (%)", ylabel=f"accuracy of the rest (%){about}")
        axes.margins(x=0)
        inside = {"loc": "upper left"}
        outside = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        axes.legend(handlelength=3, **(inside if len(counts) <= _LEGEND_INSIDE else outside))
        axes.set_title("\n".join(figure_title(runs, setting, counts.values())))

    save_figure(draw, path, width=7.2, height=4.2)


def balance_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """BQS, and BQS-ST where it is tested, by the score that items are deferred by."""
    runs = runs_of(records, setting)
    each = {score: compared(runs, setting, score=score) for score in DEFERRAL_SCORES}
    found = {name: balance for name, balance in each.items() if balance is not None}
    if OWN not in found or len(found) == 1:
        raise CredalError(f"two methods of setting {setting!r} must share a seed, and scores.")
    panels: dict[str, dict[str, Points]] = {
        "balanced quality score, BQS (%)": {
            name: {method: balance.mean_and_std(method) for method in balance.quality}
            for name, balance in found.items()
        }
    }
    if found[OWN].tested:
        panels["BQS-ST (%)"] = {
            name: {
                m: (x.score, None) for m, x in balance.significance.items() if x.score is not None
            }
            for name, balance in found.items()
        }
    title = figure_title(runs, setting, [len(found[OWN].seeds)])
    rows = {method: method for method in found[OWN].quality}
    _save(panels, rows, title, path, scale=100)


def foreign_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """AUROC of foreign against test images, by each method's own score and by a common one."""
    runs = runs_of(records, setting)
    foreign = ALL_SETTINGS[setting].foreign if setting in ALL_SETTINGS else ()
    panels: dict[str, dict[str, Points]] = {}
    for place in foreign:
        metrics = {OWN: metric_of("auroc", place)}
        metrics[COMMON] = metric_of("auroc-top-probability", place)
        points: dict[str, Points] = {
            name: {m: x[:2] for m, found in runs.items() if (x := mean_and_std(found, metric))}
            for name, metric in metrics.items()
        }
        if points[COMMON]:
            panels[f"AUROC, {place}"] = points
    if not panels:
        raise CredalError(
            f"no record of setting {setting!r} separates foreign images by 1 − top probability. "
            "To fix: measure its runs again with `credalearn-experiments run --measure`."
        )
    counts = {method: len(found) for method, found in runs.items()}
    _save(panels, row_names(counts), figure_title(runs, setting, counts.values()), path, scale=1)


def _save(
    panels: Mapping[str, Mapping[str, Points]],
    rows: Mapping[str, str],
    title: Sequence[str],
    path: Path,
    *,
    scale: float,
) -> None:
    """Panels with one row per method: a marker and ± one standard deviation per score."""
    methods = list(rows)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, points) in zip(grid, panels.items(), strict=True):
            for place, (score, by_method) in enumerate(points.items()):
                shown = {methods.index(method): x for method, x in by_method.items()}
                height = _APART * (place - (len(points) - 1) / 2)
                marker, color, label = _LOOKS[score]
                axes.errorbar(
                    [scale * mean for mean, _ in shown.values()],
                    [row + height for row in shown],
                    xerr=[scale * (std or 0) for _, std in shown.values()],
                    fmt=marker,
                    color=color,
                    markerfacecolor=color if score == OWN else "white",
                    elinewidth=1,
                    label=label,
                )
            axes.set_xlabel(name)
        grid[0].set_yticks(range(len(rows)), rows.values())
        grid[0].invert_yaxis()
        _frame(figure, title, columns=len(_LOOKS))

    width = max(6.2, 2.2 + 2.8 * len(panels))  # the legend needs 6
    save_figure(draw, path, width=width, height=1.5 + 0.33 * len(rows))


FIGURES: dict[str, Callable[[Sequence[Record], str, Path], None]] = {
    "rejection": rejection_figure,
    "balance": balance_figure,
    "foreign": foreign_figure,
}


def _frame(figure: Figure, title: Sequence[str], *, columns: int) -> None:
    """Title and legend around all panels."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11)
    columns = min(columns, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def vote_figure(
    cells: Cells, family: str, path: str | Path, metrics: Sequence[str] | None = None
) -> None:
    """One panel per metric: mean and standard deviation over seeds against votes per item."""
    # Where a rule is more than five points below the best accuracy at that number of votes, it is
    # in the panel of the accuracy alone, and may leave it: the other lines would look alike.
    shown = [metric for metric in metrics or PANELS if has(cells, metric)]
    failed = _failed(cells)
    drawn = {r: cell for r, cell in cells.items() if any((r, n) not in failed for n in cell)}
    gone = [row for row in cells if row not in drawn]
    without = f", without {'; '.join(gone)}" if gone else ""
    about = ": left out where accuracy is over 5 points below the best" if failed else ""
    title = [f"{family}{without}{about}", *rehearsal(cells)]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)

    def draw(figure: Figure) -> None:
        grid = list(figure.subplots(lines, columns, squeeze=False).flat)
        for metric, axes in zip(shown, grid, strict=False):
            _draw_votes(axes, drawn, metric, family, failed)
        for axes in grid[len(shown) - columns : len(shown)]:  # no panel below
            axes.set_xlabel("votes per item")
        for axes in grid[len(shown) :]:
            axes.set_axis_off()
        _frame(figure, title, columns=4)

    save_figure(draw, path, width=3.4 * columns + 0.4, height=2.7 * lines + 1.2)


def _draw_votes(
    axes: Axes, cells: Cells, metric: str, family: str, failed: set[tuple[str, str]]
) -> None:
    column = METRICS[metric]
    inside: list[float] = []
    places = {
        number: FAMILIES[family].all_votes if number == "all" else float(number)
        for number in numbers_of(cells, family)
    }
    for place, (row, by_number) in enumerate(cells.items()):
        values = {
            number: np.array([r.metrics[metric] for r in runs.values() if metric in r.metrics])
            for number, runs in by_number.items()
            # A rule that failed would look perfect where wide sets count as good.
            if metric == "accuracy" or (row, number) not in failed
        }
        points = {n: (100 if column.percent else 1) * x for n, x in values.items() if len(x)}
        at = [places[number] for number in points]
        means = np.array([x.mean() for x in points.values()])
        stds = np.array([x.std() for x in points.values()])
        kept = np.array([(row, number) not in failed for number in points], dtype=bool)
        inside += [*(means - stds)[kept], *(means + stds)[kept]]
        look = line_of(place)
        band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        axes.plot(at, means, label=row, **look)
        axes.fill_between(at, means - stds, means + stds, **band)
    axes.set_xscale("log")
    axes.set_xticks(list(places.values()), list(places))
    axes.xaxis.set_minor_locator(NullLocator())
    if failed and inside:
        margin = 0.08 * (max(inside) - min(inside)) or 1.0
        axes.set_ylim(min(inside) - margin, max(inside) + margin)
    axes.set_title(column.head, fontsize=10)


def _failed(cells: Cells) -> set[tuple[str, str]]:
    """Rows and numbers of votes where next to nothing was learned."""
    means = {
        (row, number): float(np.mean([record.metrics["accuracy"] for record in runs.values()]))
        for row, by_number in cells.items()
        for number, runs in by_number.items()
    }
    best = {number: max(x for (_, n), x in means.items() if n == number) for _, number in means}
    return {cell for cell, mean in means.items() if mean < best[cell[1]] - _FAR_BELOW}
