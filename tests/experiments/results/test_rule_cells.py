"""One label rule in every family, with Holm's correction."""

import numpy as np
import pytest
from scipy import stats

from credalearn_experiments.records import Record
from credalearn_experiments.results.table import Table
from credalearn_experiments.results.votes import holm, rule_page


def runs(setting: str, method: str, accuracies: list[float]) -> list[Record]:
    return [
        Record(setting=setting, method=method, seed=seed, metrics={"accuracy": accuracy})
        for seed, accuracy in enumerate(accuracies, start=1)
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
