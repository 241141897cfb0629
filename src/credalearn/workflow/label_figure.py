"""The figure of a study of label rules: agreement with held-out votes against imprecision."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from credalearn.annotations.places import many
from credalearn.report.style import GREY, MARKERS, colour_of, save_figure
from credalearn.shares import percent
from credalearn.workflow.label_study import HARDLY, LabelStudy

# A point on another leaves a rim of it to be seen: with three votes two rules often give the same.
_LARGEST, _SMALLEST = 11.0, 7.0


def coverage_figure(study: LabelStudy, path: str | Path) -> None:
    """Share of sets that the held-out votes agree with against their mean diameter.

    Coverage is at most this share / 0.95: the test refutes 5 % of right sets at most. A point a
    rule, with two standard errors to each side; hollow where something speaks against the rule. The
    name of the rule of smallest sets that nothing speaks against is bold; where the held-out votes
    can hardly reject any set, a name is slanted.

    Raises:
        CredalError: If the suffix is no picture's, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> from credalearn.annotations.examples import three_items
        >>> from credalearn.workflow.label_study import study_labels
        >>> path = Path(tempfile.mkdtemp()) / "coverage.svg"
        >>> coverage_figure(study_labels(three_items(), splits=5), path)
        >>> path.exists()
        True
    """
    save_figure(lambda figure: draw_coverage(figure.subplots(), study), path, width=8.4, height=4.4)


def draw_coverage(axes: Axes, study: LabelStudy) -> None:
    """What :func:`coverage_figure` saves, on axes.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from credalearn.annotations.examples import three_items
        >>> from credalearn.workflow.label_study import study_labels
        >>> draw_coverage(Figure().subplots(), study_labels(three_items(), splits=5))
    """
    wanted = 100 * study.confidence
    sizes = np.linspace(_LARGEST, _SMALLEST, len(study.rules))
    for place, (each, size) in enumerate(zip(study.rules, sizes, strict=True)):
        colour = colour_of(place)
        drawn = axes.errorbar(
            each.diameter,
            100 * each.agree,
            yerr=min(200 * each.agree_error, 100),
            fmt=MARKERS[place % len(MARKERS)],
            color=colour,
            markerfacecolor="none" if study.fails(each) else colour,
            markersize=size,
            markeredgewidth=1.5,
            capsize=3,
            elinewidth=1.5,
            clip_on=False,
        )
        drawn.lines[0].set_label(each.rule)  # the point alone: a bar would hide if it is hollow
    said = f"wanted: {percent(study.confidence)}"
    axes.axhline(wanted, color=GREY, linewidth=1, linestyle="--", zorder=1, label=said)
    ends = [100 * (each.agree - 2 * each.agree_error) for each in study.rules]
    lowest = max(0.0, min(wanted, *ends) - 3)
    axes.set_ylim(lowest, 100 + (100 - lowest) / 12)
    widest = max(0.1, *(each.diameter for each in study.rules))
    axes.set_xlim(-0.03 * widest, 1.03 * widest)
    axes.set_xlabel("imprecision: mean total-variation diameter of the sets")
    axes.set_ylabel("sets the held-out votes agree with (%);\ncoverage is at most this / 0.95")
    what = "annotators" if study.people else "each item's votes"
    items = study.rules[0].items
    axes.set_title(f"{many(items, 'item')}, {study.splits:,} splits of {what}")
    _name_points(axes, study)


def _name_points(axes: Axes, study: LabelStudy) -> None:
    """Beside the axes, where names do not meet however close the points lie."""
    best = study.best
    looks = ["hollow: something speaks against it"]
    if any(each.testable < HARDLY for each in study.rules):
        looks.append("slanted: too few votes to test it")
    if best is not None:
        looks.append("bold: smallest sets of the filled")
    legend = axes.legend(
        title="\n".join(looks),
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        fontsize=9,
        title_fontsize=9,
        alignment="left",
        labelspacing=0.8,
    )
    legend.get_title().set_color(GREY)
    names = {text.get_text(): text for text in legend.get_texts()}
    for each in study.rules:
        if each is best:
            names[each.rule].set_fontweight("bold")
        if each.testable < HARDLY:
            names[each.rule].set_fontstyle("italic")
