"""Deferred items out, and the next round's votes back in."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError
from credalearn.app.annotations import Annotations, Source, read_annotations
from credalearn.app.items.names import unescaped
from credalearn.app.joined.merging import merge
from credalearn.app.run import Run
from credalearn.app.steps.covering import keep_sets
from credalearn.app.steps.deferring import defer
from credalearn.app.steps.label_studio import interface
from credalearn.app.steps.predicting import predict
from credalearn.app.steps.shown_text import text_column
from credalearn.conformal import Inflation
from small_run import CLASSES, FEATURES, features, make_image_run, make_pictures, make_run, votes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run") / "RUN")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Features of fifty items, a note beside them, one name a formula."""
    values = dict(zip(FEATURES, features(50, random_state=9).T, strict=True))
    items = ["=1+1", *(f"new-{row}" for row in range(1, 50))]
    notes = [None, *(f"note {row}" for row in range(1, 50))]
    pl.DataFrame({"item": items, **values, "note": notes}).write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


def deferred(run: Run, data: Path, folder: Path) -> pl.DataFrame:
    """What predict defers, the highest score first."""
    predict(run, data, folder / "wanted.parquet")
    table = pl.read_parquet(folder / "wanted.parquet").filter(pl.col("decision") == "defer")
    return table.sort("score", descending=True, maintain_order=True)


@pytest.mark.parametrize("source", ["data", ".csv", ".tsv", ".parquet", ".jsonl"])
def test_tasks_are_the_deferred_items_least_certain_first(
    run: Run, data: Path, tmp_path: Path, source: str
) -> None:
    wanted = deferred(run, data, tmp_path)
    given = data
    if source != "data":
        given = tmp_path / f"decisions{source}"
        predict(run, data, given)
    summary = defer(run, given, tmp_path / "tasks.json")
    assert (summary.items, summary.deferred, summary.written) == (50, len(wanted), len(wanted))
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert [task["data"]["item"] for task in tasks] == wanted["item"].to_list()
    for task, row in zip(tasks, wanted.iter_rows(named=True), strict=True):
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert set(task) == {"data", "predictions"}
        assert prediction["score"] == pytest.approx(row["lower"], abs=1e-6)
        assert "pocc" in prediction["model_version"]
        assert result == {
            "id": "predicted",
            "from_name": "label",
            "to_name": "item",
            "type": "choices",
            "value": {"choices": [row["label"]]},
        }
        if source == "data" and row["item"] != "=1+1":
            assert task["data"]["note"].startswith("note ")
    assert summary.lines[0] == f"{len(wanted)} of 50 items are deferred"


def test_the_interface_fits_the_tasks(run: Run, data: Path, tmp_path: Path) -> None:
    summary = defer(run, data, tmp_path / "tasks.json")
    assert summary.config == tmp_path / "tasks.label_config.xml"
    tree = ElementTree.parse(summary.config).getroot()
    choices, shown = tree.find("Choices"), tree.find("Text")
    assert choices is not None
    assert shown is not None
    assert (choices.get("name"), choices.get("toName")) == ("label", shown.get("name"))
    assert shown.attrib == {"name": "item", "value": "$item"}
    table = tree.find("Table")
    assert table is not None
    assert table.attrib == {"name": "row", "value": "$row"}
    given = {row["item"]: row for row in pl.read_csv(data).iter_rows(named=True)}
    for task in json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8")):
        row = {name: x for name, x in given[task["data"]["item"]].items() if x is not None}
        assert task["data"]["row"] == {name: row[name] for name in row if name != "item"}
    predict(run, data, tmp_path / "decisions.csv")  # does not repeat the features
    defer(run, tmp_path / "decisions.csv", tmp_path / "tasks.json")
    assert "Table" not in (tmp_path / "tasks.label_config.xml").read_text()
    assert [choice.get("value") for choice in choices] == list(CLASSES)


SAID = [f"what was written about the item {row}" for row in range(50)]


def shown(config: Path | None) -> tuple[str | None, bool]:
    """Which field the interface shows, and whether a table of the row."""
    assert config is not None
    tree = ElementTree.parse(config).getroot()
    field = tree.find("Text")
    assert field is not None
    return field.get("value"), tree.find("Table") is not None


