"""Streaming predictions against predicting the whole table at once, and bad input."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import polars as pl
import predict_cost
import pytest

from credalearn import CredalClassifier, CredalError, CredalPredictions, Run
from credalearn._formats import percent
from credalearn.app.steps.predict import SCHEMA, PredictOptions, class_schema, predict
from present import present
from small_run import CLASSES, FEATURES, features, make_image_run, make_pictures, make_run, votes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run") / "RUN")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run without a guarantee."""
    return make_run(tmp_path_factory.mktemp("bare") / "RUN", rule=False)


def table(num_items: int = 50, **columns: list[object]) -> pl.DataFrame:
    """Features of items under their names, in another order than in training."""
    values = dict(zip(FEATURES, features(num_items, random_state=9).T, strict=True))
    items = [f"new-{row}" for row in range(num_items)]
    return pl.DataFrame({"item": items, **dict(reversed(values.items())), **columns})


def slow(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    """All items at once, one row after the other in plain Python."""
    pred = run.load_model().predict_credal(frame.select(FEATURES).to_numpy())
    threshold, rows = present(present(run.guarantee).threshold), []
    for row, item in enumerate(frame["item"]):
        k = int(pred.probs[row].argmax())
        values = [float(x[row, k]) for x in (pred.probs, pred.lower, pred.upper)]
        score = float(1 - pred.lower[row, k])
        decision = "predict" if score <= threshold else "defer"
        rows.append((item, CLASSES[k], *values, score, decision))
    return pl.DataFrame(rows, schema=list(SCHEMA), orient="row")


def close(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    """Text equal, numbers up to the rounding of float32."""
    assert found.columns == wanted.columns
    for name in wanted.columns:
        if wanted[name].dtype == pl.String:
            assert found[name].to_list() == wanted[name].to_list()
        else:
            np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)


READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": lambda path: pl.read_csv(path, schema_overrides={"item": pl.String}),
    ".tsv": lambda path: pl.read_csv(path, separator="\t", schema_overrides={"item": pl.String}),
    ".parquet": pl.read_parquet,
    ".jsonl": pl.read_ndjson,
}


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [("csv", ".csv"), ("parquet", ".tsv"), ("npy", ".parquet"), ("npz", ".jsonl")],
)
def test_every_input_and_output_equals_the_whole_table(
    run: Run, tmp_path: Path, suffix: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("credalearn.app.sources._NUMBERS", 40)  # ten rows at a time
    for name in ("sources", "_csv_file"):
        monkeypatch.setattr(f"credalearn.app.{name}.BLOCK", 500)
    frame = table()
    if kind == "npy":  # by position, in the order of training; named by row
        frame = frame.with_columns(item=pl.Series([str(row) for row in range(len(frame))]))
    data = tmp_path / f"data.{kind}"
    values = np.asfortranarray(frame.select(FEATURES).to_numpy())
    {
        "csv": lambda: frame.write_csv(data),
        "parquet": lambda: frame.write_parquet(data),
        "npy": lambda: np.save(data, values),  # by column
        "npz": lambda: np.savez_compressed(data, X=values.copy("C"), items=frame["item"].to_list()),
    }[kind]()
    whole, sizes = CredalClassifier.predict_credal, []

    def counted(clf: CredalClassifier, X: np.ndarray) -> CredalPredictions:
        sizes.append(len(X))
        return whole(clf, X)

    with monkeypatch.context() as patch:
        patch.setattr(CredalClassifier, "predict_credal", counted)
        found = predict(run, data, tmp_path / f"out{suffix}")
    assert sum(sizes) == len(frame)
    assert max(sizes) <= 20  # memory does not grow with the rows
    written = READ[suffix](tmp_path / f"out{suffix}")
    wanted = slow(run, frame)
    deferred = (wanted["decision"] == "defer").sum()
    assert 0 < deferred < len(frame)
    assert (found.items, found.deferred) == (50, deferred)
    shares = f"{percent(1 - int(deferred) / 50)}; 50 % of the calibration items"
    assert f"50 items: {50 - deferred} predicted ({shares})" in repr(found)
    if suffix in (".csv", ".tsv"):
        wanted = wanted.with_columns(pl.col("label").replace("=owl", "'=owl"))
    close(written, wanted)


def test_frames_and_arrays_in_memory_are_predicted(run: Run) -> None:
    frame = table()
    wanted = slow(run, frame)
    close(predict(run, frame).to_polars(), wanted)
    theirs = pandas.DataFrame(frame.to_dict(as_series=False))
    assert predict(run, theirs).to_pandas()["label"].tolist() == wanted["label"].to_list()
    array = predict(run, frame.select(FEATURES).to_numpy()).to_polars()
    close(array.drop("item"), wanted.drop("item"))
    assert array["item"].to_list() == [str(row) for row in range(50)]
    with pytest.raises(CredalError, match="has 2 features per item, and the model takes 3"):
        predict(run, np.zeros((50, 2)))
    for nothing in (frame.head(0), theirs.head(0), np.zeros((0, 3))):
        with pytest.raises(CredalError, match="has no rows"):
            predict(run, nothing)


def test_all_classes_are_written_after_the_predicted_one(run: Run) -> None:
    frame = table(lower_cat=["theirs"] * 50)  # a column of the data has the name of one of ours
    plain = predict(run, frame).to_polars()
    found = predict(run, frame, options=PredictOptions(all_classes=True)).to_polars()
    close(found.select(list(SCHEMA)), plain)
    pred = run.load_model().predict_credal(frame.select(FEATURES).to_numpy())
    parts = {"probability": pred.probs, "lower": pred.lower, "upper": pred.upper}
    assert found.columns == [*SCHEMA, *class_schema(run)]
    for part, values in parts.items():
        for k, name in enumerate(CLASSES):
            np.testing.assert_allclose(found[f"{part}_{name}"], values[:, k], atol=1e-6)


def test_decisions_name_their_run_and_its_guarantee(run: Run) -> None:
    sentence = f"Decided by the rule of {run.path}: {present(run.guarantee).sentence()}"
    for options, wanted in (({}, True), ({"threshold": 0.5}, False), ({"decision": False}, False)):
        found = run.predict(table(), **options)
        assert (sentence in found.lines) == wanted
        assert (found.made_by["guarantee"] is not None) == wanted
        assert found.made_by["predictions_sha256"] == run.facts.sha256["predictions"]


def test_the_run_of_the_benchmark_predicts(tmp_path: Path) -> None:
    predict_cost._make_run(tmp_path / "run")
    rows = predict_cost._table(5)
    assert Run.load(tmp_path / "run").predict(rows, threshold=0.5).items == len(rows)


def test_training_items_are_counted(run: Run) -> None:
    frame = table(9)
    others = frame.with_columns(run.items["item"][:9])  # their names, but other features
    assert predict(run, others).trained_on == 0
    known = pl.DataFrame(features(120)[[0, 1, 2, 60, 61]], schema=list(FEATURES))
    same = known.with_columns(item=pl.Series([f"known-{row}" for row in range(5)]))
    found = predict(run, pl.concat([same, frame[5:]], how="diagonal"))
    assert found.trained_on == 3  # the first half was trained on
    assert any("trained on 3 of these items" in line for line in found.lines)


def test_without_a_guarantee_the_message_says_what_to_do(bare: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(CredalError, match=r"has no guarantee.*certify .*threshold= or decision=F"):
        predict(bare, table(), out)
    assert not out.exists()
    assert predict(bare, table(), out, PredictOptions(decision=False)).deferred is None
    assert list(json.loads(out.read_text().splitlines()[0])) == list(SCHEMA)[:-1]
    assert predict(bare, table(), out, PredictOptions(threshold=1.0)).deferred == 0
    assert predict(bare, table(), out, PredictOptions(threshold=0.0)).deferred == 50


GOOD = "item,size,weight,seen\na,1,2,1.7e9\nb,1,2,1.7e9\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,size,weight,seen\n", r"has no rows\. To fix: add the items"),
        (GOOD.replace("weight", "wieght"), r"missing 1 of 3 features: 'weight'"),
        ("item,size\na,1\n", r"missing 2 of 3 features: 'weight', 'seen'.*add what"),
        (GOOD.replace("b,1", "b,big"), r"line 3: features must be finite.*'size' is 'big'.*'b'"),
        (GOOD.replace("b,1", ",1"), r"line 3: the item has no name"),
        (GOOD.replace("b,1", "a,7"), r"line 3: item 'a' has other inputs than in an earlier row"),
        (GOOD.replace("item", "thing,other").replace(",1,", ",x,1,"), r"names the items.*item="),
        (GOOD.replace("b,1,2,1.7e9", "b,1e300,2,1.7e9"), r"item 'b': its features are too far"),
    ],
)
def test_rejects_bad_tables_and_writes_nothing(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(text)
    with pytest.raises(CredalError, match=message):
        predict(run, data, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_the_output_is_checked_before_the_work(run: Run, tmp_path: Path) -> None:
    table().write_csv(tmp_path / "data.csv")
    with pytest.raises(CredalError, match=r"must end in one of .csv, .tsv, .parquet, .jsonl"):
        predict(run, tmp_path / "data.csv", tmp_path / "out.xlsx")
    with pytest.raises(CredalError, match=r"is an input of this command"):
        predict(run, tmp_path / "data.csv", tmp_path / "data.csv")
    with pytest.raises(CredalError, match=r"is an input of this command"):
        predict(run, tmp_path / "data.csv", run.path / "predictions.parquet")


def test_images_are_predicted_and_unreadable_ones_reported(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    images = make_pictures(pictures, 40, 8)
    run = make_image_run(tmp_path / "RUN", pictures, votes(features(40)))
    (pictures / "017.png").write_bytes(b"no image")
    found = predict(run, pictures)
    assert list(found.unreadable) == ["017"]
    assert found.trained_on == 19  # of the first twenty
    assert found.lines[0].startswith("Skipped 1 unreadable image, first 017: ")
    deferred = run.defer(pictures, tmp_path / "tasks.csv", to="csv", threshold=0.0)
    assert deferred.lines[0] == found.lines[0]
    kept = [row for row in range(40) if row != 17]
    assert found.to_polars()["item"].to_list() == [f"{row:03d}" for row in kept]
    pred = run.load_model().predict_credal(images[kept].astype(np.float32))
    wanted = pred.probs.amax(1)
    np.testing.assert_allclose(found.to_polars()["probability"], wanted, atol=1e-5)
    for number in (3, 5, 6, 7, 8):
        (pictures / f"{number:03d}.png").write_bytes(b"no image")
    with pytest.raises(CredalError, match=r"6 of 40 images cannot be read; .*003"):
        predict(run, pictures)
    with pytest.raises(CredalError, match=r"takes images, and .* is not a folder"):
        predict(run, run.path / "run.json")


@pytest.mark.parametrize("numbers", [64, 1 << 20], ids=["blocks", "one block"])
def test_an_item_of_several_rows_is_predicted_once_if_they_agree(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    monkeypatch.setattr("credalearn.app.sources._NUMBERS", numbers)
    items = table(200)
    rows = np.random.default_rng(0).integers(0, 200, 600)
    repeated = items[rows.tolist()]
    repeated.with_columns(annotator=pl.int_range(600)).write_parquet(tmp_path / "votes.parquet")
    found = predict(run, tmp_path / "votes.parquet")
    assert found.items == len(np.unique(rows))
    first = repeated.unique("item", keep="first", maintain_order=True)
    wanted = predict(run, first).to_polars()
    assert found.to_polars()["item"].equals(wanted["item"])
    np.testing.assert_allclose(found.to_polars()["score"], wanted["score"], atol=1e-6)
    items[190, "item"] = "new-3"
    items.write_parquet(tmp_path / "data.parquet")
    with pytest.raises(CredalError, match=r"row 191: item 'new-3' has other inputs.* own name"):
        predict(run, tmp_path / "data.parquet", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
