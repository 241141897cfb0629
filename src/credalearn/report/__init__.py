"""Tables and figures of results, in one style."""

from credalearn.report.comparison import draw_balanced_quality, draw_significance
from credalearn.report.curves import draw_rejection
from credalearn.report.style import house_style
from credalearn.report.tables import Cell, Column, ResultTable, latex, markdown, to_csv
from credalearn.report.triangle import draw_triangle

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
