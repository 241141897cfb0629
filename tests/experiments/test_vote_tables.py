"""Rules side by side: cells, tables, paired differences, verdicts, the figure, and set sizes."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from credalearn import CredalError
from credalearn_experiments.drawing import markdown
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import Difference
from credalearn_experiments.results.set_tables import set_table
from credalearn_experiments.results.vote_differences import difference_table, differences, verdicts
from credalearn_experiments.results.vote_figure import PANELS, vote_figure
from credalearn_experiments.results.vote_tables import METRICS, family_cells, vote_notes, vote_table
from credalearn_experiments.settings.votes import FAMILIES
from fake_records import fake_records

FAMILY = "cifar10h-votes"


def family_records(family: str = FAMILY) -> list[Record]:
    return [record for each in FAMILIES[family].settings for record in fake_records(each.name)]


def accuracies(rule: str, method: str, number: str, values: list[float]) -> list[Record]:
    return [
        Record(
            setting=f"{FAMILY}-{number}-{rule}",
            method=method,
            seed=seed,
            metrics={"accuracy": value},
        )
        for seed, value in enumerate(values, start=1)
    ]


def test_rows_are_rules_and_columns_numbers_of_votes() -> None:
    records = family_records()
    cells = family_cells([*records, *fake_records("cifar10h")], FAMILY)
    assert list(cells) == [
        *("softmax, precise", "pocc, relax", "pocc, relax-ties", "pocc-mean, relax-ties"),
        *("pocc, idm", "pocc, clopper-pearson"),
    ]
    assert all(list(by_number) == [1, 2, 3, 5, 10, None] for by_number in cells.values())
    for metric, column in METRICS.items():
        table = vote_table(cells, metric, FAMILY)
        assert [each.name for each in table.columns] == ["1", "2", "3", "5", "10", "all"]
        assert {(each.better, each.marked) for each in table.columns} == {
            (column.better, column.marked)
        }
        values = [
            record.metrics[metric]
            for record in records
            if record.setting == "cifar10h-votes-10-idm"
        ]
        assert table.rows["pocc, idm"]["10"] == pytest.approx((np.mean(values), np.std(values)))
    assert vote_notes(cells, FAMILY) == [
        "3 seeds of every run. ± is over seeds, each with votes of its own unless all are used."
    ]


def test_a_method_asked_for_beside_has_a_row_of_its_own() -> None:
    records = family_records()
    more = [
        replace(record, method="pocc-center")
        for record in records
        if record.setting == "cifar10h-votes-3-clopper-pearson"
    ]
    cells = family_cells([*records, *more], FAMILY)
    assert list(cells)[-1] == "pocc-center, clopper-pearson"
    table = vote_table(cells, "accuracy", FAMILY)
    assert table.rows["pocc-center, clopper-pearson"]["1"] is None
    assert "| pocc-center, clopper-pearson | – | – | " in markdown(table)


def test_seeds_that_differ_are_said_and_rehearsals_too() -> None:
    records = [
        replace(record, config={"epochs": 1, "limit": 9})
        for record in family_records()
        if record.seed < 3 or "-all-" not in record.setting
    ]
    told = vote_notes(family_cells(records, FAMILY), FAMILY)
    assert told[0].startswith(
        "3 seeds of every run, but 2 seeds at all votes of softmax, precise; pocc, relax; "
    )
    assert told[1:] == [
        "A rehearsal: epochs 1, not 150.",
        "A rehearsal: 9 training and test items at most.",
    ]
    mixed = [*records, *(r for r in family_records() if r.setting == "cifar10h-votes-1-idm")]
    mixed = [r for r in mixed if r.setting != "cifar10h-votes-1-idm" or r.config["epochs"] == 150]
    with pytest.raises(CredalError, match=r"family 'cifar10h-votes' must all .* same epochs; got"):
        family_cells(mixed, FAMILY)
    other = [
        replace(r, config={"weights": "a.pt" if r.setting.endswith("-1-idm") else "b.pt"})
        for r in records
    ]
    with pytest.raises(CredalError, match=r"family 'cifar10h-votes' must all .* same weights; got"):
        family_cells(other, FAMILY)


def test_what_is_not_there_is_said() -> None:
    message = (
        r"no record of the family .* run 'cifar10n-votes-\*'`, or give --family cifar10h-votes\."
    )
    with pytest.raises(CredalError, match=message):
        family_cells(family_records(), "cifar10n-votes")
    with pytest.raises(CredalError, match=r"family must be one of 'cifar10h-votes', .*; got 'x'"):
        family_cells(family_records(), "x")
    cells = family_cells(accuracies("idm", "pocc", "1", [0.9]), FAMILY)
    with pytest.raises(
        CredalError,
        match=r"no record of the family .* has the metric 'human_gap'. To fix: take .*y",
    ):
        vote_table(cells, "human_gap", FAMILY)
    with pytest.raises(CredalError, match=r"metric must be one of 'accuracy', .*; got 'f1'"):
        vote_table(cells, "f1", FAMILY)
    assert differences(cells) == {}  # nothing to hold it against


def test_differences_are_paired_by_seed() -> None:
    records = [
        *accuracies("precise", "softmax", "1", [0.80, 0.90, 0.70]),
        *accuracies("relax", "pocc", "1", [0.78, 0.88, 0.68, 0.1]),  # the fourth has no partner
        *accuracies("idm", "pocc", "1", [0.81, 0.88, 0.70]),
        *accuracies("relax", "pocc", "all", [0.5]),
    ]
    found = differences(family_cells(records, FAMILY))
    assert found.keys() == {"pocc, relax", "pocc, idm"}
    assert found["pocc, relax"].keys() == {1}
    worse = found["pocc, relax"][1]
    assert worse.mean == pytest.approx(-0.02)
    assert (worse.standard_error, worse.seeds) == (0.0, 3)
    assert worse.verdict == "worse"  # though the seeds themselves differ by 20 points
    noise = found["pocc, idm"][1]
    pairs = np.array([0.01, -0.02, 0.0])
    assert noise.mean == pytest.approx(pairs.mean())
    assert noise.standard_error == pytest.approx(math.sqrt(pairs.var(ddof=1) / 3))
    assert noise.verdict == "not told apart"
    table = difference_table(found, FAMILY)
    assert table.rows["pocc, relax"] == {"1": (worse.mean, 0.0)}
    assert verdicts(found) == [
        "pocc, relax: worse at 1 vote (a loss of up to 2.00 points is not excluded).",
        "pocc, idm: not told apart at 1 vote (a loss of up to 4.13 points is not excluded).",
    ]


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        (-0.0011, 0.0002, "worse"),
        (-0.0009, 0.0001, "not told apart"),  # less than a tenth of a point
        (-0.02, 0.0047, "not told apart"),  # within 4.30 standard errors, t.975 of 2 degrees
        (-0.02, 0.0046, "worse"),
        (0.02, 0.0046, "better"),
        (0.02, 0.0047, "not told apart"),
        (0.0, 0.0, "not told apart"),
        (-0.3, None, "too few seeds to tell"),
    ],
)
def test_the_verdict_by_hand(mean: float, error: float | None, verdict: str) -> None:
    assert Difference(mean, error, 1 if error is None else 3).verdict == verdict


@pytest.mark.parametrize("seeds", [3, 10])
def test_equal_rules_are_told_apart_once_in_twenty(seeds: int) -> None:
    pairs = np.random.default_rng(0).normal(0, 0.5, size=(4000, seeds))  # far above the floor
    errors = pairs.std(1, ddof=1) / seeds**0.5
    found = [
        Difference(float(mean), float(error), seeds)
        for mean, error in zip(pairs.mean(1), errors, strict=True)
    ]
    told = [each.verdict for each in found]
    for verdict in ("worse", "better"):  # each 2.5 %, ± three standard errors of the simulation
        assert told.count(verdict) / 4000 == pytest.approx(0.025, abs=0.0075)
    # The floor stays: the same differences, a thousandth of the size, are nothing.
    small = [Difference(each.mean / 1e4, each.standard_error, seeds) for each in found]
    assert {each.verdict for each in small} == {"not told apart"}


def test_the_interval_is_scipys_own() -> None:
    pairs = np.array([0.01, -0.02, 0.005, 0.0])
    error = float(pairs.std(ddof=1)) / 2
    ends = stats.ttest_1samp(pairs, 0).confidence_interval(0.95)
    assert Difference(float(pairs.mean()), error, 4).interval == pytest.approx(tuple(ends))
    assert Difference(0.1, None, 1).interval is None
    assert Difference(-0.38, 0.06, 2).interval is None  # it would end at −114 points


@pytest.mark.parametrize(("error", "seeds"), [(0.1, 1), (None, 3), (None, 0)])
def test_a_standard_error_is_of_several_seeds(error: float | None, seeds: int) -> None:
    with pytest.raises(CredalError, match=f"seeds={seeds}, standard_error={error}"):
        Difference(0.0, error, seeds)


def test_verdicts_are_listed_in_words() -> None:
    bad, same, good = (Difference(mean, 0.001, 3) for mean in (-0.01, 0.0, 0.01))
    found: dict[str, dict[int | None, Difference]] = {
        "a": {1: bad, 2: bad, 3: same, None: good},
        "b": {1: Difference(0.1, None, 1), 2: Difference(-0.38, 0.06, 2)},
    }
    assert verdicts(found) == [
        "a: worse at 1 and 2 votes (a loss of up to 1.43 points is not excluded); not told apart "
        "at 3 votes (a loss of up to 0.43 points is not excluded); better at all votes.",
        "b: too few seeds to tell at 1 and 2 votes.",
    ]
    # The worst of a group is named, and where nothing is lost nothing is said.
    found = {"c": {1: same, 2: Difference(-0.002, 0.001, 3)}, "d": {1: Difference(0.0, 0.0, 3)}}
    assert verdicts(found) == [
        "c: not told apart at 1 and 2 votes (a loss of up to 0.63 points is not excluded).",
        "d: not told apart at 1 vote.",
    ]


def test_sets_that_hold_everything_win_nothing() -> None:
    records = [
        Record(
            setting=f"{FAMILY}-3-{rule}",
            method=method,
            seed=1,
            metrics={"accuracy": 0.9, "human_coverage": held, "human_gap": 1 - held},
        )
        for rule, method, held in (
            ("precise", "softmax", 0.6),
            ("relax", "pocc", 0.7),
            ("clopper-pearson", "pocc", 1.0),  # all distributions
        )
    ]
    cells = family_cells(records, FAMILY)
    for metric in ("human_coverage", "human_gap"):
        text = markdown(vote_table(cells, metric, FAMILY))
        assert "**" not in text
        assert "<u>" not in text
        assert not {"↑", "↓"} & set(text)
    assert "**90.00**" in markdown(vote_table(cells, "accuracy", FAMILY))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved, instead of their files."""
    kept: list[Figure] = []

    def keep(self: Figure, *args: object, **options: object) -> None:
        kept.append(self)

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept


