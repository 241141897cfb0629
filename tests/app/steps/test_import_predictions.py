"""Another model's probabilities as a run: whose they are, and what can be done with them."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from team_files import CLASSES, Capture, Team, in_process, make_team, succeed


def probabilities(table: pl.DataFrame) -> np.ndarray:
    """What another model says, (N, 3); rounded, as people write it."""
    values = table.select("size", "weight").to_numpy()
    shares = np.exp(2.5 * np.stack([values[:, 0], values[:, 1], -values.sum(1)], axis=1))
    rounded: np.ndarray = (shares / shares.sum(1, keepdims=True)).round(3)
    return rounded


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A team with probabilities, votes and gold labels of 400 old items and 200 new ones."""
    team = make_team(tmp_path_factory.mktemp("team"), num_items=600)
    table, votes = pl.read_csv(team.features), pl.read_csv(team.votes)
    by_class = dict(zip((f"p_{name}" for name in CLASSES), probabilities(table).T, strict=True))
    scored = table.select("item", "patient", "part", text="Item " + pl.col("item"))
    scored = scored.with_columns(**{name: pl.Series(each) for name, each in by_class.items()})
    for name, rows in (("old-", pl.col("item") < "x400"), ("new-", pl.col("item") >= "x400")):
        scored.drop("part").filter(rows).write_csv(team.folder / f"{name}scored.csv")
        table.select("item", gold="truth").filter(rows).write_csv(team.folder / f"{name}gold.csv")
        votes.filter(rows).write_csv(team.folder / f"{name}votes.csv")
    return team


def test_commands_work_on_imported_votes(team: Team, tmp_path: Path, capsys: Capture) -> None:
    run, folder = tmp_path / "run", team.folder
    old, new = folder / "old-scored.csv", folder / "new-scored.csv"
    given = ("import", old, "--votes", folder / "old-votes.csv", "-o", run)
    done = succeed(capsys, *given, "--model-name", "Vendor X", "--group", "patient")
    assert "3 classes: 'cat', 'dog', 'owl'" in done.out
    assert f"Wrote {run}: probabilities of Vendor X; items: 200 calibration, 200 test" in done.out
    done = succeed(capsys, "certify", run, "--max-error", "0.2", "--set-coverage", "0.8")
    assert "one minus the probability of the label, by Vendor X." in done.out
    assert "wrong compared with the class with the most votes" in done.out
    assert len(done.out.splitlines()) <= 8
    done = succeed(capsys, "predict", run, new, "-o", tmp_path / "decisions.csv")
    assert "200 items: " in done.out
    found = pl.read_csv(tmp_path / "decisions.csv")
    given_probs = pl.read_csv(new).select(f"p_{c}" for c in CLASSES).to_numpy()
    assert [CLASSES[k] for k in given_probs.argmax(1)] == found["label"].to_list()
    assert found["probability"].to_numpy() == pytest.approx(given_probs.max(1), abs=2e-3)
    tasks = tmp_path / "tasks.json"
    done = succeed(capsys, "defer", run, new, "-o", tasks, "--threshold", "0.1")
    assert "train" not in done.out
    assert json.loads(tasks.read_text())[0]["data"]["text"].startswith("Item x")
    again = tmp_path / "again"
    votes = ("recalibrate", run, folder / "new-votes.csv", "--predictions", new)
    done = succeed(capsys, *votes, "--group", "patient", "-o", again)
    assert "100 calibration and 100 test items; nothing was trained." in done.out
    succeed(capsys, "certify", again, "--max-error", "0.3")
    assert cl.Run.load(again).facts.imported == "Vendor X"
    done = in_process(capsys, "export", run, "--onnx", tmp_path / "model.onnx")
    assert done.code == 2
    assert "was imported: it has the probabilities of Vendor X and no model" in done.err


