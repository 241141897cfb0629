"""The studies of what a set is worth: their sets, their store, their tables and the figure."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch.testing import assert_close

from credalearn_experiments.cli_results import RESULTS
from credalearn_experiments.data.crowd_sets import stated_sets
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.results.table import Table
from credalearn_experiments.set_worth.kinds import CREDAL, KINDS, METRICS, PRECISE, kind_scores
from credalearn_experiments.set_worth.page import (
    best_pair,
    kinds_table,
    set_worth_figure,
    set_worth_page,
)
from credalearn_experiments.set_worth.widths import BOUNDS, CENTER, HULL, WIDTH_CELLS
from credalearn_experiments.studies import COLUMNS, Row, Score, read_scores, run_studies, value_of


def test_statements_of_cifar10s_become_sets() -> None:
    said = {
        "Most Probable Class": "Cat",
        "Most Probable Class Prob": 70.0,
        "Second Most Probable Class": "No",
        "Second Most Probable Class Prob": None,
        "Impossible Class(es)": ["Ship"],
    }
    sets = stated_sets([[said, said | {"Most Probable Class": "Dog"}], [said]])
    assert_close(sets.lower[:, [3, 5, 8]], torch.tensor([[0.35, 0.35, 0.0], [0.7, 0.0, 0.0]]))
    assert sets.upper[0, 8] == 0


def test_a_study_resumes_where_it_stopped(tmp_path: Path) -> None:
    calls: list[tuple[str, int]] = []

    def study(cell: str, seed: int, _: DataFolders) -> list[Score]:
        calls.append((cell, seed))
        return [("one", "width", 0.1 * seed)]

    path = tmp_path / "scores.csv"
    for seeds in ([1], [1, 2]):
        list(run_studies({"made": (study, "ab")}, path, DataFolders(), seeds))
    assert calls == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert read_scores(path)["value"].to_list() == [0.1, 0.2, 0.1, 0.2]


def test_differences_are_paired_by_seed(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows: list[Row] = []
    for seed in range(2, 6):
        level = random.random()  # of the split: it cancels in a paired difference
        for cell in WIDTH_CELLS:
            for learner in (BOUNDS, HULL):
                width = level + 0.1 * (learner == HULL)
                rows += [("widths", cell, learner, seed, "width", width)]
                rows += [("widths", cell, learner, seed, "coverage", 0.9)]
    rows += [("statements", "1 person, 100 images", "POCC, statements", 2, "accuracy", 0.8)]
    scores = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    parts = list(set_worth_page(scores))
    table = next(
        x for x in parts if isinstance(x, Table) and x.title == "Mean width: paired differences"
    )
    gaps = table.rows[f"{BOUNDS} less {HULL}"].values()
    assert all(isinstance(gap, tuple) and gap[0] == pytest.approx(-0.1) for gap in gaps)
    assert all(isinstance(gap, tuple) and gap[1] == pytest.approx(0, abs=1e-9) for gap in gaps)
    assert set(table.rows[f"{BOUNDS} less {CENTER}"].values()) == {None}
    assert table.corner == "learner (4 seeds)"
    # Over all data, only those that both have count.
    some = scores.filter((pl.col("learner") != HULL) | (pl.col("data") == "LIDC, linear"))
    assert value_of(some, f"{BOUNDS} less {HULL}", "width") == pytest.approx((-0.1, 0))
    set_worth_figure(scores, tmp_path / "worth.png")
    assert (tmp_path / "worth.png").stat().st_size > 5000


def test_the_best_of_each_family_is_compared(tmp_path: Path) -> None:
    learners = {"softmax": 0.5, "softmax, mixup": 0.4, "POCC": 0.6, "default learner, sets": 0.3}
    rows: list[Row] = [
        ("kinds", "radiologists", learner, seed, column.name, value + 0.1 * seed)
        for column in METRICS
        for seed in range(3)
        for learner, value in learners.items()
    ]
    scores = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    assert best_pair(scores, "radiologists") == ("default learner, sets", "softmax, mixup")
    assert best_pair(scores, "statements") is None
    table = kinds_table(scores).rows
    assert list(table) == [
        "radiologists: softmax, mixup",
        "radiologists: default learner, sets",
        "radiologists: best less best",
    ]
    assert table["radiologists: softmax, mixup"]["accuracy"] == pytest.approx(
        (0.5, 0.0816), abs=1e-4
    )
    # The same difference with every seed is certain, after any correction.
    assert table["radiologists: best less best"]["accuracy"] == r"-10.0 ± 0.0\*"
    set_worth_figure(scores, tmp_path / "worth.png")
    assert (tmp_path / "worth.png").stat().st_size > 5000


def test_the_stored_scores_are_those_of_the_code() -> None:
    stored = read_scores(RESULTS / "set_worth.csv").filter(study="kinds")
    assert set(stored["data"]) == set(KINDS)
    own = stored.filter(data="radiologists", seed=2).select("learner", "metric", "value").rows()
    before = {(learner, metric): value for learner, metric, value in own}
    found = {row[:2]: row[2] for row in kind_scores("radiologists", 2, DataFolders.named())}
    assert {learner for learner, _ in found} == {*PRECISE, *CREDAL}
    assert found == pytest.approx(before, abs=0.02)
