"""What ``inspect`` says: facts for a run, at most eight lines for people, consensus labels."""

import tracemalloc
from pathlib import Path

import pytest

from annotation_exports import LONG, Write
from credalearn import CredalError, read_annotations
from credalearn.app.steps.inspect import consensus, inspect
from made_annotations import Vote, bounds_of, shares_of, three_items, votes_of
from present import present
from team_files import (
    CLASSES,
    Capture,
    as_json,
    facts_of,
    make_team,
    succeed,
    team_data,
    train_arguments,
)


def test_memory_does_not_grow_with_items_times_classes() -> None:
    votes = [
        (f"i{n}", who, f"c{(n + k) % 3000}") for n in range(3000) for k, who in enumerate("ab")
    ]
    made = votes_of(votes)
    tracemalloc.start()
    assert inspect(made).annotations.votes == 6000
    assert len(consensus(made)) == 3000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3000 * 3000  # bytes; a table of the counts takes eight times as many


def test_lines_report_outliers_and_missing_votes() -> None:
    votes: list[Vote] = [(f"i{n}", who, "horse") for n in range(30) for who in "abc"]
    votes += [(f"i{n}", "far", "cow") for n in range(30)]
    votes += [("i2", "d", None), ("j", "d", None)]
    found = inspect(votes_of(votes))
    text = "\n".join(found.lines)
    assert [each.name for each in found.far] == ["far"]
    assert found.annotations.unvoted == 1
    for said in (
        "31 items, 5 annotators, 120 votes, 2 classes: cow, horse",
        "4 votes per item (0 to 4), 1 item without a vote; ",
        " unanimous, 0 % tied of the 30 items with two votes or more; ",
        "most confused (share of disagreements): cow and horse (",
        "rarely agree with the others: far (0 of 30)",
    ):
        assert said in text


def test_train_prints_the_same_remarks(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    with team.votes.open("a") as file:
        file.writelines([*(f"x{n:03d},far,{CLASSES[n % 3]}\n" for n in range(60)), "x000,gus,\n"])
    remarks = succeed(capsys, "inspect", team.votes).out.splitlines()[-2:]
    assert remarks[0].startswith("rarely agree with the others: far (")
    assert remarks[1] == "not counted: 1 empty"
    assert succeed(capsys, *train_arguments(team)).out.splitlines()[1:3] == remarks


def test_facts_are_those_of_the_annotations(write: Write) -> None:
    annotations = read_annotations(write(LONG + "x,a,cat\nx,b,dog\nx,c,\ny,a,cat\n"))
    facts = inspect(annotations).annotations
    assert (facts.items, facts.annotators, facts.votes) == (2, 2, 3)
    assert facts.left_out == {"empty": 1}
    assert facts.item == "task"
    assert facts.votes_per_item == (1, 1.5, 2)
    assert facts.confused == (("cat", "dog", 1.0),)


def test_consensus_is_the_single_leading_class() -> None:
    found = consensus(three_items())
    assert found.rows() == [("x", "cat", 3.0, 1.0), ("y", None, 2.0, 0.5), ("z", None, 2.0, 0.5)]
    unvoted = consensus(shares_of("counts", ("1", "2"), x=[0, 0], y=[1, 3]))
    assert unvoted.rows() == [("x", None, 0.0, 0.0), ("y", "2", 4.0, 0.75)]
    assert consensus(bounds_of(("x", "1", 0.6), ("x", "2", 0.1)))["label"][0] == "1"


def test_python_gets_the_facts_that_the_command_prints(tmp_path: Path, capsys: Capture) -> None:
    team, table = make_team(tmp_path), tmp_path / "table.csv"
    votes = read_annotations(team.votes)
    for flags, options in (
        ((), {}),
        (("-o", table), {"output": table}),
        (("--rules",), {"rules": True}),
    ):
        made = votes.inspect(**options)
        written = table.read_bytes() if options.get("output") else b""
        done = succeed(capsys, "inspect", team.votes, *flags)
        assert done.out.splitlines() == made.lines
        assert written == (table.read_bytes() if options.get("output") else b"")
        assert facts_of(capsys, "inspect", team.votes, *flags) == as_json(made.facts)
    assert present(votes.inspect(rules=True).rules).best is not None
    data = team_data(team)
    assert data.inspect().facts == data.annotations.inspect().facts
    assert data.inspect().table["label"].null_count() < 60
    with pytest.raises(CredalError, match=r"votes.csv is an input of this command"):
        votes.inspect(output=team.votes)