def test_gold_labels_alone_add_no_annotator(team: Team, tmp_path: Path, capsys: Capture) -> None:
    run, folder = tmp_path / "run", team.folder
    given = ("import", folder / "old-scored.csv", "--gold", folder / "old-gold.csv")
    done = in_process(capsys, *given, "--drop", "patient", "-o", tmp_path / "json", "--json")
    assert json.loads(done.out)["imported"] == "old-scored.csv"
    scored = pl.read_csv(folder / "old-scored.csv").drop("patient")
    names = [name for name in scored.columns if name not in ("item", "text")]
    turned = dict(zip(names, [*names[1:], names[0]], strict=True))
    scored.rename(turned).write_csv(tmp_path / "turned.csv")
    done = succeed(capsys, "import", tmp_path / "turned.csv", *given[2:], "-o", tmp_path / "turned")
    assert "With the columns of its classes swapped, the model would be right on " in done.out
    done = succeed(capsys, *given, "--drop", "patient", "-o", run)
    assert "test items by gold." in done.out
    loaded = cl.Run.load(run)
    assert loaded.facts.annotations.annotators is None
    assert loaded.facts.annotations.votes == 0
    assert loaded.facts.imported == "old-scored.csv"
    done = in_process(capsys, "certify", run, "--max-error", "0.2")
    assert "wrong compared with the gold labels" in done.out
    assert "Compared with the gold labels" in done.out
    succeed(capsys, "report", run)
    page, card = (run / "report.html").read_text(), (run / "MODEL_CARD.md").read_text()
    for text in (page, card):
        assert "probabilities of old-scored.csv" in text
        assert "gold labels" in text
    assert "There are no votes: the items have gold labels." in page
    assert "There is no risk profile: no test item has votes." in page
    assert "A few votes" not in page
    assert "ONNX" not in card
    new = ("--gold", folder / "new-gold.csv", "--predictions", folder / "new-scored.csv")
    done = in_process(capsys, "recalibrate", run, *new, "-o", tmp_path / "again")
    assert "with a gold label" in done.out, done.err
    done = in_process(capsys, "recalibrate", run, *new[2:], "-o", tmp_path / "none")
    assert "Pass votes or gold labels." in done.err


def test_items_without_a_probability_may_be_left_out(team: Team, tmp_path: Path) -> None:
    scored = pl.read_csv(team.folder / "old-scored.csv").drop("text", "patient")
    gap = scored.with_columns(p_cat=pl.when(pl.col("item") != "x000").then("p_cat"))
    given, gold = (gap, None, tmp_path / "run"), team.folder / "old-gold.csv"
    with pytest.raises(cl.CredalError, match="To fix: fill the empty cells"):
        cl.Run.from_predictions(*given, gold=gold)
    run = cl.Run.from_predictions(*given, gold=gold, skip_missing=True)
    assert run.facts.inputs.left_out == {"with an empty probability": 1}
    with pytest.raises(cl.CredalError, match=r"no column 'p_ct'; its columns are: item, p_cat"):
        cl.Run.from_predictions(*given, gold=gold, drop="p_ct")


