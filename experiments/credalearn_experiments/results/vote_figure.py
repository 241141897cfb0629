"""One figure of a family: metrics against the number of votes, a line a method and rule."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from credalearn.errors import CredalError
from credalearn_experiments.drawing.style import line_of, save_figure
from credalearn_experiments.results.rehearsal import subtitle
from credalearn_experiments.results.seeds import first_record, has
from credalearn_experiments.results.vote_tables import METRICS, Cells, numbers_held
from credalearn_experiments.settings.votes import FAMILIES, Family, in_words

PANELS = (
    *("accuracy", "ece", "auarc"),
    *("human_cross_entropy", "human_coverage", "set_width_90"),
)
_COLUMNS = 3
_FAR_BELOW = 0.05  # of the best accuracy: a rule that loses so much has failed


def vote_figure(
    cells: Cells, family: str, path: str | Path, *, metrics: Sequence[str] | None = None
) -> None:
    """Small multiples: each metric against votes an item, on a logarithmic axis.

    The line is the mean over the seeds, the band one standard deviation to each side. Where a rule
    leaves so much open that accuracy is more than five points below the best at that number of
    votes, it is shown in the panel of the accuracy alone, which its line may leave: the others
    would look alike; and one that is so at every number of votes is not drawn. The title says so.

    Args:
        cells: What :func:`credalearn_experiments.results.vote_tables.family_cells` returned.
        family: A key of ``FAMILIES``.
        path: Where to; the suffix says PNG, SVG or PDF.
        metrics: Keys of ``METRICS``, a panel each; unless given, of six those that any record has.

    Raises:
        CredalError: If no record has any of them, or the suffix is no picture's.

    Example:
        >>> import tempfile
        >>> from credalearn_experiments.records import Record
        >>> from credalearn_experiments.results.vote_tables import family_cells
        >>> record = Record(
        ...     setting="cifar10h-votes-3-idm", method="pocc", seed=1, metrics={"accuracy": 0.9}
        ... )
        >>> cells = family_cells([record], "cifar10h-votes")
        >>> vote_figure(cells, "cifar10h-votes", Path(tempfile.mkdtemp()) / "votes.svg")
    """
    shown = [metric for metric in metrics or PANELS if has(cells, metric)]
    if not shown:
        held = ", ".join(name for name in METRICS if has(cells, name))
        raise CredalError(
            f"no record of the family {family!r} has any of {', '.join(metrics or PANELS)}. "
            f"To fix: take one of {held}."
        )
    columns = min(_COLUMNS, len(shown))
    lines = -(-len(shown) // columns)

    failed = _failed(cells, FAMILIES[family])
    drawn = {
        row: by_number
        for row, by_number in cells.items()
        if any((row, _position(number, FAMILIES[family])) not in failed for number in by_number)
    }
    title = family
    if len(drawn) < len(cells):
        title += f", without {'; '.join(cells.keys() - drawn.keys())}"
    if failed:
        title += ": left out where accuracy is over 5 points below the best"
    title += subtitle(first_record(cells), FAMILIES[family].recipe.epochs)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(lines, columns, squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number >= len(shown):
                axes.set_axis_off()
                continue
            _draw(axes, drawn, shown[number], FAMILIES[family], failed)
            if number >= len(shown) - columns:  # nothing stands below it
                axes.set_xlabel("votes an item")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))

    save_figure(draw, path, width=3.4 * columns + 0.4, height=2.7 * lines + 1.2)


def _draw(
    axes: Axes, cells: Cells, metric: str, family: Family, failed: set[tuple[str, float]]
) -> None:
    column = METRICS[metric]
    scale = 100 if column.percent else 1
    numbers = numbers_held(cells, family)
    inside: list[float] = []
    for place, (row, by_number) in enumerate(cells.items()):
        points = {
            _position(number, family): [
                scale * record.metrics[metric]
                for record in by_number.get(number, {}).values()
                if metric in record.metrics
            ]
            for number in numbers
        }
        # A rule that failed would look perfect where wide sets are counted as a merit.
        hidden = {place for name, place in failed if name == row and metric != "accuracy"}
        points = {
            place: values for place, values in points.items() if values and place not in hidden
        }
        means = np.array([np.mean(values) for values in points.values()])
        stds = np.array([np.std(values) for values in points.values()])
        inside += [
            value
            for position, mean, std in zip(points, means, stds, strict=True)
            for value in (mean - std, mean + std)
            if (row, position) not in failed
        ]
        look = line_of(place)
        axes.plot(list(points), means, label=row, **look)
        axes.fill_between(
            list(points), means - stds, means + stds, color=look["color"], alpha=0.15, linewidth=0
        )
    axes.set_xscale("log")
    places = [_position(number, family) for number in numbers]
    axes.set_xticks(places, [in_words(number) for number in numbers])
    axes.xaxis.set_minor_locator(NullLocator())
    if failed and inside:
        margin = 0.08 * (max(inside) - min(inside)) or 1.0
        axes.set_ylim(min(inside) - margin, max(inside) + margin)
    unit = " (%)" if column.percent else ""
    arrow = (" ↑" if column.better == "higher" else " ↓") if column.marked else ""
    axes.set_title(f"{column.name}{unit}{arrow}", fontsize=10)


def _failed(cells: Cells, family: Family) -> set[tuple[str, float]]:
    """Rows and places on the axis where next to nothing was learned."""
    means = {
        (row, _position(number, family)): np.mean(
            [record.metrics["accuracy"] for record in runs.values()]
        )
        for row, by_number in cells.items()
        for number, runs in by_number.items()
        if all("accuracy" in record.metrics for record in runs.values())
    }
    best = {
        position: max(mean for (_, other), mean in means.items() if other == position)
        for _, position in means
    }
    return {place for place, mean in means.items() if mean < best[place[1]] - _FAR_BELOW}


def _position(number: int | None, family: Family) -> float:
    """Where a number of votes stands on the axis."""
    return family.all_votes if number is None else number
