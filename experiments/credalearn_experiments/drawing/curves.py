"""Curves by method: what deferring does.

Shapes: S shares deferred, R repetitions.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from credalearn.errors import CredalError
from credalearn_experiments.drawing.style import line_of

_LEGEND_INSIDE = 4  # lines; a longer legend hides curves and goes beside them
_MARKERS_A_CURVE = 8


def draw_rejection(axes: Axes, deferred: ArrayLike, curves: Mapping[str, ArrayLike]) -> None:
    """Accuracy of what is kept against the share deferred, a band over repetitions.

    Args:
        axes: Where to draw.
        deferred: Shares deferred, shape (S,).
        curves: By name, the accuracies at these shares, shape (R, S); the line is their mean, the
            band one standard deviation to each side, cut at 0 and 100 %.

    Raises:
        CredalError: If there is no curve, or one does not fit the shares.

    Example:
        >>> from matplotlib.figure import Figure
        >>> draw_rejection(Figure().subplots(), np.array([0, 0.5]), {"a": np.array([[0.7, 0.9]])})
    """
    shares = np.asarray(deferred, dtype=np.float64)
    if shares.ndim != 1 or shares.size == 0 or not curves:
        raise CredalError(
            "there must be one curve or more, over one share deferred or more, shape (S,); got "
            f"{len(curves)} curves and shares of shape {shares.shape}."
        )
    checked = {name: _accuracies(name, given, len(shares)) for name, given in curves.items()}
    every = -(-len(shares) // _MARKERS_A_CURVE)
    for place, (name, values) in enumerate(checked.items()):
        mean, spread, line = values.mean(0), values.std(0), line_of(place)
        # Each starts its markers elsewhere: on curves that meet they would hide each other.
        first = place * every // len(curves)
        (curve,) = axes.plot(100 * shares, 100 * mean, markevery=(first, every), **line)
        curve.set_label(name)
        # Beyond 0 and 100 % there is no accuracy, whatever the deviation.
        low, high = 100 * (mean - spread).clip(min=0), 100 * (mean + spread).clip(max=1)
        axes.fill_between(100 * shares, low, high, color=line["color"], alpha=0.12, linewidth=0)
    axes.set_xlabel("deferred to a human (%)")
    axes.set_ylabel("accuracy of the rest (%)")
    axes.margins(x=0)
    _add_legend(axes)


def _add_legend(axes: Axes) -> None:
    """Upper left, where curves that rise leave room, or beside the axes if it is long."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) <= _LEGEND_INSIDE:
        legend = axes.legend(handles, names, loc="upper left", handlelength=3)
    else:
        beside = (1.02, 0.5)
        legend = axes.legend(
            handles, names, loc="center left", bbox_to_anchor=beside, handlelength=3
        )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a $ in a name is a $


def _accuracies(name: str, given: ArrayLike, num_shares: int) -> np.ndarray:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != num_shares or len(values) == 0:
        raise CredalError(
            "a curve must hold accuracies of shape (repetitions, shares), here "
            f"(R, {num_shares}); curves[{name!r}] has shape {values.shape}."
        )
    return values