def test_python_takes_arrays_annotations_and_datasets(team: Team, tmp_path: Path) -> None:
    table = pl.read_csv(team.features)
    votes, probs = cl.read_annotations(team.votes), probabilities(table)
    run = cl.Run.from_predictions(probs, votes, tmp_path / "votes", model_name="forest")
    assert run.facts.learner == "probabilities of forest"
    assert run.facts.splits == {"calibration": 300, "test": 300}
    swapped = table.select("item").with_columns(
        **{name: probs[:, CLASSES.index(name)] for name in reversed(CLASSES)}
    )
    other = cl.Run.from_predictions(swapped, votes, tmp_path / "swapped")
    assert other.predictions.equals(run.predictions)
    data = cl.Dataset(votes, features=table.drop("patient"), gold="truth", split="part")
    split = cl.Run.from_predictions(probs, data.split(), tmp_path / "split")
    assert split.facts.inputs.left_out == {"in training": 360}
    assert split.truth == "gold"
    grouped = cl.Dataset(votes, features=table.drop("part", "truth"), group="patient")
    parts = cl.Run.from_predictions(probs, grouped, tmp_path / "grouped").items
    assert parts.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
    whole = cl.Run.from_predictions(
        swapped, cl.Dataset(votes, features=table.select("item", "size")), tmp_path / "whole"
    )
    assert whole.facts.splits == {"calibration": 300, "test": 300}
    with pytest.raises(cl.CredalError, match=r"1 item has no probabilities: 'x000'"):
        cl.Run.from_predictions(swapped[1:], data, tmp_path / "few")
    with pytest.raises(cl.CredalError, match=r"1 of 600 items has no probabilities in .*: 'x000'"):
        cl.Run.from_predictions(swapped[1:], votes, tmp_path / "few")
    from_file = cl.Run.from_predictions(probs, team.votes, tmp_path / "file")
    assert from_file.predictions.equals(run.predictions)
    nested = swapped.select("item", probs=pl.struct(CLASSES))
    from_model = cl.Run.from_predictions(nested, votes, tmp_path / "nested")
    assert from_model.predictions.equals(run.predictions)
    with pytest.raises(cl.CredalError, match=r"must have the shape \(600, 3\), .* got \(5, 3\)"):
        cl.Run.from_predictions(probs[:5], votes, tmp_path / "five")
    with pytest.raises(cl.CredalError, match=r"takes features. To fix: pass features="):
        run.recalibrate(votes, tmp_path / "again")
    with pytest.raises(cl.CredalError, match=r"was imported: .* of forest and no model"):
        run.load_model()


def test_own_splits_are_kept(team: Team, tmp_path: Path) -> None:
    table = pl.read_csv(team.folder / "old-scored.csv").drop("patient", "text")
    own = pl.int_range(400).mod(3).replace_strict({0: "test"}, default="calibration")
    votes, scored = team.folder / "old-votes.csv", table.with_columns(part=own)
    run = cl.Run.from_predictions(scored, votes, tmp_path / "run", split="part")
    assert run.facts.splits == {"calibration": 266, "test": 134}


REFUSED = {
    "percent": ("item,cat,dog\nx,60,40\n", r"item 'x': .* got 60, 40. To fix: divide percentages"),
    "sum": (
        "item,cat,dog\nx,0.6,0.4\ny,0.9,0.4\n",
        r"item 'y': .* got 0.9, 0.4. To fix: add the class",
    ),
    "logits": ("item,cat,dog\nx,1.6,-0.6\n", r"item 'x': .* got 1.6, -0.6. To fix: turn logits"),
    "missing": ("item,cat,dog\nx,0.6,\n", r"item 'x': .* got 0.6, nan. To fix: fill the empty"),
    "one column": (
        "item,cat,text\nx,0.6,Hi\n",
        r"one column of probabilities per class; got 'cat'",
    ),
    "other number": (
        "item,cat,dog,seconds\nx,0.6,0.4,3\n",
        r"got 0.6, 0.4, 3. To fix: leave out other numbers with --drop",
    ),
    "other class": ("item,cat,eel\nx,0.6,0.4\n", r"votes.csv, line 3: 'dog' is none of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rejects_invalid_probabilities(tmp_path: Path, capsys: Capture, name: str) -> None:
    content, message = REFUSED[name]
    (tmp_path / "scored.csv").write_text(content)
    items = content.splitlines()[1:]
    lines = [f"{row.split(',')[0]},{who},{who}" for row in items for who in ("cat", "dog")]
    (tmp_path / "votes.csv").write_text("item,annotator,label\n" + "\n".join(lines) + "\n")
    given = ("import", tmp_path / "scored.csv", "--votes", tmp_path / "votes.csv")
    done = in_process(capsys, *given, "-o", tmp_path / "run")
    assert done.code == 2
    assert re.search(message, done.err), done.err
    assert not (tmp_path / "run").exists()
