"""Deferred items out to annotators, and their votes back in."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError, Run, read_annotations
from credalearn.app.steps.defer import DeferOptions, defer, interface
from credalearn.app.steps.predict import PredictOptions, predict
from present import present
from small_run import CLASSES, FEATURES, features, make_image_run, make_pictures, make_run, votes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run") / "RUN")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Features of fifty items with a note; one name is a formula."""
    values = dict(zip(FEATURES, features(50, random_state=9).T, strict=True))
    items = ["=1+1", *(f"new-{row}" for row in range(1, 50))]
    notes = [None, *(f"note {row}" for row in range(1, 50))]
    pl.DataFrame({"item": items, **values, "note": notes}).write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


def deferred(run: Run, data: Path, **options: Any) -> pl.DataFrame:
    """What predict defers, the highest score first."""
    table = predict(run, data, options=PredictOptions(**options)).to_polars()
    table = table.filter(pl.col("decision") == "defer")
    return table.sort("score", descending=True, maintain_order=True)


def read_tasks(path: Path) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return tasks


def test_tasks_are_the_deferred_items_least_certain_first(
    run: Run, data: Path, tmp_path: Path
) -> None:
    wanted = deferred(run, data)
    found = defer(run, data, tmp_path / "tasks.json")
    assert (found.items, found.deferred, found.written) == (50, len(wanted), len(wanted))
    assert found.lines[0] == f"50 items: {len(wanted)} deferred."
    assert found.to_polars().equals(wanted.select("item", "label", "lower", "score"))
    assert list(found.to_pandas()["item"]) == wanted["item"].to_list()
    rows = {row["item"]: row for row in pl.read_csv(data).iter_rows(named=True)}
    tasks = read_tasks(tmp_path / "tasks.json")
    assert [task["data"]["item"] for task in tasks] == wanted["item"].to_list()
    for task, row in zip(tasks, wanted.iter_rows(named=True), strict=True):
        seen = {name: x for name, x in rows[row["item"]].items() if x is not None}
        assert task["data"]["row"] == {name: seen[name] for name in seen if name != "item"}
        (prediction,) = task["predictions"]
        assert prediction["score"] == pytest.approx(row["lower"], abs=1e-6)
        assert "pocc" in prediction["model_version"]
        assert prediction["result"] == [
            {
                "id": "predicted",
                "from_name": "label",
                "to_name": "item",
                "type": "choices",
                "value": {"choices": [row["label"]]},
            }
        ]


def test_the_interface_fits_the_tasks(run: Run, data: Path, tmp_path: Path) -> None:
    found = defer(run, data, tmp_path / "tasks.json")
    assert found.config == tmp_path / "tasks.label_config.xml"
    tree = ElementTree.parse(found.config).getroot()
    choices, shown, table = (present(tree.find(name)) for name in ("Choices", "Text", "Table"))
    assert (choices.get("name"), choices.get("toName")) == ("label", shown.get("name"))
    assert shown.attrib == {"name": "item", "value": "$item"}
    assert table.attrib == {"name": "row", "value": "$row"}
    assert [choice.get("value") for choice in choices] == list(CLASSES)


@pytest.mark.parametrize(
    ("columns", "asked", "field"),
    [
        (["text"], None, "text"),
        (["Größe & Text"], "Größe & Text", "text"),
        (["message"], None, "item"),
    ],
)
def test_tasks_contain_the_text(
    run: Run, data: Path, tmp_path: Path, columns: list[str], asked: str | None, field: str
) -> None:
    said = [f"what was written about item {row}" for row in range(50)]
    pl.read_csv(data).with_columns(pl.Series(name, said) for name in columns).write_csv(data)
    found = defer(run, data, tmp_path / "tasks.json", DeferOptions(text=asked))
    assert f'<Text name="item" value="${field}"/>' in found.config.read_text()  # type: ignore[union-attr]
    texts = dict(zip(pl.read_csv(data)["item"], said, strict=True))
    for task in read_tasks(tmp_path / "tasks.json"):
        item = task["data"]["item"]
        assert task["data"][field] == (item if field == "item" else texts[item])


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])), min_size=1))
def test_class_names_survive_the_interface(names: list[str]) -> None:
    tree = ElementTree.fromstring(interface(names, image=False, field="item", row=False))
    choices = present(tree.find("Choices"))
    assert [choice.get("value") for choice in choices] == names