def test_the_figure_has_a_panel_a_metric_and_a_line_a_row(
    drawn: list[Figure], tmp_path: Path
) -> None:
    records = family_records()
    cells = family_cells(records, FAMILY)
    vote_figure(cells, FAMILY, tmp_path / "a.png")
    assert len(drawn[0].axes) == len(PANELS)
    for axes, metric in zip(drawn[0].axes, PANELS, strict=True):
        assert axes.get_xscale() == "log"
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [
            "1",
            "2",
            "3",
            "5",
            "10",
            "all",
        ]
        assert len(axes.lines) == len(axes.collections) == len(cells)
        for line, by_number in zip(axes.lines, cells.values(), strict=True):
            assert list(line.get_xdata()) == [1, 2, 3, 5, 10, 51.1]  # type: ignore[arg-type]
            scale = 100 if METRICS[metric].percent else 1
            means = [
                scale * np.mean([record.metrics[metric] for record in runs.values()])
                for runs in by_number.values()
            ]
            np.testing.assert_allclose(np.asarray(line.get_ydata()), means)
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == list(cells)
    vote_figure(cells, FAMILY, tmp_path / "a.png", metrics=["ece"])
    assert len(drawn[1].axes) == 1


def test_the_figure_of_a_rehearsal_says_so(drawn: list[Figure], tmp_path: Path) -> None:
    records = [replace(each, config={"epochs": 1, "limit": 9}) for each in family_records()]
    for each in (records, family_records()):
        vote_figure(family_cells(each, FAMILY), FAMILY, tmp_path / "a.png", metrics=["ece"])
    said = "\nA rehearsal: epochs 1, not 150; 9 training and test items at most"
    assert drawn[0].get_suptitle() == f"{drawn[1].get_suptitle()}{said}"


