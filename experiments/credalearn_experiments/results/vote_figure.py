"""One figure of a family: metrics against the number of votes, one line per method and rule."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from credalearn_experiments.results.balance import rehearsal
from credalearn_experiments.results.seeds import has
from credalearn_experiments.results.style import line_of, save_figure
from credalearn_experiments.results.votes import METRICS, Cells, numbers_of
from credalearn_experiments.settings.votes import FAMILIES

PANELS = ("accuracy", "ece", "auarc", "human_cross_entropy", "human_coverage", "set_width_90")
_FAR_BELOW = 0.05  # the best accuracy: a rule that loses that much has failed


def vote_figure(
    cells: Cells, family: str, path: str | Path, metrics: Sequence[str] | None = None
) -> None:
    """One panel per metric: mean and standard deviation over seeds against votes per item.

    Where a rule is more than five points below the best accuracy at that number of votes, it is
    shown in the panel of the accuracy alone, and may leave it: the other lines would look alike.
    A rule that fails at every number of votes is not drawn.
    """
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
            _draw(axes, drawn, metric, family, failed)
        for axes in grid[len(shown) - columns : len(shown)]:  # no panel below
            axes.set_xlabel("votes per item")
        for axes in grid[len(shown) :]:
            axes.set_axis_off()
        handles, labels = grid[0].get_legend_handles_labels()
        figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11)
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))

    save_figure(draw, path, width=3.4 * columns + 0.4, height=2.7 * lines + 1.2)


def _draw(axes: Axes, cells: Cells, metric: str, family: str, failed: set[tuple[str, str]]) -> None:
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
