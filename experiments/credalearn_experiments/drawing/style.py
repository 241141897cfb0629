"""One look for all figures: readable in print and by color-blind readers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from credalearn._files import check_file, whole_file

# Methods. Okabe and Ito (2008): told apart with every kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# And without color: 4 lines and 9 markers share no factor, so 36 methods look different.
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
# Classes, so that no class looks like a method: Tol's muted set (2021), lightness 22, 61 and 32 %.
CLASS_COLORS = ("#332288", "#999933", "#882255")
GRAY = "#555555"
PICTURES = (".png", ".svg", ".pdf")  # what a figure can be written as


def color_of(place: int) -> str:
    """Color of the method at this place, 0 for the first: the same in every figure.

    Example:
        >>> color_of(0), color_of(7) == color_of(0)
        ('#0072B2', True)
    """
    return COLORS[place % len(COLORS)]


def line_of(place: int) -> dict[str, Any]:
    """Color, line and marker of the method at this place, as ``Axes.plot`` takes them.

    Example:
        Two methods share a color after seven places, but neither line nor marker.

        >>> line_of(0)
        {'color': '#0072B2', 'linestyle': '-', 'marker': 'o'}
        >>> line_of(7)
        {'color': '#0072B2', 'linestyle': '-.', 'marker': '<'}
    """
    line, marker = LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]
    return {"color": color_of(place), "linestyle": line, "marker": marker}


@contextmanager
def house_style() -> Iterator[None]:
    """Figures drawn inside look alike; settings outside stay as they were.

    Example:
        >>> with house_style():
        ...     mpl.rcParams["axes.spines.top"]
        False
    """
    settings = {
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
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        yield


def save_figure(
    draw: Callable[[Figure], None], path: str | Path, *, width: float, height: float
) -> None:
    """Draw a figure in the house's style, written whole or not at all.

    Args:
        draw: Told the figure, draws on it.
        path: Where to; the suffix says PNG, SVG or PDF.
        width: In inches.
        height: In inches.

    Raises:
        CredalError: If the suffix is no picture's, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "empty.SVG"
        >>> save_figure(lambda figure: None, path, width=3.0, height=2.0)
        >>> path.read_text().startswith("<?xml")
        True
    """
    path = check_file(path, PICTURES)
    with house_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        with whole_file(path) as partial:
            figure.savefig(partial, format=path.suffix[1:])
