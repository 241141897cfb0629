"""The figure of a study of label rules: agreement with held-out votes against imprecision."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from credalearn.decide.shortfall import percent
from credalearn.errors import CredalError
from credalearn.files import whole_file
from credalearn.report.style import GREY, MARKERS, colour_of, house_style
from credalearn.workflow.label_study import HARDLY, LabelStudy

_SUFFIXES = (".png", ".svg", ".pdf")
# Where a name may stand beside its point, in points: the first place that is free is taken.
_PLACES = (
    *[(9, 0, "left", "center"), (-9, 0, "right", "center")],
    *[(0, -10, "center", "top"), (0, 10, "center", "bottom")],
    *[(9, -12, "left", "top"), (-9, -12, "right", "top")],
    *[(9, -26, "left", "top"), (-9, -26, "right", "top"), (9, -40, "left", "top")],
)


def check_figure(path: Path) -> Path:
    """The path, if its suffix is a picture's.

    Raises:
        CredalError: If it is not.

    Example:
        >>> check_figure(Path("coverage.PNG")).name
        'coverage.PNG'
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise CredalError(f"a figure's path must end in {', '.join(_SUFFIXES)}; got {path.name!r}.")
    if path.is_dir():
        raise CredalError(f"{path} is a folder. To fix: name a file.")
    return path


def coverage_figure(study: LabelStudy, path: str | Path) -> None:
    """Share of sets that the held-out votes agree with against their mean diameter.

    Coverage is at most this share / 0.95: the test refutes 5 % of right sets at most. A point a
    rule, with two standard errors to each side; hollow where something speaks against the rule. The
    name of the rule of smallest sets that nothing speaks against is bold; where the held-out votes
    can hardly reject any set, a name is slanted.

    Raises:
        CredalError: If the suffix is no picture's.

    Example:
        >>> import tempfile
        >>> from credalearn.annotations.examples import three_items
        >>> from credalearn.workflow.label_study import study_labels
        >>> path = Path(tempfile.mkdtemp()) / "coverage.svg"
        >>> coverage_figure(study_labels(three_items(), splits=5), path)
        >>> path.exists()
        True
    """
    path = check_figure(Path(path))
    with house_style():
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        FigureCanvasAgg(figure)  # it measures the names
        axes = figure.subplots()
        draw_coverage(axes, study)
        with whole_file(path) as partial:
            figure.savefig(partial, format=path.suffix[1:].lower())


def draw_coverage(axes: Axes, study: LabelStudy) -> None:
    """What :func:`coverage_figure` saves, on axes of a figure that can measure its text.

    Example:
        >>> from credalearn.annotations.examples import three_items
        >>> from credalearn.workflow.label_study import study_labels
        >>> figure = FigureCanvasAgg(Figure()).figure
        >>> draw_coverage(figure.subplots(), study_labels(three_items(), splits=5))
    """
    wanted = 100 * study.confidence
    axes.axhline(wanted, color=GREY, linewidth=1, linestyle="--")
    for place, each in enumerate(study.rules):
        colour = colour_of(place)
        axes.errorbar(
            each.diameter,
            100 * each.agree,
            yerr=min(200 * each.agree_error, 100),
            fmt=MARKERS[place % len(MARKERS)],
            color=colour,
            markerfacecolor="none" if study.fails(each) else colour,
            markersize=7,
            markeredgewidth=1.5,
            capsize=3,
            elinewidth=1.5,
            clip_on=False,
        )
    ends = [100 * (each.agree - 2 * each.agree_error) for each in study.rules]
    lowest = max(0.0, min(wanted, *ends) - 3)
    axes.set_ylim(lowest, 100 + (100 - lowest) / 12)
    widest = max(0.1, *(each.diameter for each in study.rules))
    axes.set_xlim(-0.03 * widest, 1.15 * widest)
    axes.set_xlabel("imprecision: mean total-variation diameter of the sets")
    axes.set_ylabel("sets the held-out votes agree with (%);\ncoverage is at most this / 0.95")
    what = "annotators" if study.people else "each item's votes"
    items = study.rules[0].items
    title = f"{items:,} item{'s' * (items != 1)}, {study.splits:,} splits of {what}"
    axes.set_title(title, pad=24)
    hardly = any(each.testable < HARDLY for each in study.rules)
    axes.annotate(
        "hollow: something speaks against it" + "; slanted: too few votes to test" * hardly,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 8),
        textcoords="offset points",
        color=GREY,
        fontsize=9,
    )
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    _name_points(axes, study)
    axes.annotate(
        f"wanted: {percent(study.confidence)}",
        (1, wanted),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color=GREY,
        fontsize=9,
    )


def _name_points(axes: Axes, study: LabelStudy) -> None:
    """Each rule's name beside its point, where it covers neither a point nor another name."""
    best = study.best
    points = axes.transData.transform([(each.diameter, 100 * each.agree) for each in study.rules])
    taken = [Bbox.from_bounds(x - 9, y - 9, 18, 18) for x, y in points]
    inside = axes.get_window_extent()
    for number, each in enumerate(study.rules):
        for dx, dy, across, along in _PLACES:
            name = axes.annotate(
                each.rule,
                (each.diameter, 100 * each.agree),
                xytext=(dx, dy),
                textcoords="offset points",
                ha=across,
                va=along,
                fontsize=9,
                fontweight="bold" if each is best else "normal",
                fontstyle="italic" if each.testable < HARDLY else "normal",
                color=colour_of(number),
            )
            box = name.get_window_extent()
            others = [other for place, other in enumerate(taken) if place != number]
            free = not any(box.overlaps(other) for other in others)
            if free and inside.x0 <= box.x0 and box.x1 <= inside.x1 + 40:
                break
            if (dx, dy) != _PLACES[-1][:2]:
                name.remove()
        taken.append(name.get_window_extent())