def test_the_csv_is_filled_in_and_read_back(run: Run, data: Path, tmp_path: Path) -> None:
    found = defer(run, data, tmp_path / "todo.csv", DeferOptions(to="csv"))
    assert found.config is None
    table = pl.read_csv(tmp_path / "todo.csv")
    wanted = ["item", "model_label", "model_lower", "model_score", "note"]
    wanted += [f"feature_{name}" for name in FEATURES]  # "weight" would be that of a vote
    assert table.columns == [*wanted, "annotator", "label"]
    known = found.to_polars().join(pl.read_csv(data), on="item", maintain_order="left")
    assert table["feature_size"].to_list() == pytest.approx(known["size"].to_list())
    assert table["label"].null_count() == len(table)
    labels = pl.Series(["cat", "dog"] * len(table)).head(len(table))
    filled = table.with_columns(annotator=pl.lit("ann"), label=labels)
    filled.write_csv(tmp_path / "votes.csv")
    votes = read_annotations(
        tmp_path / "votes.csv", item="item", annotator="annotator", label="label"
    )
    assert len(votes.items) == found.written
    more = "--merge ANNOTATED --features OLD --features NEW --skip-missing."
    assert found.lines[-1] == f"Next: add the new votes with credalearn train … {more}"


def test_predictions_can_be_hidden(run: Run, data: Path, tmp_path: Path) -> None:
    defer(run, data, tmp_path / "tasks.json", DeferOptions(predictions=False))
    assert all(set(task) == {"data"} for task in read_tasks(tmp_path / "tasks.json"))
    defer(run, data, tmp_path / "todo.csv", DeferOptions(to="csv", predictions=False))
    columns = pl.read_csv(tmp_path / "todo.csv").columns
    assert not any(name.startswith("model_") for name in columns)


def test_nothing_deferred_is_an_empty_file(run: Run, data: Path, tmp_path: Path) -> None:
    (line,) = defer(run, data, tmp_path / "t.json", DeferOptions(threshold=1.0)).lines
    assert line.startswith(f"50 items: none deferred, so {tmp_path / 't.json'} is empty; ")
    defer(run, data, tmp_path / "t.csv", DeferOptions(to="csv", threshold=1.0))
    assert not [*read_tasks(tmp_path / "t.json"), *pl.read_csv(tmp_path / "t.csv").rows()]


def test_rejects_names_of_different_items_of_the_run(run: Run, tmp_path: Path) -> None:
    values = dict(zip(FEATURES, features(50, random_state=9).T, strict=True))
    other = pl.DataFrame({"item": [f"item-{row}" for row in range(50)], **values})
    with pytest.raises(CredalError, match=r"have the names of different items .* 'item-\d+'"):
        defer(run, other, tmp_path / "tasks.json")
    same = dict(zip(FEATURES, features(120)[:50].T, strict=True))
    table = pl.DataFrame({"item": [f"item-{row}" for row in range(50)], **same})
    assert defer(run, table, tmp_path / "tasks.json").written


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        ("tasks.csv", {}, r"must end in \.json; got .*tasks\.csv.*, or pass to='csv'"),
        ("tasks.json", {"to": "csv"}, r"name it .*tasks\.csv, or pass to='label-studio'"),
        ("tasks.json", {"text": "txt"}, "no column 'txt' of texts"),
    ],
)
def test_rejects_bad_requests(
    run: Run, data: Path, tmp_path: Path, output: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CredalError, match=message):
        defer(run, data, tmp_path / output, DeferOptions(**options))
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_image_tasks_contain_urls(tmp_path: Path) -> None:
    make_pictures(tmp_path / "pictures" / "a b", 24, 8)
    run = make_image_run(tmp_path / "RUN", tmp_path / "pictures", votes(features(24)))
    options = DeferOptions(threshold=0.0)
    object.__setattr__(run, "items", run.items.head(0))  # the pictures are new ones
    defer(run, tmp_path / "pictures", tmp_path / "tasks.json", options)
    first = read_tasks(tmp_path / "tasks.json")[0]["data"]
    assert first["image"] == f"/data/local-files/?d=a%20b/{Path(first['item']).name}.png"
    interface = (tmp_path / "tasks.label_config.xml").read_text()
    assert '<Image name="item" value="$image"/>' in interface
    prefix = DeferOptions(threshold=0.0, image_prefix="https://example.org/")
    defer(run, tmp_path / "pictures", tmp_path / "tasks.json", prefix)
    first = read_tasks(tmp_path / "tasks.json")[0]["data"]
    assert first["image"].startswith("https://example.org/a%20b/")
