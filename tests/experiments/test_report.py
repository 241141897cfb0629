"""Tables as golden text, figures by what was drawn."""

import csv
import io
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path

from credalearn import CredalError, CredalPredictions, metrics
from credalearn_experiments.drawing import (
    Column,
    ResultTable,
    draw_balanced_quality,
    draw_rejection,
    draw_significance,
    draw_triangle,
    house_style,
    latex,
    markdown,
    to_csv,
)
from credalearn_experiments.drawing.style import CLASS_COLORS, COLORS, line_of

COLUMNS = (
    Column("ACC"),
    Column("ECE", better="lower", digits=2),
    Column("net", percent=False, digits=0),
)
TABLE = ResultTable(
    COLUMNS,
    {
        "POCC": {"ACC": (0.8704, 0.004), "ECE": (0.029, 0.003), "net": (2, None)},
        "EDL": {"ACC": (0.8699, 0.0), "ECE": (0.0951, 0.003), "net": (-1, None)},
        "DAPPr": {"ACC": (0.85, 0.01), "ECE": (0.0302, 0.002), "net": (-1, None)},
        "softmax": {"ACC": (0.8, 0.01), "ECE": None, "net": (-3, None)},
    },
)


def test_markdown() -> None:
    assert markdown(TABLE) == (
        "| method | ACC (%) ↑ | ECE (%) ↓ | net ↑ |\n"
        "| :-- | --: | --: | --: |\n"
        "| POCC | **87.0** ± 0.4 | **2.90** ± 0.30 | **2** |\n"
        "| EDL | **87.0** ± 0.0 | 9.51 ± 0.30 | <u>−1</u> |\n"
        "| DAPPr | <u>85.0</u> ± 1.0 | <u>3.02</u> ± 0.20 | <u>−1</u> |\n"
        "| softmax | 80.0 ± 1.0 | – | −3 |\n"
    )


