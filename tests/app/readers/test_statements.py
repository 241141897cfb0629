"""Statements: read, merged, refused, and learned from as they were made."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from annotation_exports import LONG, SAID, Write
from credalearn import CredalError, Run, read_annotations
from credalearn.app.annotations.merge import merge
from credalearn.app.cli import app
from credalearn.app.labels import make_labels
from credalearn.app.report.card import write_card
from credalearn.app.report.evaluation import HeldOut
from credalearn.app.steps.inspect import inspect
from credalearn.app.steps.report import label_risk
from credalearn.app.steps.rules import compare_rules


def test_statements_are_votes_for_the_top_class_and_labels_as_stated(write: Write) -> None:
    found = read_annotations(write(SAID))
    assert (found.kind, found.contains, found.source.format) == ("votes", *["statements"] * 2)
    assert found.classes == ("cat", "dog", "fox", "owl")
    assert found.counts().tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]
    labels = make_labels(found, found.counts(), "idm", items=["y", "silent", "x"])
    lower = [[0, 1 / 3, 2 / 3, 0], [0, 0, 0, 0], [0.35, 0.45, 0, 0]]  # means of two
    upper = [[0, 1 / 3, 2 / 3, 0], [1, 1, 1, 1], [0.35, 0.65, 0, 0.2]]
    assert labels.lower.flatten().tolist() == pytest.approx(np.ravel(np.array(lower)))
    assert labels.upper.flatten().tolist() == pytest.approx(np.ravel(np.array(upper)))
    assert inspect(found).notes[0].endswith("s: 1 with more than 100 % (scaled to 100 %)")
    spelled = read_annotations(write(f"{SAID}z,ann,Cat,60,,,\nw,ann,cat,60,,,\n"))
    assert "or spaces: 'Cat', 'cat'; write them alike" in spelled.source.notes[0]
    with pytest.raises(CredalError, match="statements, which are labels already"):
        compare_rules(found)


def test_people_of_two_rounds_are_merged_and_plain_votes_refused(write: Write) -> None:
    names = ["cat", "dog", "fox", "owl"]
    first = read_annotations(write(SAID[: SAID.index("x,bo")]), classes=names)
    second = read_annotations(write(SAID, name="later.csv"), classes=names)
    assert merge(first, second).table.equals(second.table)
    with pytest.raises(CredalError, match=r"cat, 1.0, 70.0.* and cat, 1.0, 75.0"):
        merge(first, read_annotations(write(SAID.replace("cat,70", "cat,75"))))
    with pytest.raises(CredalError, match=r"one kind; .*contains statements, .*votes"):
        merge(first, read_annotations(write(LONG + "z,ann,cat\nz,bo,dog\n")))


def test_the_command_trains_on_statements(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X, percent = random.normal(size=(90, 2)), random.integers(60, 101, 180)
    item = np.arange(90).repeat(2)
    side = np.where(X[item, 0] > 0, "right", "left")
    said = {"item": item, "top": side, "top_percent": percent, "second": side}
    pl.DataFrame(said).write_csv(tmp_path / "statements.csv")
    pl.DataFrame({"item": range(90), "a": X[:, 0], "b": X[:, 1]}).write_csv(tmp_path / "items.csv")
    files = [str(tmp_path / name) for name in ("statements.csv", "items.csv", "run")]
    train = ["train", files[0], "--features", files[1], "-o", files[2]]
    found = CliRunner().invoke(app, train)
    assert "contradictory, of 180 statements: 180 with one class twice (the second" in found.output
    run = Run.load(files[2])
    assert (run.facts.annotations.answers, run.truth, run.facts.annotations.stated) == (
        "votes",
        "majority",
        True,
    )
    rows = np.isin(item.astype(str), run.items.filter(split="train")["item"].to_list())
    assert run.facts.label_diameter == pytest.approx(1 - percent[rows].mean() / 100, abs=1e-4)
    risk = label_risk(run, HeldOut.of(run))
    assert (risk.rule, risk.why_not) == ("", "")
    write_card(run, tmp_path / "card.md", {})
    assert "as stated" in (tmp_path / "card.md").read_text()
    again = CliRunner().invoke(app, [*train, "--skill", "dawid-skene"])
    assert "contains statements" in str(again.exception)
