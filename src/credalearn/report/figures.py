"""Figures of predicted sets and of what deferring does.

Shapes: N items, V vertices, K classes, R repetitions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions
from credalearn.report.style import COLOURS, GREY, LINES

_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])


def draw_triangle(
    axes: Axes, pred: CredalPredictions, *, classes: Sequence[str], y: np.ndarray | None = None
) -> None:
    """Predicted segments on the triangle of three classes; the dot is the midpoint.

    Args:
        axes: Where to draw.
        pred: Predictions with two vertices over three classes.
        classes: The three names, drawn at the corners.
        y: True class indices, shape (N,), which colour the items; else one colour.

    Raises:
        CredalError: If there are not three classes.

    Example:
        >>> import torch
        >>> from matplotlib.figure import Figure
        >>> pred = CredalPredictions.from_vertices(torch.eye(3)[None, :2])
        >>> draw_triangle(Figure().subplots(), pred, classes=["a", "b", "c"])
    """
    if pred.probs.shape[1] != 3 or pred.vertices is None:
        raise CredalError(
            f"a triangle shows vertices over three classes; these are {pred.probs.shape[1]}."
        )
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GREY, linewidth=1)
    middle = _CORNERS.mean(0)
    for first in range(3):  # where the predicted class changes
        edge = (_CORNERS[first] + _CORNERS[first - 1]) / 2
        axes.plot(*np.stack([middle, edge]).T, color=GREY, linewidth=0.8, linestyle=":")
    colours = [COLOURS[0] if y is None else COLOURS[each] for each in range(3)]
    truth = np.zeros(len(pred), dtype=int) if y is None else np.asarray(y)
    ends, dots = pred.vertices.numpy() @ _CORNERS, pred.probs.numpy() @ _CORNERS
    for points, dot, each in zip(ends, dots, truth, strict=True):
        axes.plot(*points.T, color=colours[each], linewidth=1.2, alpha=0.55)
        axes.plot(*dot, "o", color=colours[each], markersize=3.5)
    places = ((0, -0.03, "left", "top"), (0.5, 0.9, "center", "bottom"), (1, -0.03, "right", "top"))
    for name, colour, (x, height, across, along) in zip(classes, colours, places, strict=True):
        shade = GREY if y is None else colour
        axes.text(x, height, name, ha=across, va=along, color=shade, fontweight="bold")


def draw_rejection(axes: Axes, deferred: np.ndarray, curves: Mapping[str, np.ndarray]) -> None:
    """Accuracy of what is kept against the share deferred, a band over repetitions.

    Args:
        axes: Where to draw.
        deferred: Shares deferred, shape (S,).
        curves: By name, the accuracies at these shares, shape (R, S); the line is their mean, the
            band one standard deviation to each side.

    Example:
        >>> from matplotlib.figure import Figure
        >>> draw_rejection(Figure().subplots(), np.array([0, 0.5]), {"a": np.array([[0.7, 0.9]])})
    """
    for place, (name, values) in enumerate(curves.items()):
        colour, line = COLOURS[place % len(COLOURS)], LINES[place % len(LINES)]
        mean, spread = values.mean(0), values.std(0)
        axes.plot(100 * deferred, 100 * mean, line, color=colour, label=name)
        low, high = 100 * (mean - spread), 100 * (mean + spread)
        axes.fill_between(100 * deferred, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xlabel("deferred to a human (%)")
    axes.set_ylabel("accuracy of the rest (%)")
    axes.margins(x=0)
    axes.legend(loc="upper left")