@pytest.mark.parametrize(
    ("columns", "asked", "wanted"),
    [
        (["text"], None, "text"),
        (["Text", "nachricht"], None, "Text"),
        (["nachricht"], None, "nachricht"),
        (["nachricht"], "note", "note"),
        (["text", "nachricht"], "nachricht", "nachricht"),
        (["nachricht"], "item", "item"),
        (["Größe & Text"], None, "Größe & Text"),
        (["row"], None, "row"),
        (["one", "two"], None, None),
        ([], None, None),
    ],
)
@pytest.mark.parametrize("decided", [False, True])
def test_annotators_read_the_text(
    run: Run,
    data: Path,
    tmp_path: Path,
    columns: list[str],
    asked: str | None,
    wanted: str | None,
    decided: bool,
) -> None:
    if decided:
        predict(run, data, tmp_path / "decisions.csv")
        notes = pl.read_csv(data)["note"]
        data = tmp_path / "decisions.csv"
        pl.read_csv(data).with_columns(notes).write_csv(data)
    said = {name: [f"{name}: {text}" for text in SAID] for name in columns}
    table = pl.read_csv(data).with_columns(pl.Series(name, said[name]) for name in said)
    table.write_csv(data)
    summary = defer(run, data, tmp_path / "tasks.json", text=asked)
    assert summary.shown == wanted
    field, row = shown(summary.config)
    plain = wanted or "item"
    if wanted in ("Größe & Text", "row"):  # $ and such a name is not found, or the table's
        plain = "text"
    assert (field, row) == (f"${plain}", not decided)
    known = {unescaped(str(row["item"])): row for row in table.iter_rows(named=True)}
    for task in json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8")):
        given = known[task["data"]["item"]]
        read = task["data"]["item"] if wanted in (None, "item") else given[wanted]
        assert task["data"][plain] == (read or "")  # also of an item without a note
        assert decided or wanted not in task["data"]["row"]
    told = f"the labeling interface, which shows the column {wanted!r}"
    assert (told in " ".join(summary.lines)) == (wanted is not None)
    alone = [line for line in summary.lines if line.startswith("annotators see the names")]
    fix = f"name the column that they read with --text; there are 'note'{', ' * bool(columns)}"
    assert bool(alone) == (wanted is None and decided)
    assert all(fix in line for line in alone)


def test_what_is_long_without_spaces_is_no_text(tmp_path: Path) -> None:
    said = ["a wound that is red and wet", "where can I park my car?", None]
    keys = [f"{number:040x}" for number in range(3)]
    frame = pl.DataFrame({"item": ["a", "b", "c"], "key": keys, "empty": [None] * 3})
    assert text_column(tmp_path, frame) is None
    assert text_column(tmp_path, frame.with_columns(pl.Series("said", said))) == "said"
    assert text_column(tmp_path, frame.with_columns(item=pl.Series(keys))) is None


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_names_are_read_by_the_name_of_their_column(
    run: Run, data: Path, tmp_path: Path, suffix: str
) -> None:
    table, tasks = pl.read_csv(data).rename({"item": "id"}), tmp_path / "tasks.json"
    table.write_csv(data)
    if suffix == ".npz":
        data = tmp_path / "data.npz"
        np.savez(data, X=table.select(FEATURES).to_numpy(), id=table["id"].to_numpy().astype(str))
    summary = defer(run, data, tasks, text="id")
    assert summary.shown == "id"
    assert shown(summary.config) == ("$item", True)
    with pytest.raises(CredalError, match=r"has no column 'item' but 'id'"):
        defer(run, data, tasks, text="item")
    with pytest.raises(CredalError, match=r"'size' of .* is a feature .* beside the text in .* To"):
        defer(run, data, tasks, text="size")


