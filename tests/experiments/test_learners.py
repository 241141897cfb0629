"""The page of learners: who is compared, and by how much the default differs from the best."""

import numpy as np
import polars as pl
import pytest

from credalearn_experiments.learners import LEARNERS, METRICS, learners_page
from credalearn_experiments.results.table import Table
from credalearn_experiments.studies import COLUMNS


def test_differences_are_paired_and_with_the_best_rival() -> None:
    noise = np.random.default_rng(0).normal(size=10)
    levels = dict(zip(LEARNERS, (0.80, 0.85, 0.70, 0.84, 0.78, 0.9, 0.9), strict=True))
    rows = [
        ("learners", "ArMIS", name, seed, column.name, level + each)
        for name, level in levels.items()
        for seed, each in enumerate(noise)
        for column in METRICS
    ]
    scores = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    *tables, last = (part for part in learners_page(scores) if isinstance(part, Table))
    assert [list(table.rows) for table in tables] == [list(LEARNERS)]
    assert list(last.rows) == ["ArMIS", "ArMIS, both on Dawid–Skene"]
    found = [row["accuracy"] for row in last.rows.values()]
    # The noise of a seed is the same for all, so that nothing is left of it.
    assert found == [pytest.approx((-0.04, 0), abs=1e-9), pytest.approx((0.01, 0), abs=1e-9)]
