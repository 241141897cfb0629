"""Figures of records, by what was drawn."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from credalearn import CredalError
from credalearn_experiments.results import figures
from credalearn_experiments.results.compare import compare
from credalearn_experiments.results.seeds import balance, runs_of
from credalearn_experiments.settings.paper import SEVEN
from fake_records import fake_records

Drawing = Callable[..., None]
ALL: list[Drawing] = [
    figures.rejection_figure,
    figures.balance_figure,
    figures.significance_figure,
    figures.published_figure,
]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved, instead of their files."""
    kept: list[Figure] = []

    def keep(self: Figure, *args: object, **options: object) -> None:
        kept.append(self)

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("suffix", ["png", "PNG", "svg", "pdf"])
def test_the_suffix_says_the_kind(draw: Drawing, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "folder" / f"figure.{suffix}"
    draw(fake_records(seeds=range(1, 6)), "cifar10h", path)
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix.lower()]
    assert path.read_bytes().startswith(head)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("draw", ALL)
def test_other_suffixes_are_refused(draw: Drawing, tmp_path: Path) -> None:
    with pytest.raises(CredalError, match=r"must end in one of .png, .svg, .pdf; got .*figure.gif"):
        draw(fake_records(seeds=range(1, 6)), "cifar10h", tmp_path / "figure.gif")


def test_curves_are_means_over_seeds(drawn: list[Figure], tmp_path: Path) -> None:
    records = fake_records()
    figures.rejection_figure(records, "cifar10h", tmp_path / "a.png")
    (axes,) = drawn[0].axes
    assert axes.get_title(loc="left") == "cifar10h, 10 seeds"
    assert axes.get_ylabel() == "accuracy of the rest (%), ± one standard deviation"
    assert len(axes.lines) == len(SEVEN) + 1
    curves = [r.curves["accuracy_rejection"] for r in records if r.method == "edl"]
    line = axes.lines[0]
    assert line.get_label() == "edl"
    assert np.allclose(line.get_xdata(), np.arange(96))
    assert np.allclose(line.get_ydata(), 100 * np.mean(curves, axis=0)[:96])


def test_differing_numbers_of_seeds_are_written_by_each(
    drawn: list[Figure], tmp_path: Path
) -> None:
    records = [r for r in fake_records() if r.method != "edl" or r.seed < 4]
    for draw in (figures.rejection_figure, figures.published_figure):
        draw(records, "cifar10h", tmp_path / "a.png")
    curves, dots = drawn
    assert curves.axes[0].get_title(loc="left") == "cifar10h, 3 to 10 seeds"
    assert curves.axes[0].lines[0].get_label() == "edl (3 seeds)"
    labels = [text.get_text() for text in dots.axes[0].get_yticklabels()]
    assert labels[:2] == ["edl (3 seeds)", "laplace-bridge (10 seeds)"]


def test_bars_are_the_balanced_scores(drawn: list[Figure], tmp_path: Path) -> None:
    records = fake_records()
    figures.balance_figure(records, "cifar10h", tmp_path / "a.png")
    found = balance(runs_of(records, "cifar10h"), SEVEN)
    assert found is not None
    shown = [text.get_text() for text in drawn[0].axes[0].texts]
    wanted = [f"{100 * q.mean:.1f} ± {100 * q.std:.1f}" for q in found.quality.values()]
    assert shown == wanted
    assert drawn[0].axes[0].get_xlabel().endswith(" (%), ± one standard deviation")


def test_one_seed_has_no_deviation(drawn: list[Figure], tmp_path: Path) -> None:
    for draw in (figures.rejection_figure, figures.balance_figure):
        draw(fake_records(seeds=[1]), "cifar10h", tmp_path / "a.png")
    labels = [
        text
        for figure in drawn
        for text in (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())
    ]
    assert not any("deviation" in text for text in labels)
    bars = drawn[1].axes[0]
    assert len(bars.texts) == len(SEVEN)
    assert not any("±" in text.get_text() for text in bars.texts)
    assert not [line for each in error_bars(bars) for part in each[2] for line in lines_of(part)]


def test_of_one_seed_the_paper_alone_has_deviations(drawn: list[Figure], tmp_path: Path) -> None:
    for seeds in ([1], [1, 2]):
        figures.published_figure(fake_records(seeds=seeds), "cifar10h", tmp_path / "a.png")
    one, two = (figure.axes[0] for figure in drawn)
    assert one.get_title(loc="left") == "cifar10h, 1 seed\npaper: ± one standard deviation"
    # Ours and the paper's by turns: a bar each, or a dot alone.
    assert [each.has_xerr for each in error_bars(one)] == [False, True] * len(SEVEN)
    assert all(each.has_xerr for each in error_bars(two))


