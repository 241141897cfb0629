"""One style for all figures: readable in print and by color-blind readers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from credalearn._files import check_file, whole_file

# Methods. Okabe and Ito (2008): distinguishable with every kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# And without color: 4 lines and 9 markers share no factor, so 36 methods look different.
_LINES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
# Classes, so that no class looks like a method: Tol's muted set (2021), lightness 22, 61 and 32 %.
CLASS_COLORS = ("#332288", "#999933", "#882255")
GRAY = "#555555"
_SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
}


def line_of(place: int) -> dict[str, Any]:
    """Color, line and marker of the method at this place, as ``Axes.plot`` takes them."""
    looks = {"color": COLORS, "linestyle": _LINES, "marker": _MARKERS}
    return {name: values[place % len(values)] for name, values in looks.items()}


def save_figure(
    draw: Callable[[Figure], None], path: str | Path, *, width: float, height: float
) -> None:
    """Draw a figure, width and height in inches, and write it as .png, .svg or .pdf."""
    path = check_file(path, (".png", ".svg", ".pdf"))
    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        with whole_file(path) as partial:
            figure.savefig(partial, format=path.suffix[1:])
