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
from credalearn_experiments.results.balance import FEWEST_SEEDS, MAIN, compared
from credalearn_experiments.results.notes import figure_title
from credalearn_experiments.results.score_figures import balance_figure, foreign_figure
from credalearn_experiments.results.seeds import runs_of, seeds
from credalearn_experiments.results.style import GRAY, line_of, save_figure

_SHOWN = 96  # points of a curve, up to 95 % deferred: beyond, few items are left
_MARKERS_PER_CURVE = 8
_LEGEND_INSIDE = 4  # lines; a longer legend would hide curves
_LEVEL = 0.05  # of significance
_CELLS = ListedColormap(["#ffffff", "#dddddd", "#002147"])  # dark in print too: lightness 13 %
_TITLES = {"accuracy": "accuracy", "ece": "calibration (1 − ECE)", "auarc": "deferral (AUARC)"}


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


FIGURES: dict[str, Callable[[Sequence[Record], str, Path], None]] = {
    "rejection": rejection_figure,
    "significance": significance_figure,
    "balance": balance_figure,
    "foreign": foreign_figure,
}
