"""The comparison of methods on lung nodules."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from credalearn import CredalPredictions
from credalearn.app.nodules import load_nodules
from credalearn.methods import METHODS
from credalearn.metrics import accuracy
from credalearn_experiments.nodules.comparison import compare_nodules
from credalearn_experiments.nodules.splits import CONTENDERS, splits
from credalearn_experiments.nodules.triangle import draw_triangle
from credalearn_experiments.results.style import CLASS_COLORS


def test_reports_every_contender_and_draws_the_figure(tmp_path: Path) -> None:
    output = tmp_path / "nodules.png"
    lines = list(compare_nodules("basic", output, num_splits=2, epochs=2))
    assert "1,395 nodules of 695 patients" in lines[0]
    assert sum("accuracy of POCC" in line for line in lines) == 2
    table = next(line for line in lines if "deferred by" in line).split("\n")
    assert [line[:22].strip() for line in table[3:8]] == [each.name for each in CONTENDERS["basic"]]
    assert all(line.count("±") == 9 for line in table[3:8])
    assert output.read_bytes().startswith(b"\x89PNG")


def test_every_method_is_a_contender() -> None:
    assert [each.method for each in CONTENDERS["all"]] == list(METHODS)


def test_splits_are_by_patient_and_deferral_starts_at_the_accuracy() -> None:
    nodules, contenders = load_nodules(), CONTENDERS["basic"][:1]
    (split,) = splits(nodules, contenders, num_splits=1, epochs=2)
    pred = split.predictions[contenders[0]]
    assert 0.2 * len(nodules.votes) < len(split.y) < 0.35 * len(nodules.votes)
    kept = split.kept_accuracy(contenders[0], np.array([0.0, 0.999]))
    assert kept[0] == pytest.approx(accuracy(pred.probs, split.y), abs=1e-6)
    assert kept[1] in (0, 1)  # one nodule is left
    assert split.metrics(contenders[0])["accuracy"] == pytest.approx(kept[0], abs=1e-6)


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
