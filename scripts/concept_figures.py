"""Draw the pictures of the concept pages: ``python scripts/concept_figures.py docs/concepts``.

Points of a triangle are distributions over three classes; each corner is one class.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import credalearn as cl
from credalearn_experiments.results.style import COLORS, GRAY, save_figure

_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])
_CLASSES = ("cat", "dog", "fox")
_STEPS = 160  # of the grid that fills a set
_BLUE, _RED, _GREEN = COLORS[:3]


def _triangle(axes: Axes, title: str) -> None:
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GRAY, linewidth=1)
    places = ((-0.03, -0.03, "right"), (0.5, 0.9, "center"), (1.03, -0.03, "left"))
    for name, (x, y, side) in zip(_CLASSES, places, strict=True):
        axes.text(x, y, name, ha=side, va="center" if side != "center" else "bottom")
    axes.set_title(title, loc="center", pad=14)


def _fill(axes: Axes, labels: cl.CredalSet) -> None:
    """Every distribution of a grid that is in the set."""
    first, second = np.meshgrid(*[np.linspace(0, 1, _STEPS)] * 2)
    inside = first + second <= 1
    points = np.stack([first[inside], second[inside], 1 - first[inside] - second[inside]], 1)
    rows = labels[np.zeros(len(points), dtype=int)]
    points = points[np.asarray(rows.contains(points.clip(0, 1)))]
    x, y = (points @ _CORNERS).T
    axes.scatter(x, y, s=3, color=_BLUE, alpha=0.25, linewidths=0)


def _dot(axes: Axes, point: list[float], color: str, name: str, shift: tuple[int, int]) -> None:
    place = np.array(point) @ _CORNERS
    axes.plot(*place, "o", color=color, markersize=7)
    axes.annotate(name, place, shift, textcoords="offset points", color=color, ha="center")


def draw_sets(figure: Figure) -> None:
    """Three ways to be imprecise about one item."""
    kinds = {
        "at least 50 % cat": cl.LowerBounds([[0.5, 0.0, 0.0]]),
        "between two opinions": cl.Vertices([[[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]]]),
        "close to (60, 30, 10) %": cl.TotalVariationBall([[0.6, 0.3, 0.1]], [0.15]),
    }
    for axes, (title, labels) in zip(figure.subplots(1, 3), kinds.items(), strict=True):
        _triangle(axes, title)
        if isinstance(labels, cl.Vertices):
            axes.plot(*(labels.points[0].numpy() @ _CORNERS).T, color=_BLUE, linewidth=4, alpha=0.6)
        else:
            _fill(axes, labels)


def draw_pocc(figure: Figure) -> None:
    """A label of three votes in five, and what each head learns from it."""
    left, right = figure.subplots(1, 2)
    _triangle(left, "label: 3 of 5 votes for cat")
    _fill(left, cl.from_votes([[3, 2, 0]]))
    _dot(left, [0.6, 0.4, 0.0], _RED, "votes", (-24, 4))
    _triangle(right, "prediction: three heads and their hull")
    heads = {
        "pessimist": ([0.6, 0.2, 0.2], _RED, (38, 2)),
        "optimist": ([0.97, 0.02, 0.01], _GREEN, (44, 8)),
        "center": ([0.6, 0.38, 0.02], _BLUE, (-28, 4)),
    }
    hull = np.array([point for point, _, _ in heads.values()]) @ _CORNERS
    right.fill(*hull.T, color=_BLUE, alpha=0.2)
    for name, (point, color, shift) in heads.items():
        _dot(right, point, color, name, shift)


def draw_scores(figure: Figure) -> None:
    """Three predictions of the same class: which one should a human see?"""
    axes = figure.subplots()
    items = {
        "sure": (0.9, 0.86, 0.94),
        "unclear": (0.55, 0.5, 0.6),
        "unknown": (0.7, 0.4, 0.95),
    }
    for row, (name, (prob, lower, upper)) in enumerate(items.items()):
        axes.plot([lower, upper], [-row, -row], color=_BLUE, linewidth=6, alpha=0.35)
        axes.plot([lower], [-row], "|", color=_RED, markersize=18, markeredgewidth=3)
        axes.plot([prob], [-row], "o", color=_BLUE, markersize=9)
        words = f"lower {100 * lower:.0f} %, top {100 * prob:.0f} %"
        axes.annotate(words, (lower, -row), (0, 12), textcoords="offset points", color=GRAY)
        axes.text(0.28, -row, name, va="center")
    axes.set(
        xlim=(0.27, 1), ylim=(-2.5, 0.7), yticks=[], xlabel="probability of the predicted class"
    )
    axes.spines["left"].set_visible(False)


def draw_guarantee(figure: Figure) -> None:
    """Error against the share kept, and the certified threshold."""
    random = np.random.default_rng(3)
    score = np.sort(random.random(600))
    wrong = random.random(600) < 0.35 * score**1.5
    found = cl.certify(score, wrong, max_error=0.10)
    kept = np.arange(1, len(score) + 1)
    axes = figure.subplots()
    axes.plot(100 * kept / 600, 100 * wrong.cumsum() / kept, color=_BLUE)
    axes.axhline(10, color=_RED, linestyle="--", linewidth=1)
    share = 100 * float(found.keeps(score).mean())
    axes.axvline(share, color=_GREEN, linestyle=":", linewidth=2)
    axes.text(3, 10.4, "promised: at most 10 %", color=_RED)
    axes.text(share - 1, 1, f"certified: {share:.0f} % kept", color=_GREEN, ha="right")
    axes.text(66, 5, "error among\nthe kept", color=_BLUE)
    axes.set(xlabel="kept, most certain first (%)", ylabel="wrong (%)", xlim=(2, 100), ylim=(0, 16))


FIGURES: dict[str, tuple[Callable[[Figure], None], float, float]] = {
    "credal-sets": (draw_sets, 9, 3.2),
    "pocc": (draw_pocc, 7.5, 3.4),
    "scores": (draw_scores, 6.5, 2.6),
    "guarantee": (draw_guarantee, 6, 3.4),
}


def main() -> None:
    """Draw all pictures into the folder that is named."""
    for name, (draw, width, height) in FIGURES.items():
        save_figure(draw, Path(sys.argv[1]) / f"{name}.png", width=width, height=height)


if __name__ == "__main__":
    main()