def test_names_alone_are_told(run: Run, data: Path, tmp_path: Path) -> None:
    decided, tasks = tmp_path / "decisions.csv", tmp_path / "tasks.json"
    predict(run, data, decided)
    said = "annotators see the names of the items alone. To fix: give the table of features in "
    said += f"place of {decided}, or add a column of texts to it"
    assert defer(run, decided, tasks).lines[-1] == said
    assert defer(run, decided, tmp_path / "tasks.csv", to="csv").lines[-1] == said
    assert defer(run, data, tasks).hidden is None  # the features are shown
    assert defer(run, data, tmp_path / "tasks.csv", to="csv").hidden is None  # the notes are
    with pytest.raises(CredalError, match=r"has no column 'nota' but .*did you mean 'note'"):
        defer(run, data, tasks, text="nota")
    names = pl.Series("item", SAID)
    pl.read_csv(data).with_columns(names).drop("note").write_csv(data)
    assert defer(run, data, tmp_path / "tasks.csv", to="csv").hidden is None
    pl.read_csv(data).with_columns(pl.Series("item", range(50))).write_csv(data)
    summary = defer(run, data, tmp_path / "tasks.csv", to="csv")
    assert summary.lines[-1].endswith("alone. To fix: give a table with a column of texts")


def test_many_features_are_no_table(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tmp_path / "tasks.json"
    assert shown(defer(run, data, tasks).config) == ("$item", True)
    monkeypatch.setattr("credalearn.app.steps.deferring._FEATURES", len(FEATURES) - 1)
    summary = defer(run, data, tasks)
    assert shown(summary.config) == ("$item", False)
    assert all(set(task["data"]) <= {"item", "note"} for task in json.loads(tasks.read_text()))
    assert summary.lines[-1].endswith("read with --text; there are 'note'")


def test_an_interface_of_another_output_stays(run: Run, data: Path, tmp_path: Path) -> None:
    own = tmp_path / "label_config.xml"
    own.write_text("<View/>")
    first, second = (defer(run, data, tmp_path / f"{name}.json").config for name in ("a", "b"))
    assert (first, second) == (tmp_path / "a.label_config.xml", tmp_path / "b.label_config.xml")
    assert own.read_text() == "<View/>"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])), min_size=1))
def test_any_class_stays_itself_in_the_interface(names: list[str]) -> None:
    text = interface(tuple(names), image=False, field="text")
    try:
        tree = ElementTree.fromstring(text)
    except ElementTree.ParseError:  # XML has no place for U+FFFE and U+FFFF at all
        assert any(letter in "".join(names) for letter in "\ufffe\uffff")
        return
    assert [choice.get("value") for choice in tree.iter("Choice")] == names


