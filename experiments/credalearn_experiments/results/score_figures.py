"""Figures that compare scores: balanced scores, and foreign against test images."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credalearn.errors import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import (
    COMMON,
    DEFERRED_BY,
    ENTROPY,
    OWN,
    compared,
    deferred_by,
)
from credalearn_experiments.results.notes import figure_title
from credalearn_experiments.results.seeds import mean_and_std, runs_of, seeds
from credalearn_experiments.results.style import COLORS, save_figure
from credalearn_experiments.settings.catalog import ALL_SETTINGS

Points = Mapping[str, tuple[float, float | None]]
"""Mean and standard deviation, None for one seed, by method."""

# By score: marker, color and name in the legend; the same in every figure.
_LOOKS = {
    OWN: ("o", COLORS[0], "own score"),
    ENTROPY: ("s", COLORS[1], "entropy difference instead of MMI"),
    COMMON: ("^", COLORS[2], "1 − top probability"),
}
_APART = 0.2  # rows between the markers of one method, so that none hides another


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
