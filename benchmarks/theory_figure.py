"""The figure of the study with known truth: three panels, one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from theory_truth import Case, Found

from credalearn_experiments.results.style import COLORS, GRAY, line_of, save_figure

_APART = 0.24  # between the rules at one number of votes, in places of the axis
_RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 13,
    "markerfacecolor": "none",
    "linestyle": "none",
}


def draw_study(by_votes: Sequence[Case], by_share: Sequence[Case], path: Path) -> None:
    """Profiles against votes, on training and on fresh items, and against broken labels."""

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        middle.sharey(left)
        _draw_votes(left, by_votes, training=True)
        _draw_votes(middle, by_votes, training=False)
        _draw_share(right, by_share)
        left.set(title="Votes: the items trained on", ylabel="cross-entropy (nats)")
        middle.set_title("Votes: fresh items, fresh votes")
        right.set_title("Labels that exclude the truth: fresh items")
        left.legend(loc="upper right")
        middle.tick_params(labelleft=False)
        right.set_ylim(top=right.get_ylim()[1] + 0.12)  # room for the legend
        right.legend(handles=_what_is_what(), loc="upper left")

    save_figure(draw, path, width=12, height=4.4)


def _draw_votes(axes: Axes, cases: Sequence[Case], *, training: bool) -> None:
    """A bar from R₊ to R₋ for every rule and number of votes, and the true risk as a marker."""
    amounts = sorted({case.amount for case in cases})
    rules = list(dict.fromkeys(case.rule for case in cases))
    for place, rule in enumerate(rules):
        own = sorted((case for case in cases if case.rule == rule), key=lambda case: case.amount)
        found = [case.training if training else case.fresh for case in own]
        x = np.arange(len(amounts)) + _APART * (place - (len(rules) - 1) / 2)
        low, high = _ends(found)
        line = line_of(place)
        axes.vlines(x, low, high, color=line["color"], alpha=0.35, linewidth=9)
        for end in (low, high):  # where the sets are points there is no bar but this
            axes.hlines(end, x - 0.09, x + 0.09, color=line["color"], linewidth=1.5)
        axes.plot(x, [each.true for each in found], label=rule, **(line | {"linewidth": 1}))
        _ring(axes, x, found)
    axes.set_xticks(range(len(amounts)), [f"{amount:g}" for amount in amounts])
    axes.set_xlabel("votes per item")
    axes.grid(axis="x", visible=False)


def _draw_share(axes: Axes, cases: Sequence[Case]) -> None:
    """The profile as a band and the true risk as a line, against the share of broken labels."""
    share = np.array([100 * case.amount for case in cases])
    found = [case.fresh for case in cases]
    axes.fill_between(share, *_ends(found), color=COLORS[3], alpha=0.35, linewidth=0)
    axes.plot(share, [each.true for each in found], **line_of(3))
    _ring(axes, share, found)
    axes.set(xlabel="labels broken (%)", xlim=(-4, 104))


def _ends(found: Sequence[Found]) -> tuple[np.ndarray, np.ndarray]:
    low = np.array([each.optimistic for each in found])
    return low, np.array([each.pessimistic for each in found])


def _ring(axes: Axes, x: np.ndarray, found: Sequence[Found]) -> None:
    """A ring around true risks that are outside their profile."""
    for at, each in zip(x, found, strict=True):
        if each.place != "inside":
            axes.plot(at, each.true, color="black", **_RING)


def _what_is_what() -> list[Patch | Line2D]:
    return [
        Patch(color=GRAY, alpha=0.35, linewidth=0, label="profile, R₊ to R₋"),
        Line2D([], [], color=GRAY, marker="o", linewidth=1, label="true risk R₀"),
        Line2D([], [], color="black", label="R₀ outside its profile", **_RING),
    ]
