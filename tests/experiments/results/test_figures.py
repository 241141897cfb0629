"""Figures of records, by what was drawn."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import DEFERRAL_SCORES, compared
from credalearn_experiments.results.figures import FIGURES, PANELS, vote_figure
from credalearn_experiments.results.seeds import runs_of
from credalearn_experiments.results.style import line_of
from credalearn_experiments.results.votes import METRICS, family_cells
from credalearn_experiments.settings.catalog import FAMILIES
from credalearn_experiments.settings.paper import FOREIGN_SETS, SEVEN
from fake_records import fake_records

FAMILY = "cifar10h-votes"
Draw = Callable[..., Figure]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Draw:
    """Draws a figure and returns it instead of writing it."""
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: kept.append(self))

    def draw(kind: str, records: list[Record], setting: str = "cifar10h") -> Figure:
        if kind == "votes":
            vote_figure(family_cells(records, setting), setting, tmp_path / "a.png")
        else:
            FIGURES[kind](records, setting, tmp_path / "a.png")
        return kept[-1]

    return draw


def test_methods_differ_without_color_and_from_classes() -> None:
    looks = [line_of(place) for place in range(36)]
    assert len({(look["linestyle"], look["marker"]) for look in looks}) == 36
    for one, other in pairwise(looks):
        assert all(one[what] != other[what] for what in ("color", "linestyle", "marker"))


def test_curves_are_means_over_seeds(drawn: Draw) -> None:
    records = fake_records()
    figure = drawn("rejection", records)
    (axes,) = figure.axes
    assert figure.axes[0].get_title(loc="left") == "cifar10h, 10 seeds"
    assert axes.get_ylabel() == "accuracy of the rest (%), ± one standard deviation"
    assert len(axes.lines) == len(SEVEN) + 1
    curves = [r.curves["accuracy_rejection"] for r in records if r.method == "edl"]
    line = axes.lines[0]
    assert line.get_label() == "edl"
    assert np.allclose(line.get_xdata(), np.arange(96))
    assert np.allclose(line.get_ydata(), 100 * np.mean(curves, axis=0)[:96])


def test_balanced_scores_have_a_marker_per_method_and_score(drawn: Draw) -> None:
    records = fake_records()
    figure = drawn("balance", records)
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["balanced quality score, BQS (%)", "BQS-ST (%)"]
    runs = runs_of(records, "cifar10h")
    for container, score in zip(figure.axes[0].containers, DEFERRAL_SCORES, strict=True):
        found = compared(runs, "cifar10h", score=score)
        assert found is not None
        means = [100 * found.quality[method].mean for method in SEVEN]
        assert np.allclose(container[0].get_xdata(), means)
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == list(SEVEN)
    few = drawn("balance", fake_records(seeds=(1, 2)))
    assert len(few.axes) == 1  # too few seeds for a test


def test_foreign_images_have_a_panel_per_set_and_a_marker_per_score(drawn: Draw) -> None:
    records = [r for r in fake_records() if r.method != "edl" or r.seed < 4]
    figure = drawn("foreign", records)
    assert [axes.get_xlabel() for axes in figure.axes] == [f"AUROC, {x}" for x in FOREIGN_SETS]
    own, common = (container[0].get_xdata() for container in figure.axes[0].containers)
    assert np.allclose(np.array(common) - np.array(own), 0.01)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "edl (3 seeds)"


def test_a_rehearsal_and_uneven_seeds_are_reported(drawn: Draw) -> None:
    config = {"epochs": 1, "limit": 128}
    records = [replace(r, config=config) for r in fake_records() if r.method != "edl" or r.seed < 4]
    figure = drawn("rejection", records)
    assert figure.axes[0].get_title(loc="left") == (
        "cifar10h, 3 to 10 seeds\n"
        "A rehearsal: epochs 1, not 150; at most 128 training and test items"
    )
    assert figure.axes[0].lines[0].get_label() == "edl (3 seeds)"


def test_says_why_a_figure_cannot_be_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    alone = fake_records(methods=["pocc"])
    with pytest.raises(CredalError, match="no record of setting 'cifar10h' has a curve"):
        FIGURES["rejection"]([replace(r, curves={}) for r in alone], "cifar10h", path)
    with pytest.raises(CredalError, match="separates foreign images by 1 − top probability"):
        FIGURES["foreign"](fake_records("micebone"), "micebone", path)
    with pytest.raises(CredalError, match="two methods of setting 'cifar10h' must share a seed"):
        FIGURES["balance"](alone, "cifar10h", path)
    assert not path.exists()


def test_the_vote_figure_has_a_panel_per_metric_and_a_line_per_row(drawn: Draw) -> None:
    records = [r for each in FAMILIES[FAMILY].settings for r in fake_records(each.name)]
    cells = family_cells(records, FAMILY)
    figure = drawn("votes", records, FAMILY)
    for axes, metric in zip(figure.axes, PANELS, strict=True):
        assert axes.get_xscale() == "log"
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        assert ticks == ["1", "2", "3", "5", "10", "all"]
        assert len(axes.lines) == len(axes.collections) == len(cells)
        for line, by_number in zip(axes.lines, cells.values(), strict=True):
            assert list(line.get_xdata()) == [1, 2, 3, 5, 10, 51.1]  # type: ignore[arg-type]
            scale = 100 if METRICS[metric].percent else 1
            means = [
                scale * np.mean([record.metrics[metric] for record in runs.values()])
                for runs in by_number.values()
            ]
            np.testing.assert_allclose(np.asarray(line.get_ydata()), means)
    assert [axes.get_xlabel() for axes in figure.axes] == [*[""] * 3, *["votes per item"] * 3]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(cells)


def test_a_rule_that_failed_does_not_flatten_the_others(drawn: Draw) -> None:
    def record(rule: str, method: str, number: int, seed: int, accuracy: float) -> Record:
        metrics = {"accuracy": accuracy, "human_coverage": 1.0}
        name = f"{FAMILY}-{number}-{rule}"
        return Record(setting=name, method=method, seed=seed, metrics=metrics)

    good = [
        record(rule, method, number, seed, value + 0.01 * seed)
        for number in (1, 3)
        for rule, method, value in (("precise", "softmax", 0.91), ("relax", "pocc", 0.89))
        for seed in (1, 2)
    ]
    failed = [record("idm", "pocc", *each) for each in ((1, 1, 0.1), (3, 1, 0.9))]
    for records, left_out in ((good, False), (good + failed, True)):
        figure = drawn("votes", records, FAMILY)
        low, high = figure.axes[0].get_ylim()
        assert 85 < low < 90
        assert 93 < high < 95
        assert ("left out where accuracy is" in figure.get_suptitle()) == left_out
    accuracy, coverage = figure.axes
    assert 10 in np.asarray(accuracy.lines[-1].get_ydata())
    assert list(coverage.lines[-1].get_xdata()) == [3]  # type: ignore[arg-type]
