"""Predicted segments on the triangle of three classes."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from credalearn.predictions import CredalPredictions
from credalearn_experiments.results.style import CLASS_COLORS, GRAY

_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])
_MARKERS, _SIGNS = "os^", "●■▲"  # the same three, for points and in text
_NAMES = ((0, -0.03, "left", "top"), (0.5, 0.9, "center", "bottom"), (1, -0.03, "right", "top"))


def draw_triangle(
    axes: Axes, pred: CredalPredictions, y: np.ndarray, classes: Sequence[str]
) -> None:
    """One segment per item of N, with a marker at the prediction; ``y`` are the true classes."""
    assert pred.vertices is not None
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GRAY, linewidth=1)
    middle = _CORNERS.mean(0)
    for corner in range(3):  # where the predicted class changes
        edge = (_CORNERS[corner] + _CORNERS[corner - 1]) / 2
        axes.plot(*np.stack([middle, edge]).T, color=GRAY, linewidth=0.8, linestyle=":")
    segments = pred.vertices.double().numpy(force=True) @ _CORNERS
    colors = [to_rgba(CLASS_COLORS[each], 0.55) for each in y]
    axes.add_collection(LineCollection(list(segments), colors=colors, linewidths=1.2))
    dots = pred.probs.numpy(force=True) @ _CORNERS
    family = [*mpl.rcParams["font.family"], "DejaVu Sans"]  # it has the signs
    for each, (x, height, across, along) in enumerate(_NAMES):
        color = CLASS_COLORS[each]
        axes.plot(*dots[y == each].T, _MARKERS[each], color=color, markersize=4)
        axes.text(
            *(x, height, f"{_SIGNS[each]} {classes[each]}"),
            color=color,
            ha=across,
            va=along,
            fontweight="bold",
            fontfamily=family,
        )
