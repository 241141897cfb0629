"""The page of a run: one HTML file that says what may be promised, and shows why."""

from credalearn.report.page.data import Compared, Disagreement, Page, build_page
from credalearn.report.page.heldout import HeldOut
from credalearn.report.page.holding import LabelSets, WidenedSets, widen_sets
from credalearn.report.page.shown import Shown
from credalearn.report.page.verdict import PageRule, Verdict
from credalearn.report.page.walks import Walk, walk
from credalearn.report.page.write import render_page

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
