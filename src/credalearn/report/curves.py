"""Curves by method: what deferring does, and how far stated probabilities hold.

Shapes: S shares deferred, R repetitions, B bins.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from credalearn.errors import CredalError
from credalearn.report.style import GREY, line_of

_LEGEND_INSIDE = 4  # lines; a longer legend hides curves and goes beside them
_MARKERS_A_CURVE = 8


class Bins(Protocol):
    """What a reliability diagram needs: :class:`credalearn.metrics.Reliability` has it."""

    @property
    def edges(self) -> ArrayLike:
        """Where the bins begin and end, shape (B + 1,)."""

    @property
    def count(self) -> ArrayLike:
        """Items in each bin, shape (B,)."""

    @property
    def confidence(self) -> ArrayLike:
        """Mean top probability of each bin's items, shape (B,)."""

    @property
    def accuracy(self) -> ArrayLike:
        """Share of each bin's items whose top class is right, shape (B,)."""


def draw_rejection(axes: Axes, deferred: ArrayLike, curves: Mapping[str, ArrayLike]) -> None:
    """Accuracy of what is kept against the share deferred, a band over repetitions.

    Args:
        axes: Where to draw.
        deferred: Shares deferred, shape (S,).
        curves: By name, the accuracies at these shares, shape (R, S); the line is their mean, the
            band one standard deviation to each side.

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
        low, high = 100 * (mean - spread), 100 * (mean + spread)
        axes.fill_between(100 * shares, low, high, color=line["color"], alpha=0.12, linewidth=0)
    axes.set_xlabel("deferred to a human (%)")
    axes.set_ylabel("accuracy of the rest (%)")
    axes.margins(x=0)
    _add_legend(axes)


def draw_reliability(axes: Axes, reliabilities: Mapping[str, Bins | Sequence[ArrayLike]]) -> None:
    """Reliability diagram: accuracy against stated confidence, bin by bin (Guo et al., 2017).

    A curve below the diagonal is overconfident. The halo round a marker grows with the share of
    the items in its bin; empty bins are left out.

    Args:
        axes: Where to draw.
        reliabilities: By method, what :func:`credalearn.metrics.reliability` returns, or the four
            arrays ``(edges, count, confidence, accuracy)``, in [0, 1] but for the count.

    Raises:
        CredalError: If there is no method, lengths differ, or a value is out of range.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> draw_reliability(axes, {"softmax": ([0, 0.5, 1], [0, 4], [0, 0.9], [0, 0.75])})
        >>> axes.lines[1].get_xydata().tolist()
        [[90.0, 75.0]]
    """
    if not reliabilities:
        raise CredalError("reliabilities must hold one method or more; got none.")
    checked = {name: _filled_bins(name, given) for name, given in reliabilities.items()}
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, label="as stated")
    for place, (name, (share, confidence, accuracy)) in enumerate(checked.items()):
        line = line_of(place)
        axes.plot(100 * confidence, 100 * accuracy, label=name, clip_on=False, **line)
        halo = {"color": line["color"], "marker": line["marker"], "alpha": 0.25, "linewidth": 0}
        sizes = 30 + 500 * share  # in square points; the marker itself has 25
        axes.scatter(100 * confidence, 100 * accuracy, s=sizes, clip_on=False, **halo)
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    axes.set_xlabel("confidence (%)")
    axes.set_ylabel("accuracy (%)")
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


def _filled_bins(
    name: str, given: Bins | Sequence[ArrayLike]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of the items, confidence and accuracy of the bins that hold items."""
    if isinstance(given, Sequence):
        if len(given) != 4:
            raise CredalError(
                f"reliabilities[{name!r}] must be a reliability or the four arrays edges, count, "
                f"confidence and accuracy; got {len(given)}."
            )
        parts = tuple(given)
    else:
        parts = (given.edges, given.count, given.confidence, given.accuracy)
    edges, count, confidence, accuracy = (np.asarray(part, dtype=np.float64) for part in parts)
    shapes = [each.shape for each in (edges, count, confidence, accuracy)]
    num_bins = count.size
    if shapes != [(num_bins + 1,), *[(num_bins,)] * 3] or not (count > 0).any():
        raise CredalError(
            "count, confidence and accuracy must hold one number a bin, edges one more, and one "
            f"bin or more an item; reliabilities[{name!r}] has edges, count, confidence and "
            f"accuracy of shapes {shapes} and {np.sum(count):g} items."
        )
    filled = count > 0
    for what, values in (("confidence", confidence), ("accuracy", accuracy)):
        wrong = filled & ~((values >= 0) & (values <= 1))
        if wrong.any():
            place = int(wrong.argmax())
            raise CredalError(
                f"{what} must lie in [0, 1]; reliabilities[{name!r}] has {values[place]} in bin "
                f"{place}. To fix: give shares, not per cent."
            )
    return count[filled] / count.sum(), confidence[filled], accuracy[filled]
