"""One look for all figures: readable in print and by colour-blind readers."""

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl

# Okabe and Ito (2008): told apart with every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")  # and without colour
GREY = "#555555"


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
        "grid.color": "#dddddd",
        "legend.frameon": False,
        "lines.linewidth": 2,
        "figure.dpi": 100,
        "savefig.dpi": 200,
        "savefig.bbox": "tight",
    }
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        yield
