"""Figures in one style."""

from credalearn.report.figures import draw_rejection, draw_triangle
from credalearn.report.style import house_style

__all__ = ["draw_rejection", "draw_triangle", "house_style"]