def test_latex() -> None:
    assert latex(TABLE) == (
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        "method & ACC (\\%) $\\uparrow$ & ECE (\\%) $\\downarrow$ & net $\\uparrow$ \\\\\n"
        "\\midrule\n"
        "POCC & \\textbf{87.0} $\\pm$ 0.4 & \\textbf{2.90} $\\pm$ 0.30 & \\textbf{2} \\\\\n"
        "EDL & \\textbf{87.0} $\\pm$ 0.0 & 9.51 $\\pm$ 0.30 & \\underline{$-$1} \\\\\n"
        "DAPPr & \\underline{85.0} $\\pm$ 1.0 & \\underline{3.02} $\\pm$ 0.20 & "
        "\\underline{$-$1} \\\\\n"
        "softmax & 80.0 $\\pm$ 1.0 & -- & $-$3 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_csv_has_the_numbers_as_given() -> None:
    assert to_csv(TABLE) == (
        "method,ACC mean,ACC std,ECE mean,ECE std,net\n"
        "POCC,0.8704,0.004,0.029,0.003,2\n"
        "EDL,0.8699,0,0.0951,0.003,-1\n"
        "DAPPr,0.85,0.01,0.0302,0.002,-1\n"
        "softmax,0.8,0.01,,,-3\n"
    )
    errors = replace(TABLE, spread="standard error")
    assert to_csv(errors).startswith("method,ACC mean,ACC standard error,ECE mean,")


@given(
    st.lists(st.none() | st.integers(-30, 30), min_size=1, max_size=6),
    st.sampled_from(["higher", "lower"]),
)
def test_marks_against_counting(means: list[int | None], better: Any) -> None:
    """Best is what no different value beats, second what just one does; one alone is neither."""
    column = Column("x", better=better, percent=False, digits=1)
    rows = {str(i): {"x": None if m is None else (m / 20, None)} for i, m in enumerate(means)}
    cells = [cell for (cell,) in ResultTable([column], rows).cells.values()]
    printed = {float(cell.mean) for cell in cells if cell is not None}
    for mean, cell in zip(means, cells, strict=True):
        assert (mean is None) == (cell is None)
        if cell is not None:
            own = float(cell.mean)
            beaten_by = sum(x > own if better == "higher" else x < own for x in printed)
            alone = means.count(None) == len(means) - 1
            assert cell.mark == (None if alone else {0: "best", 1: "second"}.get(beaten_by))


def test_a_column_that_is_no_contest_has_neither_mark_nor_arrow() -> None:
    columns = [Column("ACC"), Column("held", marked=False)]
    rows: dict[str, Any] = {
        "a": {"ACC": (0.9, None), "held": (1.0, None)},
        "b": {"ACC": (0.8, None), "held": (0.7, None)},
    }
    table = ResultTable(columns, rows)
    assert [[cell.mark for cell in cells if cell] for cells in table.cells.values()] == [
        ["best", None],
        ["second", None],
    ]
    assert "| method | ACC (%) ↑ | held (%) |" in markdown(table)
    assert r"ACC (\%) $\uparrow$ & held (\%) \\" in latex(table)


def test_what_rounds_to_zero_has_no_minus() -> None:
    table = ResultTable([Column("x")], {"a": {"x": (-1e-6, None)}, "b": {"x": (0, None)}})
    assert markdown(table).count("**0.0**") == 2


def one_name(name: str) -> ResultTable:
    return ResultTable([Column(name)], {name: {name: (0.5, 0.1)}}, corner=name)


@pytest.mark.parametrize(
    ("name", "in_markdown", "in_latex"),
    [
        ("a|b", r"a\|b", r"a\textbar{}b"),
        ("a\nb", "a b", "a b"),
        ("mc_dropout & 5 %", r"mc\_dropout \& 5 %", r"mc\_dropout \& 5 \%"),
        ("<b>*x*</b>", r"\<b\>\*x\*\</b\>", r"\textless{}b\textgreater{}{*}x{*}\textless{}/b"),
        ("[a](b)", r"\[a\](b)", "{[}a{]}(b)"),
        (r"\input{x}", r"\\input{x}", r"\textbackslash{}input\{x\}"),
        ("$x^2$ ~#1", r"\$x^2\$ \~#1", r"\$x\textasciicircum{}2\$ \textasciitilde{}\#1"),
    ],
)
def test_names_are_text_and_nothing_else(name: str, in_markdown: str, in_latex: str) -> None:
    shown = markdown(one_name(name))
    assert shown.splitlines()[0].startswith(f"| {in_markdown} | {in_markdown} (%) ↑ |")
    assert shown.splitlines()[2].startswith(f"| {in_markdown} | 50.0 ± 10.0 |")
    shown = latex(one_name(name))
    assert shown.splitlines()[2].startswith(in_latex)
    assert shown.splitlines()[4].startswith(in_latex)
    assert len(shown.splitlines()) == 7


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        *[(x, f"'{x}") for x in ('=HYPERLINK("x")', "+a", "-a", "@a", "\t=1")],
        *[(x, x) for x in ("-1.5", "+2e3", "a,b", 'say "x"', "two\nlines", "a=b")],
    ],
)
def test_csv_reads_back_and_runs_nothing(name: str, safe: str) -> None:
    head, row = csv.reader(io.StringIO(to_csv(one_name(name))))
    assert head[0] == row[0] == safe
    assert row[1:] == ["0.5", "0.1"]


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ([], {"a": {}}, "one column or more"),
        ([Column("x")], {}, "one row or more"),
        ([Column("x"), Column("x")], {"a": {"x": None}}, r"own name; got columns \['x', 'x'\]"),
        ([Column("x")], {"a": {}}, r"row 'a' has \[\]. To fix: give None"),
        ([Column("x")], {"a": {"x": None, "y": None}}, r"row 'a' has \['x', 'y'\]"),
        ([Column("x")], {"a": {"x": (math.nan, 0.1)}}, r"finite.*rows\['a'\]\['x'\] is \(nan"),
        ([Column("x")], {"a": {"x": (0.5, -0.1)}}, "std 0 or more.*-0.1"),
        ([Column("x")], {"a": {"x": (0.5,)}}, "must be .mean, std."),
        ([Column("x")], {"a": {"x": 0.5}}, "is 0.5. To fix"),
        ([Column("x")], {"a": {"x": ("0.5", None)}}, "is .'0.5', None.. To fix"),
    ],
)
def test_tables_that_are_no_rectangle_of_numbers_are_refused(
    columns: list[Column], rows: Any, message: str
) -> None:
    with pytest.raises(CredalError, match=message):
        ResultTable(columns, rows)


