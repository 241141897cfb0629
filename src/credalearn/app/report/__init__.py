"""The page of a run: one HTML file that says what may be promised, and shows why."""

from credalearn.app.report.data import Compared, Disagreement, Page, build_page
from credalearn.app.report.heldout import HeldOut
from credalearn.app.report.holding import LabelSets, WidenedSets, widen_sets
from credalearn.app.report.shown import Shown
from credalearn.app.report.verdict import PageRule, Verdict
from credalearn.app.report.walks import Walk, walk
from credalearn.app.report.write import render_page

__all__ = [
    "Compared",
    "Disagreement",
    "HeldOut",
    "LabelSets",
    "Page",
    "PageRule",
    "Shown",
    "Verdict",
    "Walk",
    "WidenedSets",
    "build_page",
    "render_page",
    "walk",
    "widen_sets",
]
