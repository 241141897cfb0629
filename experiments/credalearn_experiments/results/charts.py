"""Charts of methods: curves of deferral, balanced scores, pairwise tests, ours and the paper's.

Shapes: M methods, R repetitions, S shares deferred.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from credalearn_experiments.results.published import Comparison
from credalearn_experiments.results.style import COLORS, GRAY, color_of, line_of, plain

_LEGEND_INSIDE = 4  # lines; a longer legend would hide curves
_MARKERS_PER_CURVE = 8
_LEVEL = 0.05
_WHITE, _EMPTY, _DARK = "#ffffff", "#dddddd", "#002147"  # dark in print too: lightness 13 %


def draw_rejection(axes: Axes, deferred: np.ndarray, curves: Mapping[str, np.ndarray]) -> None:
    """Accuracy of the rest against the share deferred.

    Args:
        axes: Where to draw.
        deferred: Shares deferred, shape (S,).
        curves: By name, accuracies at these shares, shape (R, S); drawn are their mean and one
            standard deviation to each side.
    """
    every = -(-len(deferred) // _MARKERS_PER_CURVE)
    for place, (name, values) in enumerate(curves.items()):
        mean, spread, line = values.mean(0), values.std(0), line_of(place)
        # Each curve starts its markers elsewhere, so that they do not hide each other.
        first = place * every // len(curves)
        axes.plot(100 * deferred, 100 * mean, label=plain(name), markevery=(first, every), **line)
        low, high = 100 * (mean - spread).clip(min=0), 100 * (mean + spread).clip(max=1)
        axes.fill_between(100 * deferred, low, high, color=line["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel="deferred to a human (%)", ylabel="accuracy of the rest (%)")
    axes.margins(x=0)
    inside = len(curves) <= _LEGEND_INSIDE
    where = (
        {"loc": "upper left"} if inside else {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    )
    axes.legend(handlelength=3, **where)


def draw_bars(axes: Axes, scores: Mapping[str, tuple[float, float | None]]) -> None:
    """Balanced scores: one bar per method, the first on top, with deviation and numbers."""
    places = np.arange(len(scores))
    mean = 100 * np.array([center for center, _ in scores.values()])
    std = 100 * np.array([spread or 0.0 for _, spread in scores.values()])
    known = [place for place, (_, spread) in enumerate(scores.values()) if spread is not None]
    axes.barh(places, mean, height=0.7, color=[color_of(place) for place in range(len(scores))])
    # White under black: visible on every bar, the black one too, and beyond its end.
    for color, width, cap in (("white", 3.5, 5.0), ("black", 1.2, 4.0)):
        look: dict[str, Any] = {"elinewidth": width, "capthick": width, "capsize": cap}
        axes.errorbar(mean[known], places[known], xerr=std[known], fmt="none", ecolor=color, **look)
    for place, center in enumerate(mean):
        text = f"{center:.1f} ± {std[place]:.1f}" if place in known else f"{center:.1f}"
        axes.text(1.02, place, text, va="center", transform=axes.get_yaxis_transform())
    axes.set_yticks(places, [plain(name) for name in scores])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(min(0.0, (mean - std).min()), max(100.0, (mean + std).max()))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set_xlabel("balanced quality score (%)")


def draw_tests(
    axes: Axes, p_values: Mapping[str, Mapping[str, float]], methods: Sequence[str]
) -> None:
    """Matrix of p-values that the method of the row is better than the method of the column.

    Significant cells are dark with bold numbers: readable without color.
    """
    size = len(methods)
    p = np.array([[1.0 if a == b else p_values[a][b] for b in methods] for a in methods])
    diagonal = np.eye(size, dtype=bool)
    shade = np.where(diagonal, 1, np.where(p < _LEVEL, 2, 0))
    edges = np.arange(size + 1) - 0.5
    look: dict[str, Any] = {"edgecolors": "#bbbbbb", "linewidth": 0.8, "vmin": 0, "vmax": 2}
    axes.pcolormesh(edges, edges, shade, cmap=ListedColormap([_WHITE, _EMPTY, _DARK]), **look)
    for row, column in np.argwhere(~diagonal):
        better = p[row, column] < _LEVEL
        axes.text(
            *(column, row, _p_text(p[row, column])),
            ha="center",
            va="center",
            fontsize=8 if size <= 8 else 7,
            color="white" if better else GRAY,
            fontweight="bold" if better else "normal",
        )
    names = [plain(name) for name in methods]
    axes.set_xticks(range(size), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(size), names)
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


def draw_published(axes: Axes, rows: Sequence[Comparison | None]) -> None:
    """Ours as a filled dot, slightly above the line of the method, theirs as an open square."""
    for place, row in enumerate(rows):
        if row is None:
            continue
        for label, shift, value, marker, fill in (
            ("ours", -0.15, row, "o", COLORS[0]),
            ("paper", 0.15, row.published, "s", "white"),
        ):
            taken = axes.get_legend_handles_labels()[1]
            axes.errorbar(
                *(value.mean, place + shift),
                xerr=value.std,
                label="_" if label in taken else label,
                fmt=marker,
                color=COLORS[label == "paper"],
                markerfacecolor=fill,
                capsize=3,
                elinewidth=1.5,
            )
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    for between in range(1, len(rows)):
        axes.axhline(between - 0.5, color="#dddddd", linewidth=0.8)
