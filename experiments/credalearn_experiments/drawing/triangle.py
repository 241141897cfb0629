"""Predicted sets on the triangle of three classes.

Shapes: N items, V vertices, K classes.
"""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull

from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions
from credalearn.sets.checks import as_classes
from credalearn_experiments.drawing.style import CLASS_COLORS, GRAY

_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])
_MARKERS, _SIGNS = "os^", "●■▲"  # the same three, for points and in text


def draw_triangle(
    axes: Axes, pred: CredalPredictions, *, classes: Sequence[str], y: ArrayLike | None = None
) -> None:
    """Predicted segments on the triangle of three classes; the marker is the chosen distribution.

    More than two vertices are drawn as their hull. Classes differ in color and in marker, and
    both are shown by the names at the corners.

    Args:
        axes: Where to draw.
        pred: Predictions with vertices over three classes.
        classes: The three names, drawn at the corners.
        y: True class indices, shape (N,), which color the items; else one color.

    Raises:
        CredalError: If there are not three classes with a name each, the predictions have no
            vertices, or y does not fit.

    Example:
        >>> import torch
        >>> from matplotlib.figure import Figure
        >>> pred = CredalPredictions.from_vertices(torch.eye(3)[None, :2])
        >>> draw_triangle(Figure().subplots(), pred, classes=["a", "b", "c"])
    """
    vertices = _vertices(pred, classes)
    truth = np.zeros(len(pred), dtype=int) if y is None else _true_classes(y, len(pred))
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GRAY, linewidth=1)
    middle = _CORNERS.mean(0)
    for first in range(3):  # where the predicted class changes
        edge = (_CORNERS[first] + _CORNERS[first - 1]) / 2
        axes.plot(*np.stack([middle, edge]).T, color=GRAY, linewidth=0.8, linestyle=":")
    outlines = [_outline(points) for points in vertices @ _CORNERS]
    colors = [CLASS_COLORS[each] for each in truth]
    axes.add_collection(
        PolyCollection(
            outlines,
            facecolors=[to_rgba(color, 0.08) for color in colors],
            edgecolors=[to_rgba(color, 0.55) for color in colors],
            linewidths=1.2,
        )
    )
    dots = pred.probs.numpy(force=True) @ _CORNERS
    for each in np.unique(truth):
        x, height = dots[truth == each].T
        axes.plot(x, height, _MARKERS[each], color=CLASS_COLORS[each], markersize=4)
    _name_corners(axes, classes, marked=y is not None)


def _name_corners(axes: Axes, classes: Sequence[str], *, marked: bool) -> None:
    """The names and, where items are told apart by class, its marker in front of each."""
    places = ((0, -0.03, "left", "top"), (0.5, 0.9, "center", "bottom"), (1, -0.03, "right", "top"))
    family = [*mpl.rcParams["font.family"], "DejaVu Sans"]  # has the signs; matplotlib brings it
    for each, (x, height, across, along) in enumerate(places):
        name = axes.text(
            *(x, height, f"{_SIGNS[each]} {classes[each]}" if marked else classes[each]),
            ha=across,
            va=along,
            color=CLASS_COLORS[each] if marked else GRAY,
            fontweight="bold",
            fontfamily=family,
        )
        name.set_parse_math(False)  # a $ in a name is a $


def _outline(points: np.ndarray) -> np.ndarray:
    """Corners of the hull of points (V, 2), in order."""
    if len(points) < 3:
        return points
    # QJ moves the points by about 1e-9, so that equal points and points in line have a hull.
    order = ConvexHull(points, qhull_options="QJ").vertices
    hull: np.ndarray = points[order]
    return hull


def _vertices(pred: CredalPredictions, classes: Sequence[str]) -> np.ndarray:
    num_classes = pred.probs.shape[1]
    if num_classes != 3:
        raise CredalError(
            f"a triangle shows predictions over three classes; these are {num_classes}. To fix: "
            "take draw_rejection, which shows predictions over any number."
        )
    if pred.vertices is None:
        raise CredalError(
            "a triangle shows predictions with vertices; these have none but bounds. To fix: take "
            "a method whose sets have vertices, or make them with CredalPredictions.from_vertices."
        )
    if isinstance(classes, str) or len(classes) != 3:
        raise CredalError(
            f"classes must be three names, one a corner; got {classes!r}. To fix: give them as a "
            "list, in the order of the columns."
        )
    return np.asarray(pred.vertices.numpy(force=True), dtype=np.float64)


def _true_classes(y: ArrayLike, num_items: int) -> np.ndarray:
    truth = as_classes(y, num_classes=3, name="y")
    if len(truth) != num_items:
        raise CredalError(
            f"y must hold one class index for each of the {num_items} items; got {len(truth)}. To "
            "fix: give the classes of the items that are drawn."
        )
    return truth.numpy(force=True)
