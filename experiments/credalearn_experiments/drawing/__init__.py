"""Tables and figures of results, in one style."""

from credalearn_experiments.drawing.comparison import draw_balanced_quality, draw_significance
from credalearn_experiments.drawing.curves import draw_rejection
from credalearn_experiments.drawing.style import house_style
from credalearn_experiments.drawing.tables import Cell, Column, ResultTable, latex, markdown, to_csv
from credalearn_experiments.drawing.triangle import draw_triangle

__all__ = [
    "Cell",
    "Column",
    "ResultTable",
    "draw_balanced_quality",
    "draw_rejection",
    "draw_significance",
    "draw_triangle",
    "house_style",
    "latex",
    "markdown",
    "to_csv",
]
