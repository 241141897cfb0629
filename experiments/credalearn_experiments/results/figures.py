"""Figures of a setting from its records; the suffix of the path chooses PNG, SVG or PDF.

Shapes: R repetitions, S shares deferred.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from credalearn.errors import CredalError
from credalearn.metrics import pairwise_p_values
from credalearn_experiments.records import CURVE_POINTS, Record
from credalearn_experiments.results.balance import (
    COMMON,
    DEFERRED_BY,
    ENTROPY,
    FEWEST_SEEDS,
    MAIN,
    OWN,
    compared,
    deferred_by,
    figure_title,
)
from credalearn_experiments.results.seeds import mean_and_std, runs_of, seeds
from credalearn_experiments.results.style import COLORS, GRAY, line_of, save_figure
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_SHOWN = 96  # points of a curve, up to 95 % deferred: beyond, few items are left
_MARKERS_PER_CURVE = 8
_LEGEND_INSIDE = 4  # lines; a longer legend would hide curves
_LEVEL = 0.05  # of significance
_CELLS = ListedColormap(["#ffffff", "#dddddd", "#002147"])  # dark in print too: lightness 13 %
_TITLES = {"accuracy": "accuracy", "ece": "calibration (1 − ECE)", "auarc": "deferral (AUARC)"}


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
    same = len(set(counts.values())) == 1

    def draw(figure: Figure) -> None:
        axes, deferred = figure.subplots(), 100 * np.linspace(0, 1, CURVE_POINTS)[:_SHOWN]
        every = -(-len(deferred) // _MARKERS_PER_CURVE)
        for place, (method, count) in enumerate(counts.items()):
            values, line = 100 * curves[method][:, :_SHOWN], line_of(place)
            mean, spread = values.mean(0), values.std(0)
            name = method if same else f"{method} ({seeds(count)})"
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


def significance_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """P-values that one method is better than another, one matrix per metric."""
    runs = runs_of(records, setting)
    found = compared(runs, setting)
    if found is None or not found.tested:
        raise CredalError(
            f"two methods of setting {setting!r} must have {FEWEST_SEEDS} seeds in common: with "
            "fewer no one-sided test at 5 % can be significant. To fix: run more seeds."
        )
    methods = list(found.quality)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, metric in zip(panels, MAIN, strict=True):
            draw_tests(axes, pairwise_p_values(found.values, metric), methods)
            axes.set_title(_TITLES[metric])
        for axes in panels[1:]:
            axes.set(ylabel="", yticklabels=[])
        # Below the middle, where it has the width of three matrices: names of settings are long.
        title, *more = figure_title(runs, setting, [len(found.seeds)])
        about = f"{title}: p-values of one-sided signed-rank tests, dark where p < {_LEVEL}"
        panels[1].set_xlabel("\n".join(["than this one\n", about, *more]))

    save_figure(draw, path, width=3.0 + 1.35 * len(methods), height=1.9 + 0.42 * len(methods))


def draw_tests(axes: Axes, p: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> None:
    """P-values that the row is better than the column; dark and bold where significant."""
    size = len(methods)
    shade = [[1 if a == b else 2 * (p[a][b] < _LEVEL) for b in methods] for a in methods]
    edges = np.arange(size + 1) - 0.5
    look: dict[str, Any] = {"edgecolors": "#bbbbbb", "linewidth": 0.8, "vmin": 0, "vmax": 2}
    axes.pcolormesh(edges, edges, shade, cmap=_CELLS, **look)
    for row, column in np.argwhere(~np.eye(size, dtype=bool)):
        value = p[methods[row]][methods[column]]
        look = {"color": "white", "fontweight": "bold"} if value < _LEVEL else {"color": GRAY}
        look |= {"ha": "center", "va": "center", "fontsize": 8 if size <= 8 else 7}
        axes.text(column, row, _p_text(value), **look)
    axes.set_xticks(range(size), methods, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(size), methods)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    axes.set(xlabel="than this one", ylabel="this method is better")


def _p_text(p: float) -> str:
    """Three decimals without the zero before the point; more where they would hide p < 0.05."""
    if p < 0.0005:
        return "<.001"
    digits = next((d for d in range(3, 6) if (round(p, d) < _LEVEL) == (p < _LEVEL)), 6)
    return f"{p:.{digits}f}".removeprefix("0")


def balance_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """BQS, and BQS-ST where it is tested, by the score that items are deferred by.

    The paper's figures of robustness show the entropy difference as POCC's score.
    """
    runs = runs_of(records, setting)
    each = {name: compared(deferred_by(runs, name), setting) for name in DEFERRED_BY}
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
        key = place.replace("-", "_")
        metrics = {OWN: f"auroc_{key}", COMMON: f"auroc_top_probability_{key}"}
        points: dict[str, Points] = {
            name: {m: x[:2] for m, found in runs.items() if (x := mean_and_std(found, metric))}
            for name, metric in metrics.items()
        }
        if points[COMMON]:
            panels[f"AUROC, {place}"] = points
    if not panels:
        raise CredalError(
            f"no record of setting {setting!r} separates foreign images by 1 − top probability. "
            "To fix: measure its runs again with `credalearn-experiments measure`."
        )
    counts = {method: len(found) for method, found in runs.items()}
    same = len(set(counts.values())) == 1
    rows = {m: m if same else f"{m} ({seeds(count)})" for m, count in counts.items()}
    _save(panels, rows, figure_title(runs, setting, counts.values()), path, scale=1)


def _save(
    panels: Mapping[str, Mapping[str, Points]],
    rows: Mapping[str, str],
    title: Sequence[str],
    path: Path,
    *,
    scale: float,
) -> None:
    """Panels next to each other; ``rows`` are the names of the methods, as they are printed."""

    def draw(figure: Figure) -> None:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, points) in zip(grid, panels.items(), strict=True):
            draw_points(axes, points, list(rows), scale=scale)
            axes.set_xlabel(name)
        grid[0].set_yticks(range(len(rows)), rows.values())
        grid[0].invert_yaxis()
        handles, labels = grid[0].get_legend_handles_labels()
        figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11)
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))

    width = max(6.2, 2.2 + 2.8 * len(panels))  # the legend needs 6
    save_figure(draw, path, width=width, height=1.5 + 0.33 * len(rows))


def draw_points(
    axes: Axes, points: Mapping[str, Points], methods: Sequence[str], *, scale: float
) -> None:
    """One row per method, with a marker and a line of ± one standard deviation per score."""
    for place, (score, by_method) in enumerate(points.items()):
        rows = [method for method in methods if method in by_method]
        height = _APART * (place - (len(points) - 1) / 2)
        marker, color, label = _LOOKS[score]
        axes.errorbar(
            [scale * by_method[method][0] for method in rows],
            [methods.index(method) + height for method in rows],
            xerr=[scale * (by_method[method][1] or 0) for method in rows],
            fmt=marker,
            color=color,
            markerfacecolor=color if score == OWN else "white",
            elinewidth=1,
            label=label,
        )


FIGURES: dict[str, Callable[[Sequence[Record], str, Path], None]] = {
    "rejection": rejection_figure,
    "significance": significance_figure,
    "balance": balance_figure,
    "foreign": foreign_figure,
}