def test_a_rule_that_failed_does_not_flatten_the_others(
    drawn: list[Figure], tmp_path: Path
) -> None:
    numbers = ("1", "3")
    values = {("precise", "softmax"): 0.92, ("relax", "pocc"): 0.90}
    records = [
        record
        for number in numbers
        for (rule, method), value in values.items()
        for record in accuracies(rule, method, number, [value, value + 0.01])
    ]
    failed = accuracies("idm", "pocc", "1", [0.1, 0.1]) + accuracies("idm", "pocc", "3", [0.9, 0.9])
    vote_figure(family_cells(records, FAMILY), FAMILY, tmp_path / "a.png")
    vote_figure(family_cells([*records, *failed], FAMILY), FAMILY, tmp_path / "a.png")
    for figure, said in zip(drawn, (False, True), strict=True):
        (axes,) = figure.axes
        low, high = axes.get_ylim()
        assert 85 < low < 90
        assert 93 < high < 95
        assert ("left out where accuracy is" in figure.get_suptitle()) == said
    assert 10 in drawn[1].axes[0].lines[-1].get_ydata()  # type: ignore[operator]
    # Elsewhere it is left out: a set of everything would look perfect.
    wide = [replace(each, metrics={**each.metrics, "human_coverage": 1.0}) for each in failed]
    cells = family_cells([*records, *wide], FAMILY)
    vote_figure(cells, FAMILY, tmp_path / "a.png", metrics=["human_coverage"])
    assert list(drawn[2].axes[0].lines[-1].get_xdata()) == [3]  # type: ignore[arg-type]