def test_a_matrix_for_each_metric(drawn: list[Figure], tmp_path: Path) -> None:
    records = fake_records(methods=["edl", "deep-ensemble"])
    figures.significance_figure(records, "cifar10h", tmp_path / "a.png")
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert titles == ["accuracy", "calibration (1 − ECE)", "deferral (AUARC)"]
    assert "\n\ncifar10h, 10 seeds: p-values of" in drawn[0].axes[1].get_xlabel()
    # Deep ensembles are more accurate on all of ten seeds: p = 1/1024; EDL is better calibrated.
    assert [text.get_text() for text in drawn[0].axes[0].texts] == ["1.000", ".001"]
    assert [text.get_text() for text in drawn[0].axes[1].texts] == [".001", "1.000"]


@pytest.mark.parametrize("draw", ALL)
def test_a_rehearsal_is_called_one(draw: Drawing, drawn: list[Figure], tmp_path: Path) -> None:
    records = [
        replace(record, config={**record.config, "epochs": 1, "limit": 128})
        for record in fake_records(seeds=range(1, 6))
    ]
    for each in (records, fake_records(seeds=range(1, 6))):
        draw(each, "cifar10h", tmp_path / "a.png")
    said = "\nA rehearsal: epochs 1, not 150; 128 training and test items at most"
    short, whole = (
        [text for axes in figure.axes for text in (axes.get_title(loc="left"), axes.get_xlabel())]
        for figure in drawn
    )
    assert sum(text.endswith(said) for text in short) == 1
    assert [text.removesuffix(said) for text in short] == whole


def test_all_methods_are_compared_where_the_setting_is_not_the_papers(
    drawn: list[Figure], tmp_path: Path
) -> None:
    records = [
        replace(record, setting="my-setting")
        for record in fake_records(methods=["pocc", "pocc-center", "softmax"])
    ]
    for draw in (figures.balance_figure, figures.significance_figure):
        draw(records, "my-setting", tmp_path / "a.png")
    for figure in drawn:
        labels = {text.get_text() for text in figure.axes[0].get_yticklabels()}
        assert labels == {"pocc", "pocc-center", "softmax"}


def error_bars(axes: Axes) -> list[ErrorbarContainer]:
    return [each for each in axes.containers if isinstance(each, ErrorbarContainer)]


def lines_of(part: LineCollection) -> list[np.ndarray]:
    return [np.asarray(segment) for segment in part.get_segments()]


def test_dots_are_ours_and_the_papers(drawn: list[Figure], tmp_path: Path) -> None:
    records = fake_records()
    figures.published_figure(records, "cifar10h", tmp_path / "a.png")
    rows = [r for r in compare(records) if r.published.table == "tab:result"]
    for axes, metric in zip(drawn[0].axes, ("ACC", "ECE", "AUARC"), strict=True):
        dots = [float(np.asarray(bar.lines[0].get_xdata())[0]) for bar in error_bars(axes)]
        wanted = [
            number
            for row in rows
            if row.published.metric == metric
            for number in (row.mean, row.published.mean)
        ]
        assert np.allclose(dots, wanted)
    title = drawn[0].axes[0].get_title(loc="left")
    assert title == "cifar10h, 10 seeds, ± one standard deviation"
    legend = drawn[0].axes[-1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "paper"]


def test_tests_that_cannot_be_significant_are_not_drawn(tmp_path: Path) -> None:
    said = r"'cifar10h' have 4 seeds in common: of fewer than 5 no .* To fix: run more seeds"
    with pytest.raises(CredalError, match=said):
        figures.significance_figure(fake_records(seeds=range(4)), "cifar10h", tmp_path / "a.png")


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    alone = fake_records(methods=["pocc"])
    for draw in (figures.balance_figure, figures.significance_figure):
        with pytest.raises(CredalError, match=r"on a common seed; of these .* runs of \['pocc'\]"):
            draw(alone, "cifar10h", path)
    with pytest.raises(CredalError, match=r"the paper has no accuracy.* 'cifar10h-warm' answer"):
        figures.published_figure(fake_records("cifar10h-warm"), "cifar10h-warm", path)
    bare = [type(r)(setting=r.setting, method="pocc", seed=1, metrics=r.metrics) for r in alone[:1]]
    with pytest.raises(CredalError, match="no record of setting 'cifar10h' has a curve"):
        figures.rejection_figure(bare, "cifar10h", path)
    assert not path.exists()