def test_bad_columns_are_refused() -> None:
    with pytest.raises(CredalError, match="column 'x' has better='more'"):
        Column("x", better="more")  # type: ignore[arg-type]
    with pytest.raises(CredalError, match="digits=-1"):
        replace(COLUMNS[0], digits=-1)


def test_a_table_keeps_what_was_checked() -> None:
    rows: dict[str, Any] = {"a": {"x": (0.5, None)}}
    table = ResultTable([Column("x")], rows)
    rows["a"]["x"] = (math.nan, None)
    assert "| a | 50.0 |" in markdown(table)


@pytest.fixture
def axes() -> Axes:
    with house_style():
        return Figure(figsize=(6, 4), layout="constrained").subplots()


def drawn(axes: Axes) -> None:
    """Every artist is rendered: most mistakes show only then."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.savefig(io.BytesIO(), format="png")


def points_of(artist: Line2D | Path) -> np.ndarray:
    """Where a line or an outline goes, shape (points, 2)."""
    found = artist.get_xydata() if isinstance(artist, Line2D) else artist.vertices
    return np.asarray(found, dtype=float)


def legend_of(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_methods_differ_without_color_and_never_look_like_classes() -> None:
    looks = [line_of(place) for place in range(36)]
    assert len({(look["linestyle"], look["marker"]) for look in looks}) == 36
    for one, other in itertools.pairwise(looks):
        assert all(one[what] != other[what] for what in ("color", "linestyle", "marker"))
    assert len(set(CLASS_COLORS)) == 3
    assert not set(CLASS_COLORS) & set(COLORS)


def test_rejection_curves(axes: Axes) -> None:
    shares = np.linspace(0, 0.8, 41)
    curves = {f"m{i}$": 0.5 + 0.05 * i + np.stack([shares, 0 * shares]) / 4 for i in range(6)}
    draw_rejection(axes, shares, curves)
    drawn(axes)
    assert legend_of(axes) == list(curves)
    for line, values in zip(axes.lines, curves.values(), strict=True):
        np.testing.assert_allclose(points_of(line), 100 * np.stack([shares, values.mean(0)], 1))
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes.lines}) == 6
    band = axes.collections[-1].get_paths()[0].get_extents()
    last = curves["m5$"]
    assert band.ymin == pytest.approx(100 * (last.mean(0) - last.std(0)).min())
    assert band.ymax == pytest.approx(100 * (last.mean(0) + last.std(0)).max())
    assert axes.get_xlim() == pytest.approx((0, 80))
    draw_rejection(axes, [0, 0.5], {"wide": [[0.0, 0.5], [0.05, 1.0], [0.0, 1.0], [0.0, 1.0]]})
    cut = axes.collections[-1].get_paths()[0].get_extents()
    assert (cut.ymin, cut.ymax) == (0, 100)  # the deviation alone would leave both
    beside = axes.get_legend()
    assert beside is not None
    assert beside.get_window_extent().x0 >= axes.get_window_extent().x1  # hides no curve


def test_balanced_quality_bars(axes: Axes) -> None:
    table = {
        "POCC": {"accuracy": [0.9, 0.8], "ece": [0.1, 0.2], "auarc": [0.9, 0.95]},
        "soft$max": {"accuracy": [0.8, 0.85], "ece": [0.3, 0.3], "auarc": [0.95, 0.99]},
    }
    scores = metrics.balanced_quality(table)
    draw_balanced_quality(axes, scores)
    drawn(axes)
    means = [100 * score.mean for score in scores.values()]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(means)  # type: ignore[attr-defined]
    errors = axes.collections[-1].get_segments()  # type: ignore[attr-defined]
    for place, (error, score) in enumerate(zip(errors, scores.values(), strict=True)):
        ends = [100 * (score.mean - score.std), 100 * (score.mean + score.std)]
        np.testing.assert_allclose(error, np.stack([ends, [place, place]], 1))
    first, second = scores.values()
    assert [text.get_text() for text in axes.texts] == [
        f"{100 * first.mean:.1f} ± {100 * first.std:.1f}",
        f"{100 * second.mean:.1f} ± {100 * second.std:.1f}",
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["POCC", r"soft\$max"]
    low, high = axes.get_ylim()
    assert low > high  # the first on top
    assert axes.get_xlim()[0] <= 0


def test_error_bars_stay_inside_the_axes(axes: Axes) -> None:
    draw_balanced_quality(axes, {"a": (0.97, 0.1), "b": (0.02, 0.1)})
    assert axes.get_xlim() == pytest.approx((-8, 107))


def test_a_bar_without_a_deviation_has_none_drawn_or_written(axes: Axes) -> None:
    draw_balanced_quality(axes, {"a": (0.97, None), "b": (0.5, 0.1), "c": (0.3, 0.0)})
    drawn(axes)
    assert [text.get_text() for text in axes.texts] == ["97.0", "50.0 ± 10.0", "30.0 ± 0.0"]
    for errors in axes.collections:  # white under black
        places = [segment[0][1] for segment in errors.get_segments()]  # type: ignore[attr-defined]
        assert places == [1, 2]
    assert axes.get_xlim() == (0, 100)


def background(axes: Axes, row: int, column: int) -> str:
    """Color of a cell of the matrix."""
    mesh = axes.collections[0]
    mesh.update_scalarmappable()
    size = round(len(mesh.get_facecolor()) ** 0.5)
    return to_hex(np.asarray(mesh.get_facecolor())[row * size + column])


def test_significance_matrix(axes: Axes) -> None:
    p = np.array([[np.nan, 0.001, 0.0497], [1, np.nan, 0.05], [0.9512, 0.0001, np.nan]])
    draw_significance(axes, p, ["a", "b", "c$"])
    drawn(axes)
    cells = {tuple(reversed(text.get_position())): text for text in axes.texts}
    texts = {place: text.get_text() for place, text in cells.items()}
    assert texts == {  # rows, then columns; the diagonal is empty
        (0, 1): ".001",
        (0, 2): ".0497",  # .050 would not read as below .05
        (1, 0): "1.000",
        (1, 2): ".050",
        (2, 0): ".951",
        (2, 1): "<.001",
    }
    for (row, column), text in cells.items():
        significant = p[int(row), int(column)] < 0.05
        assert text.get_fontweight() == ("bold" if significant else "normal")
        red = int(background(axes, int(row), int(column))[1:3], 16)
        assert red < 50 if significant else red == 255
    low, high = axes.get_ylim()
    assert low > high  # the first row on top
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", r"c\$"]
    assert "better" in axes.get_ylabel()
    assert "p < 0.05" in axes.get_xlabel()


def test_significance_from_the_tests_and_at_another_level(axes: Axes) -> None:
    random = np.random.default_rng(0)
    names = ["a", "b", "c"]
    table = {name: {"ece": (random.normal(i, 1, 7)).tolist()} for i, name in enumerate(names)}
    p = metrics.pairwise_p_values(table, "ece")
    draw_significance(axes, p, names, level=0.3)
    for text in axes.texts:
        column, row = (names[int(place)] for place in text.get_position())
        assert float(text.get_text()) == pytest.approx(p[row][column], abs=5e-4)
        assert (text.get_fontweight() == "bold") == (p[row][column] < 0.3)


SEGMENT = CredalPredictions.from_vertices(torch.eye(3)[None, :2])


def test_triangle_places_and_colors(axes: Axes) -> None:
    vertices = torch.eye(3)[None, [0, 1]].repeat(2, 1, 1)
    pred = CredalPredictions.from_vertices(vertices)
    draw_triangle(axes, pred, classes=["a", "b$", "c"], y=[2, 0])
    drawn(axes)
    assert [text.get_text() for text in axes.texts] == ["● a", "■ b$", "▲ c"]
    assert [text.get_color() for text in axes.texts] == list(CLASS_COLORS)
    dots = [line for line in axes.lines if line.get_marker() in tuple("os^")]
    assert [dot.get_color() for dot in dots] == [CLASS_COLORS[0], CLASS_COLORS[2]]
    for dot in dots:  # half-way up the left side
        np.testing.assert_allclose(points_of(dot), np.array([[0.25, 3**0.5 / 4]]), atol=1e-6)
    side = np.array([[0, 0], [0.5, 3**0.5 / 2]])
    for path in axes.collections[0].get_paths():
        np.testing.assert_allclose(points_of(path)[:2], side, atol=1e-6)


@pytest.mark.parametrize(
    ("vertices", "most"),
    [
        ([[1, 0, 0], [0, 1, 0], [0.4, 0.3, 0.3], [0, 0, 1]], 3),  # one inside
        ([[0.2, 0.3, 0.5]] * 5, 1),
        ([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3], [0.3, 0.3, 0.4]], 3),  # in line
        ([[0.2, 0.3, 0.5]], 1),
    ],
)
def test_many_vertices_are_drawn_as_their_hull(
    vertices: list[list[float]], most: int, axes: Axes
) -> None:
    pred = CredalPredictions.from_vertices(torch.tensor([vertices]))
    draw_triangle(axes, pred, classes=["a", "b", "c"])
    drawn(axes)
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c"]
    (path,) = axes.collections[0].get_paths()
    outline = points_of(path)
    assert len(np.unique(outline.round(6), axis=0)) <= most
    ends = [outline.min(0), outline.max(0)]
    corner_places = torch.tensor(vertices) @ torch.tensor([[0, 0], [0.5, 3**0.5 / 2], [1, 0]])
    np.testing.assert_allclose(ends, [corner_places.amin(0), corner_places.amax(0)], atol=1e-6)


PAIR = CredalPredictions.from_vertices(torch.eye(2)[None])
BOX = CredalPredictions(*torch.tensor([[[0.2, 0.3, 0.5]], [[0.1, 0.2, 0.4]], [[0.3, 0.4, 0.6]]]))


@pytest.mark.parametrize(
    ("draw", "arguments", "options", "message"),
    [
        (draw_triangle, [PAIR], {"classes": "abc"}, "these are 2. To fix: take draw_rejection"),
        (draw_triangle, [BOX], {"classes": "abc"}, "with vertices; these have none"),
        (draw_triangle, [SEGMENT], {"classes": ["a", "b"]}, r"three names.*got \['a', 'b'\]"),
        (draw_triangle, [SEGMENT], {"classes": "abc"}, "three names.*got 'abc'. To fix"),
        (draw_triangle, [SEGMENT], {"classes": [*"abc"], "y": [0, 1]}, "1 items; got 2. To fix"),
        (draw_triangle, [SEGMENT], {"classes": [*"abc"], "y": [0.5]}, "got float64"),
        (draw_triangle, [SEGMENT], {"classes": [*"abc"], "y": [3]}, r"row 0 has y=\[3.0\]. To fix"),
        (draw_rejection, [[0, 0.5], {}], {}, "one curve or more.*got 0 curves"),
        (draw_rejection, [[], {"a": [[]]}], {}, r"shares of shape \(0,\)"),
        (draw_rejection, [[0, 0.5], {"a": [[0.7]]}], {}, r"curves\['a'\] has shape \(1, 1\)"),
        (draw_rejection, [[0], {"a": [[0.7]], "b": [0.7]}], {}, r"curves\['b'\] has shape \(1,\)"),
        (draw_balanced_quality, [{}], {}, "one method or more"),
        (draw_balanced_quality, [{"a": (86.0, 6.1)}], {}, r"scores\['a'\] has mean 86.0"),
        (draw_balanced_quality, [{"a": (0.5, -1)}], {}, "std -1"),
        (draw_balanced_quality, [{"a": (math.nan, 0)}], {}, "mean nan"),
        (draw_significance, [np.ones((2, 3)), ["a", "b"]], {}, r"\(2, 2\); got shape \(2, 3\)"),
        (draw_significance, [np.ones((2, 2)), ["a", "a"]], {}, "two different names"),
        (draw_significance, [np.ones((1, 1)), ["a"]], {}, "two different names or more"),
        (draw_significance, [[[0, 2], [1, 0]], ["a", "b"]], {}, "'a' over 'b' is 2.0"),
        (draw_significance, [np.full((2, 2), math.nan), ["a", "b"]], {}, "is nan"),
        (draw_significance, [{"a": {"b": 1.0}}, ["a", "b"]], {}, "none of 'b' over 'a'"),
        (draw_significance, [np.ones((2, 2)), ["a", "b"]], {"level": 5}, r"\(0, 1\); got 5"),
    ],
)
def test_what_does_not_fit_is_refused(
    draw: Callable[..., None],
    arguments: list[Any],
    options: Mapping[str, Any],
    message: str,
    axes: Axes,
) -> None:
    with pytest.raises(CredalError, match=message):
        draw(axes, *arguments, **options)
    assert not axes.lines  # refused before anything is drawn
    assert not axes.collections
