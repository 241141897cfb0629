"""The comparison of methods on lung nodules."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from credalearn import CredalPredictions
from credalearn.app.nodules import load_nodules
from credalearn.metrics import accuracy
from credalearn_experiments.nodules import (
    CONTENDERS,
    compare_nodules,
    draw_triangle,
    kept_accuracy,
    splits,
)
from credalearn_experiments.results.style import CLASS_COLORS


def test_reports_every_contender_and_draws_the_figure(tmp_path: Path) -> None:
    output = tmp_path / "nodules.png"
    lines = list(compare_nodules("basic", output, num_splits=2, epochs=2))
    assert "1,395 lung nodules of 695 patients" in lines[0]
    assert lines[1:3] == ["   1/2", "   2/2"]
    table = next(line for line in lines if "deferred by" in line).split("\n")
    names = [line.split(" | ")[0].removeprefix("| ") for line in table[3:8]]
    assert names == [each.name for each in CONTENDERS["basic"]]
    assert all(line.count("±") == 7 for line in table[3:8])
    assert output.read_bytes().startswith(b"\x89PNG")


def test_deferral_starts_at_the_accuracy() -> None:
    nodules, contenders = load_nodules(), CONTENDERS["basic"][:1]
    ((predictions, y),) = splits(nodules, contenders, num_splits=1, epochs=2)
    assert 0.2 * len(nodules.votes) < len(y) < 0.35 * len(nodules.votes)
    pred = predictions[contenders[0]]
    kept = kept_accuracy(pred, y, "mmi")
    assert kept[0] == pytest.approx(accuracy(pred.probs, y), abs=1e-6)
    certain = pred.score("mmi").argsort()[: math.ceil(0.5 * len(y))]
    right = pred.probs.argmax(1)[certain].numpy() == y[certain]
    assert kept[50] == pytest.approx(right.mean(), abs=1e-6)


def test_the_triangle_places_and_colors_segments() -> None:
    axes = Figure().subplots()
    pred = CredalPredictions.from_vertices(torch.eye(3)[None, [0, 1]].repeat(2, 1, 1))
    draw_triangle(axes, pred, np.array([2, 0]), ["a", "b", "c"])
    assert [text.get_text() for text in axes.texts] == ["● a", "■ b", "▲ c"]
    assert [text.get_color() for text in axes.texts] == list(CLASS_COLORS)
    dots = [line for line in axes.lines if line.get_marker() in tuple("os^")]
    assert [len(np.asarray(dot.get_xdata())) for dot in dots] == [1, 0, 1]
    for dot in (dots[0], dots[2]):  # half-way up the left side
        place = np.asarray(dot.get_xydata(), dtype=float)
        np.testing.assert_allclose(place, np.array([[0.25, 3**0.5 / 4]]), atol=1e-6)
    (segments,) = (each for each in axes.collections if isinstance(each, LineCollection))
    side = np.array([[0, 0], [0.5, 3**0.5 / 2]])
    for segment in segments.get_segments():
        np.testing.assert_allclose(segment, side, atol=1e-6)