def test_the_figure_is_written_or_says_why_not(tmp_path: Path) -> None:
    cells = family_cells(family_records(), FAMILY)
    vote_figure(cells, FAMILY, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CredalError, match=r"must end in one of .png, .svg, .pdf; got .*a.gif"):
        vote_figure(cells, FAMILY, tmp_path / "a.gif")
    few = family_cells(accuracies("idm", "pocc", "1", [0.9]), FAMILY)
    with pytest.raises(CredalError, match=r"family .* has any of ece\. To fix: take one of acc"):
        vote_figure(few, FAMILY, tmp_path / "b.png", metrics=["ece"])
    assert not (tmp_path / "b.png").exists()


def test_sizes_of_sets_with_the_coverage_reached() -> None:
    records = fake_records("cifar10h-features")
    table = set_table(records, "cifar10h-features")
    assert table.rows.keys() == {record.method for record in records}
    assert table.corner == "method (10 seeds)"
    own = [record.metrics["set_width_90"] for record in records if record.method == "edl"]
    assert table.rows["edl"]["width at 90 %"] == pytest.approx((np.mean(own), np.std(own)))
    head, rule, *body = markdown(table).splitlines()
    assert head.startswith(
        "| method (10 seeds) | width at 90 % ↓ | covered at 90 % | width at 95 %"
    )
    assert rule == "| :-- | --: | --: | --: | --: | --: |"
    assert len(body) == len(table.rows)
    smallest = min(value[0] for row in table.rows.values() if (value := row["width at 90 %"]))
    assert any(f"**{smallest:.3f}**" in line.split("|")[2] for line in body)
    assert not any("**" in line.split("|")[3] for line in body)  # coverage is no contest


def test_methods_without_sizes_are_left_out_and_none_is_an_error() -> None:
    records = fake_records("cifar10h-voted")
    short = [
        replace(record, metrics={"accuracy": 0.9})
        if record.method == "edl" and record.seed == 2
        else record
        for record in records
    ]
    assert "edl" not in set_table(short, "cifar10h-voted").rows
    uneven = [r for r in records if r.method != "pocc" or r.seed == 1]
    assert "pocc (1 seed)" in set_table(uneven, "cifar10h-voted").rows
    with pytest.raises(CredalError, match="no method of setting 'cifar10h' has sizes of sets"):
        set_table(fake_records("cifar10h"), "cifar10h")
