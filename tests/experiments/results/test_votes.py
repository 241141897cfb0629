"""Label rules by the number of votes, and one rule in every family with Holm's correction."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.table import Table
from credalearn_experiments.results.votes import (
    METRICS,
    differences,
    family_cells,
    holm,
    rule_page,
    vote_table,
    votes_page,
)
from credalearn_experiments.settings.catalog import FAMILIES
from fake_records import fake_records

FAMILY = "cifar10h-votes"


def family_records(family: str = FAMILY) -> list[Record]:
    return [record for each in FAMILIES[family].settings for record in fake_records(each.name)]


def runs(setting: str, method: str, accuracies: list[float]) -> list[Record]:
    return [
        Record(setting=setting, method=method, seed=seed, metrics={"accuracy": accuracy})
        for seed, accuracy in enumerate(accuracies, start=1)
    ]


def accuracies(rule: str, method: str, number: str, values: list[float]) -> list[Record]:
    return runs(f"{FAMILY}-{number}-{rule}", method, values)


def test_rows_are_rules_and_columns_numbers_of_votes() -> None:
    records = family_records()
    cells = family_cells([*records, *fake_records("cifar10h")], FAMILY)
    assert list(cells) == [
        *("softmax, precise", "pocc, relax", "pocc, relax-ties", "pocc-mean, relax-ties"),
        *("pocc, idm", "pocc, clopper-pearson"),
    ]
    assert all(list(by_number) == ["1", "2", "3", "5", "10", "all"] for by_number in cells.values())
    for metric, column in METRICS.items():
        table = vote_table(cells, metric, FAMILY)
        assert [each.name for each in table.columns] == ["1", "2", "3", "5", "10", "all"]
        assert {replace(each, name=column.name) for each in table.columns} == {column}
        own = [r.metrics[metric] for r in records if r.setting == "cifar10h-votes-10-idm"]
        assert table.rows["pocc, idm"]["10"] == pytest.approx((np.mean(own), np.std(own)))


def test_notes_report_uneven_seeds() -> None:
    records = [r for r in family_records() if r.seed < 3 or "-all-" not in r.setting]
    seeds = str(votes_page(family_cells(records, FAMILY), FAMILY)[-1])
    start = "3 seeds of every run, but 2 seeds at all votes of softmax, precise; pocc, relax; "
    assert seeds.startswith(start)


def test_rejects_unknown_families_and_metrics() -> None:
    message = r"no record of the family .* run 'cifar10n-votes-\*'`"
    with pytest.raises(CredalError, match=message):
        family_cells(family_records(), "cifar10n-votes")
    with pytest.raises(CredalError, match=r"family must be one of 'cifar10h-votes', .*'x'"):
        family_cells(family_records(), "x")
    cells = family_cells(accuracies("idm", "pocc", "1", [0.9]), FAMILY)
    with pytest.raises(CredalError, match=r"metric must be one of 'accuracy'; got 'human_gap'"):
        vote_table(cells, "human_gap", FAMILY)


def test_differences_are_paired_by_seed() -> None:
    records = [
        *accuracies("precise", "softmax", "1", [0.80, 0.90, 0.70]),
        *accuracies("relax", "pocc", "1", [0.78, 0.88, 0.68, 0.1]),  # the fourth has no partner
        *accuracies("idm", "pocc", "1", [0.81, 0.88, 0.70]),
        *accuracies("relax", "pocc", "all", [0.5]),
    ]
    cells = family_cells(records, FAMILY)
    found = differences(cells)
    assert {row: list(by_number) for row, by_number in found.items()} == {
        "pocc, relax": ["1"],
        "pocc, idm": ["1"],
    }
    worse, noise = found["pocc, relax"]["1"], found["pocc, idm"]["1"]
    assert worse.mean == pytest.approx(-0.02)
    assert (worse.standard_error, worse.seeds) == (0.0, 3)
    pairs = np.array([0.01, -0.02, 0.0])
    assert noise.mean == pytest.approx(pairs.mean())
    assert noise.standard_error == pytest.approx(math.sqrt(pairs.var(ddof=1) / 3))
    _, table, *lines = votes_page(cells, FAMILY, ["accuracy"])
    assert isinstance(table, Table)
    assert table.rows["pocc, relax"] == {"1": (worse.mean, 0.0)}
    assert lines[:2] == [
        "pocc, relax: worse at 1 vote (a loss of up to 2.00 points is not excluded).",
        "pocc, idm: no clear difference at 1 vote (a loss of up to 4.13 points is not excluded).",
    ]


def test_holm_adjusts_the_textbook_example() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_holm_rarely_rejects_where_nothing_differs() -> None:
    draws = np.random.default_rng(0).random((2000, 17))
    rejected = [min(holm(dict(enumerate(row))).values()) < 0.05 for row in draws]  # type: ignore[arg-type]
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.015)


def test_cells_of_all_families_are_corrected_together() -> None:
    soft, better = [0.80, 0.81, 0.82, 0.83], [0.82, 0.83, 0.85, 0.85]
    records = [
        *runs("lidc-votes-2-precise", "softmax", soft),
        *runs("lidc-votes-2-relax-ties", "pocc-mean", better),
        *runs("cifar10h-votes-3-precise", "softmax", soft),
        *runs("cifar10h-votes-3-relax-ties", "pocc-mean", [0.80, 0.82, 0.81, 0.83]),
        *runs("cifar10h-votes-3-relax-ties", "pocc", soft),
    ]
    table, note = rule_page(records, "relax-ties", "pocc-mean")
    assert isinstance(table, Table)
    assert list(table.rows) == ["cifar10h-votes, 3", "lidc-votes, 2"]
    p = stats.ttest_rel(better, soft).pvalue
    row = table.rows["lidc-votes, 2"]
    assert row["p"] == pytest.approx((p, None))
    assert row["p, Holm"] == pytest.approx((2 * p, None))
    assert row["verdict"] == "better"
    assert note == (
        "Of 2 cells: better in 1, after Holm's correction in 1; "
        "worse in 0, after Holm's correction in 0."
    )