def test_a_round_comes_back_as_votes(run: Run, data: Path, tmp_path: Path) -> None:
    """Label Studio's export is its tasks with annotations."""
    defer(run, data, tmp_path / "tasks.json", limit=5)
    tasks: list[dict[str, Any]] = json.loads((tmp_path / "tasks.json").read_text())
    for number, task in enumerate(tasks):
        chosen = {"choices": [CLASSES[number % 2]]}
        result = [{**task["predictions"][0]["result"][0], "value": chosen}]
        task["id"] = 100 + number
        task["annotations"] = [{"completed_by": 7, "was_cancelled": False, "result": result}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    found = read_annotations(tmp_path / "export.json", item="item")
    assert list(found.items) == [task["data"]["item"] for task in tasks]
    assert found.classes == ("cat", "dog")


def test_the_csv_is_filled_in_and_read_back(run: Run, data: Path, tmp_path: Path) -> None:
    wanted = deferred(run, data, tmp_path)
    summary = defer(run, data, tmp_path / "round.csv", to="csv")
    assert summary.config is None
    found = pl.read_csv(tmp_path / "round.csv")
    said = [f"model_{name}" for name in ("label", "probability", "lower", "upper", "score")]
    assert found.columns == ["item", *said, "note", "annotator", "label"]
    assert [unescaped(name) for name in found["item"]] == wanted["item"].to_list()
    assert found["label"].null_count() == found["annotator"].null_count() == len(found)
    labels = pl.Series(["dog", "cat"] * len(found)).head(len(found) - 1).extend_constant(None, 1)
    found.with_columns(annotator=pl.lit("ann"), label=labels).write_csv(tmp_path / "filled.csv")
    votes = read_annotations(tmp_path / "filled.csv")
    assert votes.kind == "votes"
    assert votes.counts().sum() == len(wanted) - 1


def test_what_the_model_said_can_be_hidden(run: Run, data: Path, tmp_path: Path) -> None:
    defer(run, data, tmp_path / "tasks.json", predictions=False, limit=2)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [set(task) for task in tasks] == [{"data"}] * 2
    defer(run, data, tmp_path / "round.csv", to="csv", predictions=False)
    assert pl.read_csv(tmp_path / "round.csv").columns == ["item", "note", "annotator", "label"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_bounds_of_all_classes_are_hidden_too(
    run: Run, data: Path, tmp_path: Path, suffix: str
) -> None:
    decided = tmp_path / f"decided{suffix}"
    inflation = Inflation(coverage=0.9, radius=0.5, distance="box", scale="binomial", items=30)
    keep_sets(run, inflation)
    predict(run, data, decided, all_classes=True)
    (run.path / "sets.json").unlink()
    defer(run, decided, tmp_path / "round.csv", to="csv", predictions=False)
    assert pl.read_csv(tmp_path / "round.csv").columns == ["item", "annotator", "label"]
    defer(run, decided, tmp_path / "tasks.json", predictions=False)
    for task in json.loads((tmp_path / "tasks.json").read_text()):
        assert set(task["data"]) == {"item"}


def test_bad_requests_are_refused(run: Run, data: Path, tmp_path: Path) -> None:
    with pytest.raises(CredalError, match=r"must end in .json"):
        defer(run, data, tmp_path / "tasks.csv")
    with pytest.raises(CredalError, match=r"limit must be 1 or more; got 0. To fix: give --limit"):
        defer(run, data, tmp_path / "tasks.json", limit=0)
    rule = (run.path / "guarantee.json").rename(tmp_path / "guarantee.json")
    with pytest.raises(CredalError, match=r"no rule yet.* or give a --threshold\.$"):
        defer(run, data, tmp_path / "tasks.json")
    rule.rename(run.path / "guarantee.json")
    with pytest.raises(
        CredalError, match=r"none of the 50 items .* is deferred. To fix: give the data"
    ):
        defer(run, data, tmp_path / "tasks.json", threshold=1.0)
    predict(run, data, tmp_path / "bare.csv", decide=False)
    with pytest.raises(CredalError, match=r"predictions without decisions"):
        defer(run, tmp_path / "bare.csv", tmp_path / "tasks.json")
    decided = tmp_path / "decided.csv"
    predict(run, data, decided)
    with pytest.raises(CredalError, match=r"made by their own threshold"):
        defer(run, decided, tmp_path / "tasks.json", threshold=0.5)
    text = decided.read_text()
    for old, new, message in (
        ("defer", "keep", r"decision 'keep' of item"),
        (",dog,", ",wolf,", r"label 'wolf' of item"),
        (",'=owl,", ",wolf,", r"label 'wolf' of item"),
        ("new-3,", "new-4,", r"the item 'new-4' comes twice. To fix: one row an item"),
    ):
        if old in text:
            both = text.replace(old, new).replace(",predict", ",defer")
            decided.write_text(both)
            with pytest.raises(CredalError, match=message):
                defer(run, decided, tmp_path / "tasks.json")
    assert not (tmp_path / "tasks.json").exists()
    assert not (tmp_path / "tasks.label_config.xml").exists()


def test_images_have_addresses(tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "a b"
    make_pictures(folder, 24, 8)
    run = make_image_run(tmp_path / "RUN", tmp_path / "pictures", votes(features(24)))
    (folder / "bad.png").write_bytes(b"no image")
    summary = defer(run, tmp_path / "pictures", tmp_path / "tasks.json", threshold=0.0)
    assert summary.lines[0].startswith("a b/bad: ")
    assert "left out: 1 images that cannot be read" in summary.lines
    to_csv = defer(run, tmp_path / "pictures", tmp_path / "t.csv", to="csv", threshold=0.0)
    assert to_csv.broken == summary.broken
    first = json.loads((tmp_path / "tasks.json").read_text())[0]["data"]
    assert first["image"] == f"/data/local-files/?d=a%20b/{Path(first['item']).name}.png"
    interface = (tmp_path / "tasks.label_config.xml").read_text()
    assert '<Image name="item" value="$image"/>' in interface
    predict(run, tmp_path / "pictures", tmp_path / "decisions.csv", threshold=0.0)
    with pytest.raises(CredalError, match=r"the file of the image .* is not known.*--images"):
        defer(run, tmp_path / "decisions.csv", tmp_path / "again.json")
    with pytest.raises(CredalError, match=r"takes images, .* To fix: leave out --text note\.$"):
        defer(run, tmp_path / "pictures", tmp_path / "again.json", threshold=0.0, text="note")
    assert summary.hidden is to_csv.hidden is summary.shown is None
    other = tmp_path / "other"
    make_pictures(other, 1, 8)
    with pytest.raises(CredalError, match=r"has no image of 23 items: .* To fix: name the folder"):
        defer(run, tmp_path / "decisions.csv", tmp_path / "again.json", images=other)
    defer(
        run,
        tmp_path / "decisions.csv",
        tmp_path / "again.json",
        images=tmp_path / "pictures",
        image_prefix="https://example.org/",
    )
    again = json.loads((tmp_path / "again.json").read_text())[0]["data"]
    assert again["image"].startswith("https://example.org/a%20b/")


def annotations(*rows: tuple[str, str | None, str | None], path: str = "votes.csv") -> Annotations:
    """Votes: item, annotator, label."""
    schema = {"item": pl.String, "annotator": pl.String, "label": pl.String}
    table = pl.DataFrame(list(rows), schema=schema, orient="row").with_columns(weight=1.0)
    items = tuple(dict.fromkeys(row[0] for row in rows))
    classes = tuple(sorted({row[2] for row in rows if row[2] is not None}))
    left_out, mended = {"empty": 1}, {"spaces trimmed": 1}
    source = Source(Path(path), "long", "one row a vote", len(rows), left_out, mended)
    return Annotations("votes", items, classes, table, source)


def said(merged: Annotations) -> list[tuple[object, ...]]:
    table = merged.table.with_columns(pl.col(pl.Enum).cast(pl.String))
    return table.select("item", "annotator", "label").rows()


one_vote = st.tuples(
    st.sampled_from("xyz"), st.sampled_from(["ann", "bo"]), st.sampled_from(["cat", "dog"])
)
a_round = st.lists(one_vote, min_size=1, max_size=6, unique_by=lambda row: row[:2])


@given(a_round, a_round)
def test_merging_is_a_dictionary_update(
    first: list[tuple[str, str, str]], second: list[tuple[str, str, str]]
) -> None:
    old = {row[:2]: row[2] for row in first}
    new = {row[:2]: row[2] for row in second}
    rounds = annotations(*first), annotations(*second, path="new.csv")
    wanted = old | new
    found = merge(*rounds, conflicts="newest")
    assert {(item, who): label for item, who, label in said(found)} == wanted
    assert len(said(found)) == len(wanted)
    assert found.items == tuple(dict.fromkeys(key[0] for key in [*old, *new]))
    assert found.source.left_out == {"empty": 2}
    assert found.source.mended == {"spaces trimmed": 2}
    if any(old[key] != new[key] for key in old.keys() & new.keys()):
        with pytest.raises(CredalError, match=r"has the vote .* by .* in votes.csv and the vote"):
            merge(*rounds)
    else:
        assert said(merge(*rounds)) == said(found)


def test_a_merge_says_what_it_did() -> None:
    first = annotations(("x", "ann", "cat"), ("y", "ann", "cat"), ("y", "bo", None))
    same = merge(first, first)
    assert same.source.merged == ("votes.csv adds 0 items and 0 votes; 3 votes were there before",)
    second = annotations(
        *(("x", "ann", "dog"), ("y", "ann", "cat"), ("z", "bo", "eel")), path="new.csv"
    )
    both = merge(same, second, conflicts="newest")
    told = "new.csv adds 1 item and 1 vote; 1 vote was there before; "
    told += "1 vote replaces one of the files before"
    assert both.source.merged == (*same.source.merged, told)
    assert both.source.path == Path("votes.csv")
    words = "one row a vote, then one row a vote of votes.csv, then one row a vote of new.csv"
    assert both.source.words == words
    counts = shares("counts", ("cat", "dog"), x=[2, 1], w=[0, 3])
    added = ("counts adds 1 item and 6 votes",)
    assert merge(first, counts).source.merged == added
    assert merge(counts, counts, conflicts="add").source.merged == (
        "counts adds 0 items and 6 votes",
    )
    assert merge(counts, counts).source.merged == (
        "counts adds 0 items and 0 rows; 2 rows were there before",
    )


def test_a_label_is_unused_where_no_round_has_it() -> None:
    first, second = annotations(("x", "ann", "cat")), annotations(("y", "ann", "cat"))
    one = replace(first, source=replace(first.source, unused=("zebra", "idk")))
    two = replace(second, source=replace(second.source, unused=("idk",)))
    assert merge(one, two).source.unused == ("idk",)


def test_a_vote_that_changed_is_named() -> None:
    first = annotations(("x", "ann", "cat"), ("y", "ann", "cat"))
    second = annotations(("x", "ann", "dog"), ("z", "bo", "eel"), path="new.csv")
    with pytest.raises(
        CredalError,
        match=r"item 'x' has the vote 'cat' by 'ann' in votes.csv and the vote 'dog' in new.csv",
    ):
        merge(first, second)
    both = merge(first, second, conflicts="newest")
    assert both.classes == ("cat", "dog", "eel")
    assert both.items == ("x", "y", "z")
    assert both.counts().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_unknown_annotators_and_unsure_votes() -> None:
    first = annotations(
        ("x", None, "cat"), ("x", None, "cat"), ("y", "ann", None), ("y", "bo", "cat")
    )
    # Who is unknown cannot be known again, so an equal vote is a new one.
    assert merge(first, first).counts().tolist() == [[4], [1]]
    other = annotations(("x", None, "dog"), ("y", "ann", None), path="new.csv")
    for conflicts in ("refuse", "newest"):
        both = merge(first, other, conflicts=conflicts)
        assert both.counts().tolist() == [[2, 1], [1, 0]]
        assert said(both).count(("y", "ann", None)) == 1


def shares(kind: Any, classes: tuple[str, ...], **rows: list[float]) -> Annotations:
    table = pl.DataFrame({"item": list(rows)}).with_columns(
        pl.Series(name, [float(row[k]) for row in rows.values()]) for k, name in enumerate(classes)
    )
    return Annotations(kind, tuple(rows), classes, table, Source(Path(kind), kind, kind, len(rows)))


def test_counts_and_bounds_merge_too() -> None:
    first = shares("counts", ("cat", "dog"), x=[2, 1], y=[0, 3])
    second = shares("counts", ("ant", "dog"), x=[1, 1], z=[5, 0])
    with pytest.raises(CredalError, match=r"item 'x' has the counts \[0.0, 2.0, 1.0\]"):
        merge(first, second)
    both = merge(first, second, conflicts="newest")
    assert both.classes == ("ant", "cat", "dog")
    assert both.counts().tolist() == [[1, 0, 1], [0, 0, 3], [5, 0, 0]]
    assert merge(first, second, conflicts="add").counts().tolist() == [
        [1, 2, 2],
        [0, 0, 3],
        [5, 0, 0],
    ]
    assert merge(first, first).counts().tolist() == [[2, 1], [0, 3]]
    assert merge(first, first, conflicts="add").counts().tolist() == [[4, 2], [0, 6]]
    with pytest.raises(CredalError, match=r"counts can be added, and .* holds votes"):
        merge(*2 * [annotations(("x", "ann", "cat"))], conflicts="add")
    with pytest.raises(CredalError, match=r"holds counts and .* probabilities; they cannot"):
        merge(first, shares("probabilities", ("cat", "dog"), x=[0.5, 0.5]))

    more = merge(first, annotations(("z", "ann", "ant"), ("x", "bo", "dog"), ("y", "bo", None)))
    assert more.kind == "counts"
    assert more.items == ("x", "y", "z")
    assert more.counts().tolist() == [[0, 2, 2], [0, 0, 3], [1, 0, 0]]
    turned = merge(annotations(("z", "ann", "ant"), ("x", "bo", "dog")), first)
    assert turned.items == ("z", "x", "y")
    assert turned.counts().tolist() == [[1, 0, 0], [0, 2, 2], [0, 0, 3]]

    def bounds(at_least: float) -> Annotations:
        table = pl.DataFrame({"item": ["x"], "label": ["cat"], "at_least": [at_least]})
        source = Source(Path("bounds.csv"), "bounds", "bounds", 1)
        return Annotations("bounds", ("x",), ("cat", "dog"), table, source)

    with pytest.raises(CredalError, match=r"at least 0.7 of 'cat' in .* and at least 0.4 of 'cat'"):
        merge(bounds(0.7), bounds(0.4))
    assert merge(bounds(0.7), bounds(0.4), conflicts="newest").counts()[0, 0] == 0.4
