"""Columns made from the labels are named, whatever they are called; honest ones are not."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credalearn.app.run import Run
from credalearn.app.steps.baselines import find_leaks
from team_files import in_process, make_team, train_arguments

Capture = pytest.CaptureFixture[str]


def test_finds_numbers_and_texts_that_predict_the_class() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(-1, 3, 600)
    honest = truth + rng.normal(0, 0.5, 600)
    table = pl.DataFrame(
        {
            "honest": honest,
            "code": np.array([7.0, 3.0, 5.0, 1e300])[truth],
            "batch": [("b-first", "a-second", "c-third", None)[k] for k in truth],
            "gaps": np.where(rng.random(600) < 0.1, np.nan, honest),
        }
    )
    found = find_leaks(table, truth, table.columns)
    assert found == {"code": 1.0, "batch": 1.0}
    matrix = table.drop("batch").to_numpy()
    assert find_leaks(matrix, truth, ["honest", "code", "gaps"]) == {"code": 1.0}


def test_votes_may_differ_from_the_label_that_a_column_was_made_from() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    column = np.where(rng.random(400) < 0.03, 1 - truth, truth).astype(float)[:, None]
    assert list(find_leaks(column, truth, ["queue"])) == ["queue"]


def test_ignores_rare_classes_and_few_items() -> None:
    rare = np.zeros(1000, int)
    rare[::100] = 1  # answering 0 is right for 99 %
    noise = np.random.default_rng(0).normal(size=(1000, 1))
    assert find_leaks(noise, rare, ["x"]) == {}
    assert find_leaks(rare[:, None].astype(float), rare, ["x"]) == {"x": 1.0}
    assert find_leaks(np.eye(2)[:1].repeat(40, 0), np.arange(40) % 2, ["x", "y"]) == {}
    assert find_leaks(noise, np.zeros(1000, int), ["x"]) == {}
    assert find_leaks(noise[:60], np.arange(60) % 15, ["x"]) == {}  # a tree can learn 30 by heart


def test_train_warns_of_a_column_made_from_the_labels(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=200)
    done = in_process(capsys, *train_arguments(team))
    assert "it alone predicts the class" not in done.out
    votes = pl.read_csv(team.votes).group_by("item").agg(pl.col("label").mode().sort().first())
    codes = votes.with_columns(pl.col("label").replace_strict({"cat": 2, "dog": 0, "owl": 1}))
    table = pl.read_csv(team.features).join(codes.rename({"label": "queue no"}), on="item")
    table.write_csv(team.features)
    done = in_process(capsys, *train_arguments(team))
    assert "Column 'queue no': it alone predicts the class of 100 %" in done.out
    assert "--drop 'queue no'" in done.out
    assert Run.load(team.run).facts.leaks == {"queue no": 1.0}
    assert in_process(capsys, "report", team.run).code == 0
    assert "it alone predicts the class" in (team.run / "report.html").read_text()
