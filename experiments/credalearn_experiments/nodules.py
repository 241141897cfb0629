"""Several ways to learn and to defer, on random splits of the lung nodules by patient."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.model_selection import GroupShuffleSplit

from credalearn.app.nodules import CLASSES, Nodules, load_nodules
from credalearn.classifier import CredalClassifier
from credalearn.labels import from_votes
from credalearn.methods import METHODS
from credalearn.metrics import accuracy_rejection, auarc, ece
from credalearn.predictions import CredalPredictions
from credalearn_experiments.results.figures import draw_rejection
from credalearn_experiments.results.style import CLASS_COLORS, GRAY, save_figure
from credalearn_experiments.results.table import Column, Table, Value, markdown

_TEST_SHARE = 0.3
_SHARES = np.arange(81) / 100  # deferred, in the figure
_SHOWN = {f"{share} %": share for share in (0, 10, 20, 30, 50)}  # in the table
_SEGMENTS = 60  # in the figure: more would hide each other
_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])  # of the triangle
_MARKERS, _SIGNS = "os^", "●■▲"  # the same three, for points and in text
_NAMES = ((0, -0.03, "left", "top"), (0.5, 0.9, "center", "bottom"), (1, -0.03, "right", "top"))


@dataclass(frozen=True, slots=True)
class Contender:
    """A method, the score that it defers by, and whether it learns from majorities only."""

    name: str
    method: str
    score: str
    collapse: bool = False


CONTENDERS = {
    "basic": (
        Contender("POCC, lower prob.", "pocc", "lower-probability"),
        Contender("POCC, top prob.", "pocc", "top-probability"),
        Contender("POCC, MMI", "pocc", "mmi"),
        Contender("softmax, majority", "softmax", "top-probability", collapse=True),
        Contender("softmax, vote shares", "softmax", "top-probability"),
    ),
    "all": tuple(Contender(name, name, method.score) for name, method in METHODS.items()),
}
Split = tuple[dict[Contender, CredalPredictions], np.ndarray]
"""Predictions for the test nodules that have a majority, by contender, and their classes."""


def splits(
    nodules: Nodules, contenders: Sequence[Contender], *, num_splits: int, epochs: int
) -> Iterator[Split]:
    """Train on random splits by patient; nodules whose votes tie are not tested."""
    splitter = GroupShuffleSplit(num_splits, test_size=_TEST_SHARE, random_state=0)
    parts = splitter.split(nodules.features, groups=nodules.patients)
    for number, (train, test) in enumerate(parts):
        rows = test[nodules.has_majority[test]]
        found: dict[tuple[str, bool], CredalPredictions] = {}
        for method, collapse in dict.fromkeys((each.method, each.collapse) for each in contenders):
            seen = train[nodules.has_majority[train]] if collapse else train
            clf = CredalClassifier(
                method, collapse=collapse, epochs=epochs, weight_decay=1e-3, random_state=number
            )
            clf.fit(nodules.features[seen], from_votes(nodules.votes[seen]), classes=CLASSES)
            found[method, collapse] = clf.predict_credal(nodules.features[rows])
        predictions = {each: found[each.method, each.collapse] for each in contenders}
        yield predictions, nodules.majority[rows]


def kept_accuracy(pred: CredalPredictions, y: np.ndarray, score: str) -> np.ndarray:
    """Accuracy of the rest when 0 to 80 % are deferred, in steps of 1 %."""
    curve = accuracy_rejection(pred.probs, y, pred.score(score)).numpy()
    kept = np.ceil((1 - _SHARES) * len(curve)).astype(int)
    at_shares: np.ndarray = curve[kept - 1]
    return at_shares


def compare_nodules(
    methods: str, output: Path, *, num_splits: int = 10, epochs: int = 40
) -> Iterator[str]:
    """Train and test; yield the lines of the report, and draw the figure."""
    nodules, contenders = load_nodules(), CONTENDERS[methods]
    yield (
        f"{len(nodules.votes):,} lung nodules of {len(set(nodules.patients)):,} patients, each "
        f"rated by three or four radiologists. Training on {100 * (1 - _TEST_SHARE):.0f} % of the "
        "patients, testing on the others:"
    )
    found: list[Split] = []
    for split in splits(nodules, contenders, num_splits=num_splits, epochs=epochs):
        found.append(split)
        yield f"  {len(found):2d}/{num_splits}"
    curves: dict[str, np.ndarray] = {}
    rows: dict[str, dict[str, Value]] = {}
    for each in contenders:
        own = [(predictions[each], y) for predictions, y in found]
        curves[each.name] = np.array([kept_accuracy(pred, y, each.score) for pred, y in own])
        rows[each.name] = {
            "ECE": _value([ece(pred.probs, y) for pred, y in own]),
            **{name: _value(curves[each.name][:, share]) for name, share in _SHOWN.items()},
            "AUARC": _value([auarc(pred.probs, y, pred.score(each.score)) for pred, y in own]),
        }
    columns = [Column(name, marked=False, percent=False) for name in rows[contenders[0].name]]
    yield f"\n{markdown(Table('', columns, rows, corner='deferred by'))}"
    yield (
        "In %, mean ± one standard deviation over the splits: calibration error, accuracy of the "
        "rest when the least certain 0 to 50 % are deferred, and the area under that curve."
    )
    first, y = found[0]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        draw_rejection(right, _SHARES, curves)
        right.set_title("Deferring the least certain nodules", pad=20)
        draw_triangle(left, first[contenders[0]][:_SEGMENTS], y[:_SEGMENTS], CLASSES)
        left.set_anchor("N")  # titles at one height
        left.set_title(f"One segment per nodule ({_SEGMENTS} of the test nodules)", pad=20)

    save_figure(draw, output, width=10, height=4.4)
    yield f"figure in {output}"


def _value(shares: Sequence[float] | np.ndarray) -> Value:
    values = 100 * np.asarray(shares)
    return float(values.mean()), float(values.std()) if len(values) > 1 else None


def draw_triangle(
    axes: Axes, pred: CredalPredictions, y: np.ndarray, classes: Sequence[str]
) -> None:
    """One segment per item of N, with a marker at the prediction; ``y`` are the true classes."""
    assert pred.vertices is not None
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GRAY, linewidth=1)
    middle = _CORNERS.mean(0)
    for corner in range(3):  # where the predicted class changes
        edge = (_CORNERS[corner] + _CORNERS[corner - 1]) / 2
        axes.plot(*np.stack([middle, edge]).T, color=GRAY, linewidth=0.8, linestyle=":")
    segments = pred.vertices.double().numpy(force=True) @ _CORNERS
    colors = [to_rgba(CLASS_COLORS[each], 0.55) for each in y]
    axes.add_collection(LineCollection(list(segments), colors=colors, linewidths=1.2))
    dots = pred.probs.numpy(force=True) @ _CORNERS
    family = [*mpl.rcParams["font.family"], "DejaVu Sans"]  # it has the signs
    for each, (x, height, across, along) in enumerate(_NAMES):
        color, name = CLASS_COLORS[each], f"{_SIGNS[each]} {classes[each]}"
        axes.plot(*dots[y == each].T, _MARKERS[each], color=color, markersize=4)
        look: dict[str, Any] = {"color": color, "fontweight": "bold", "fontfamily": family}
        axes.text(x, height, name, ha=across, va=along, **look)
