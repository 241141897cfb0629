"""The commands with a second round of annotation: what is merged, and what is refused."""

from pathlib import Path

import polars as pl

from credalearn.app.run import Run
from team_files import Capture, make_team, succeed, train_arguments


def test_the_table_of_deferred_items_needs_no_truth_and_no_split(
    tmp_path: Path, capsys: Capture
) -> None:
    """What was given to defer has a text and neither gold labels nor splits."""
    team = make_team(tmp_path)
    votes, table = pl.read_csv(team.votes), pl.read_csv(team.features)
    table = table.with_columns(
        patient=pl.when(pl.col("item") == "x059").then(pl.lit("p3")).otherwise("item")
    )
    is_first = pl.col("item") < "x050"
    later, more = tmp_path / "later.csv", tmp_path / "more.csv"
    votes.filter(~is_first).write_csv(later)
    votes.filter(is_first).write_csv(team.votes)
    new = table.filter(~is_first).drop("truth", "part").with_columns(text=pl.lit("Hello"))
    new.write_csv(more)
    first = table.filter(is_first)
    in_test = pl.when(pl.col("item") == "x004").then(pl.lit("p3")).otherwise("patient")
    first.with_columns(patient=in_test).write_csv(team.features)
    named = ("--group", "patient", "--gold", "truth", "--split", "part")
    given = train_arguments(team, "--features", more, "--drop", "text", *named)
    done = succeed(capsys, *given, "--merge", later)
    run = Run.load(team.run)
    split = dict(run.items.select("item", "split").iter_rows())
    assert [split[name] for name in first["item"]] == first["part"].to_list()
    assert [split.get(name) for name in new["item"]] == ["train"] * 9 + [None]
    assert run.facts.later_items == 9
    assert "For training only: 9 items of later rounds" in done.out
    left_out = "of later exports whose patient is in calibration or test"
    assert run.facts.inputs.left_out == {left_out: 1}
    assert f"Left out: 1 item {left_out}" in done.out
    assert run.facts.inputs.later == (str(more),)
    truths = run.items.filter(pl.col("item").is_in(new["item"].to_list()))["truth"]
    assert truths.null_count() == 9
