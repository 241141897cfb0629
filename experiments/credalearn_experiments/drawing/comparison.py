"""Figures that compare methods over seeds: balanced scores and pairwise tests.

Shapes: M methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike

from credalearn._formats import check_share
from credalearn.errors import CredalError
from credalearn_experiments.drawing.style import GRAY, color_of

_WHITE, _EMPTY, _DARK = "#ffffff", "#dddddd", "#002147"  # dark in print too: lightness 13 %


class MeanAndStd(Protocol):
    """What a bar needs: :class:`credalearn.metrics.BalancedQuality` has it."""

    @property
    def mean(self) -> float:
        """Mean over the seeds."""

    @property
    def std(self) -> float:
        """Standard deviation over the seeds."""


def draw_balanced_quality(
    axes: Axes, scores: Mapping[str, MeanAndStd | tuple[float, float | None]]
) -> None:
    """A bar a method, the first on top, with one standard deviation to each side and the numbers.

    Args:
        axes: Where to draw.
        scores: By method, what :func:`credalearn.metrics.balanced_quality` returns, or
            ``(mean, std)``, as shares; None for the std where there is none, as of one seed.

    Raises:
        CredalError: If there is no method, a mean leaves [0, 1], or a deviation is negative.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> draw_balanced_quality(axes, {"POCC": (0.86, 0.061), "EDL": (0.331, None)})
        >>> [text.get_text() for text in axes.texts]
        ['86.0 ± 6.1', '33.1']
    """
    if not scores:
        raise CredalError("scores must hold one method or more; got none.")
    values = [_mean_and_std(name, given) for name, given in scores.items()]
    places = np.arange(len(values))
    mean = 100 * np.array([center for center, _ in values])
    std = 100 * np.array([spread or 0.0 for _, spread in values])
    known = [place for place, (_, spread) in enumerate(values) if spread is not None]
    axes.barh(places, mean, height=0.7, color=[color_of(place) for place in range(len(values))])
    # White under black: seen on every bar, the black one too, and beyond its end.
    for color, width, cap in (("white", 3.5, 5.0), ("black", 1.2, 4.0)):
        style: dict[str, Any] = {
            "ecolor": color,
            "elinewidth": width,
            "capthick": width,
            "capsize": cap,
        }
        axes.errorbar(mean[known], places[known], xerr=std[known], fmt="none", **style)
    for place, center in enumerate(mean):
        text = f"{center:.1f} ± {std[place]:.1f}" if place in known else f"{center:.1f}"
        axes.text(1.02, place, text, va="center", transform=axes.get_yaxis_transform())
    axes.set_yticks(places, [_plain(name) for name in scores])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(min(0.0, (mean - std).min()), max(100.0, (mean + std).max()))
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlabel("balanced quality score (%)")


def draw_significance(
    axes: Axes,
    p_values: ArrayLike | Mapping[str, Mapping[str, float]],
    methods: Sequence[str],
    *,
    level: float = 0.05,
) -> None:
    """Matrix of p-values that the method of the row is better than the method of the column.

    Significant cells, p < level, are dark with light, bold numbers: readable without color. Three
    decimals, more where three would read as the other side of the level. The diagonal is empty.

    Args:
        axes: Where to draw.
        p_values: Shape (M, M), whose diagonal is not looked at, or ``p[a][b]`` as
            :func:`credalearn.metrics.pairwise_p_values` returns it.
        methods: The M names, in the order of the rows and columns.
        level: Largest probability of calling a difference that is none, in (0, 1).

    Raises:
        CredalError: If shapes or names do not fit, or a value is no probability.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> draw_significance(axes, [[0, 0.001], [1, 0]], ["POCC", "EDL"])
        >>> [text.get_text() for text in axes.texts]
        ['.001', '1.000']
    """
    check_share(level, name="level")
    p = _matrix(p_values, methods)
    size = len(methods)
    diagonal = np.eye(size, dtype=bool)
    shade = np.where(diagonal, 1, np.where(p < level, 2, 0))
    colors = ListedColormap([_WHITE, _EMPTY, _DARK])
    edges = np.arange(size + 1) - 0.5
    style: dict[str, Any] = {"edgecolors": "#bbbbbb", "linewidth": 0.8}
    axes.pcolormesh(edges, edges, shade, cmap=colors, vmin=0, vmax=2, **style)
    for row, column in np.argwhere(~diagonal):
        better = p[row, column] < level
        axes.text(
            *(column, row, _p_text(p[row, column], level)),
            ha="center",
            va="center",
            fontsize=8 if size <= 8 else 7,
            color="white" if better else GRAY,
            fontweight="bold" if better else "normal",
        )
    names = [_plain(name) for name in methods]
    turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(size), names, **turned)
    axes.set_yticks(range(size), names)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    axes.set_ylabel("this method is better")
    axes.set_xlabel(f"than this one: p-value, dark where p < {level:g}")


def _plain(name: str) -> str:
    """A name as it is: tick labels read what stands between two $ as mathematics."""
    return name.replace("$", r"\$")


def _p_text(p: float, level: float) -> str:
    """Without the zero before the point: so ten methods fit a column of text."""
    if p < 0.0005:
        return "<.001"
    digits = next((d for d in range(3, 6) if (round(p, d) < level) == (p < level)), 6)
    return f"{p:.{digits}f}".removeprefix("0")


def _mean_and_std(
    name: str, given: MeanAndStd | tuple[float, float | None]
) -> tuple[float, float | None]:
    mean, std = given if isinstance(given, tuple) else (given.mean, given.std)
    if not (0 <= mean <= 1 and (std is None or 0 <= std < np.inf)):
        raise CredalError(
            f"a mean must lie in [0, 1] and its deviation be 0 or more; scores[{name!r}] has "
            f"mean {mean} and std {std}. To fix: give shares, not per cent."
        )
    return mean, std


def _matrix(
    p_values: ArrayLike | Mapping[str, Mapping[str, float]], methods: Sequence[str]
) -> np.ndarray:
    """The p-values as an array of shape (M, M), checked off the diagonal."""
    size = len(methods)
    if isinstance(methods, str) or size < 2 or len(set(methods)) < size:
        raise CredalError(f"methods must be two different names or more; got {methods!r}.")
    if isinstance(p_values, Mapping):
        p = np.zeros((size, size))
        for a, b in np.argwhere(~np.eye(size, dtype=bool)):
            row = p_values.get(methods[a], {})
            if methods[b] not in row:
                raise CredalError(
                    "p_values must hold p[a][b] for every two methods; there is none of "
                    f"{methods[a]!r} over {methods[b]!r}. To fix: leave one out of methods."
                )
            p[a, b] = row[methods[b]]
    else:
        p = np.array(p_values, dtype=np.float64)
        if p.shape != (size, size):
            raise CredalError(
                f"p_values must have a row and a column for each of the {size} methods, shape "
                f"({size}, {size}); got shape {p.shape}."
            )
    wrong = ~((p >= 0) & (p <= 1)) & ~np.eye(size, dtype=bool)
    if wrong.any():
        a, b = np.argwhere(wrong)[0]
        raise CredalError(
            f"a p-value must lie in [0, 1]; that of {methods[a]!r} over {methods[b]!r} is "
            f"{p[a, b]}."
        )
    return p
