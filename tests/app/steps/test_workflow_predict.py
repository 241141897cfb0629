"""Streaming predictions against predicting the whole table at once, and every way to go wrong."""

import csv
import json
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import credalearn as cl
from credalearn import CredalError
from credalearn._escape import escape_csv
from credalearn.app.items.checked import checked_features
from credalearn.app.items.digests import row_digests
from credalearn.app.run import Run
from credalearn.app.steps.deferring import defer
from credalearn.app.steps.predicting import SCHEMA, SET_SCHEMA, class_schema, predict
from credalearn.app.tables import blocks as blocks_module
from credalearn.app.tables import twice as twice_module
from credalearn.app.tables.blocks import blocks
from credalearn.app.tables.csv_blocks import TextTable
from credalearn.app.tables.twice import Twice, first_twice
from credalearn.app.tables.writing import neutral
from small_run import (
    CLASSES,
    FEATURES,
    features,
    make_image_run,
    make_pictures,
    make_run,
    votes,
    write_run,
)
from team_files import full_disk


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run") / "RUN")


def table(num_items: int = 50, **columns: list[object]) -> pl.DataFrame:
    """Features of items under their names, in another order than in training."""
    values = dict(zip(FEATURES, features(num_items, random_state=9).T, strict=True))
    items = [f"new-{row}" for row in range(num_items)]
    return pl.DataFrame({"item": items, **dict(reversed(values.items())), **columns})


def slow(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    """All items at once, a row at a time in plain Python."""
    pred = run.load_model().predict_credal(frame.select(FEATURES).to_numpy())
    assert run.guarantee is not None
    assert run.guarantee.threshold is not None
    threshold, rows = run.guarantee.threshold, []
    for row, item in enumerate(frame["item"]):
        k = int(pred.probs[row].argmax())
        values = [float(x[row, k]) for x in (pred.probs, pred.lower, pred.upper)]
        score = float(1 - pred.lower[row, k])
        decision = "predict" if score <= threshold else "defer"
        rows.append((item, CLASSES[k], *values, score, decision))
    return pl.DataFrame(rows, schema=list(SCHEMA), orient="row")


def close(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    """Text equal, numbers to float32's rounding: batches of other sizes round differently."""
    assert found.columns == wanted.columns
    for name in wanted.columns:
        if wanted[name].dtype == pl.String:
            assert found[name].to_list() == wanted[name].to_list()
        else:
            np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)


READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": lambda path: pl.read_csv(path, schema_overrides={"item": pl.String}),
    ".tsv": lambda path: pl.read_csv(path, separator="\t"),
    ".parquet": pl.read_parquet,
    ".jsonl": pl.read_ndjson,
}


@pytest.mark.parametrize("suffix", READ)
@pytest.mark.parametrize("kind", ["csv", "tsv", "semicolons", "parquet", "npy", "npz"])
def test_every_input_and_output_says_what_the_whole_table_says(
    run: Run, tmp_path: Path, suffix: str, kind: str
) -> None:
    frame = table()
    if kind in ("npy", "npz"):  # by position, so in the order of training; called by their row
        frame = frame.with_columns(item=pl.Series([str(row) for row in range(len(frame))]))
    data = tmp_path / f"data.{'csv' if kind == 'semicolons' else kind}"
    values = np.asfortranarray(frame.select(FEATURES).to_numpy())
    {
        "csv": lambda: frame.write_csv(data),
        "tsv": lambda: frame.write_csv(data, separator="\t"),
        "semicolons": lambda: frame.write_csv(data, separator=";"),
        "parquet": lambda: frame.write_parquet(data),
        "npy": lambda: np.save(data, values),  # by column
        "npz": lambda: np.savez_compressed(data, X=values.copy("C"), items=frame["item"].to_list()),
    }[kind]()
    summary = predict(run, data, tmp_path / f"out{suffix}", batch_rows=7)
    found = READ[suffix](tmp_path / f"out{suffix}").with_columns(pl.col("item").cast(pl.String))
    wanted = slow(run, frame)
    deferred = (wanted["decision"] == "defer").sum()
    assert 0 < deferred < len(frame)
    assert (summary.items, summary.deferred) == (50, deferred)
    if suffix in (".csv", ".tsv"):
        wanted = wanted.with_columns(pl.col("label").replace("=owl", "'=owl"))
    close(found, wanted)


@pytest.mark.parametrize("defer", [None, 9])
@pytest.mark.parametrize("suffix", READ)
def test_all_classes_are_written_beside_the_predicted_one(
    run: Run, tmp_path: Path, suffix: str, defer: int | None
) -> None:
    frame = table(lower_cat=["theirs"] * 50)  # a column of the data has the name of one of ours
    frame.write_parquet(tmp_path / "data.parquet")
    given = run, tmp_path / "data.parquet"
    predict(*given, tmp_path / f"plain{suffix}", defer=defer)
    predict(*given, tmp_path / f"all{suffix}", defer=defer, all_classes=True, batch_rows=7)
    plain, found = (READ[suffix](tmp_path / f"{name}{suffix}") for name in ("plain", "all"))
    close(found.select(list(SCHEMA)), plain)
    pred = run.load_model().predict_credal(frame.select(FEATURES).to_numpy())
    parts = {"probability": pred.probs, "lower": pred.lower, "upper": pred.upper}
    names = [f"{part}_{name}" for name in CLASSES for part in parts]
    assert found.columns == [*SCHEMA, *names]
    for part, values in parts.items():
        for k, name in enumerate(CLASSES):
            np.testing.assert_allclose(found[f"{part}_{name}"], values[:, k], atol=1e-6)


@given(st.lists(st.text(max_size=12), unique=True))
def test_columns_of_classes_clash_with_none(classes: list[str]) -> None:
    names = class_schema([*classes, "lower", "upper_lower", "probability_upper"])
    assert len(names) == 3 * len({*classes, "lower", "upper_lower", "probability_upper"})
    assert not {*SCHEMA, *SET_SCHEMA} & set(names)


@pytest.mark.parametrize("at_once", [4096, 3276])  # as of items with 1,280 features
def test_monte_carlo_dropout_says_in_batches_what_it_says_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("credalearn.methods.model._NUMBERS", at_once * len(FEATURES))
    run = make_run(tmp_path / "RUN", method="mc-dropout")
    frame = table(5000)  # more than the networks take at once
    frame.write_parquet(tmp_path / "data.parquet")
    predict(run, tmp_path / "data.parquet", tmp_path / "out.parquet")
    close(pl.read_parquet(tmp_path / "out.parquet"), slow(run, frame))


def test_seconds_since_1970_keep_their_differences(run: Run, tmp_path: Path) -> None:
    frame = table(2).with_columns(pl.lit(0.0).alias("size"), pl.lit(0.0).alias("weight"))
    frame = frame.with_columns(pl.Series("seen", [1.7e9 - 40, 1.7e9 + 40]))
    frame.write_csv(tmp_path / "data.csv")
    predict(run, tmp_path / "data.csv", tmp_path / "out.parquet")
    scores = pl.read_parquet(tmp_path / "out.parquet")["score"]
    assert abs(scores[0] - scores[1]) > 1e-3


def test_items_that_were_trained_on_are_counted(run: Run, tmp_path: Path) -> None:
    values = features(120)  # of which the first half was trained on
    frame = table(9)
    data, told = tmp_path / "new.csv", "were trained on: what is promised is about others"
    names = run.items["item"][:9]  # of items that were trained on, but hold something else
    frame.with_columns(names).write_csv(data)
    assert told not in " ".join(predict(run, data, tmp_path / "a.csv").lines)
    known = pl.DataFrame(values[[0, 1, 2, 60, 61]], schema=list(FEATURES))
    same = known.with_columns(item=pl.Series([f"known-{row}" for row in range(5)]))
    pl.concat([same, frame[5:]], how="diagonal").write_csv(data)
    for rows, count in ((None, None), (2, None), (4, 1)):
        summary = predict(run, data, tmp_path / "a.csv", batch_rows=rows, defer=count)
        assert f"3 of these items {told}" in summary.lines


def test_rows_of_another_array_are_not_those_that_were_trained_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "RUN")
    by_row = run.items.with_columns(item=pl.int_range(pl.len()).cast(pl.String))
    by_row.write_parquet(run.path / "items.parquet")
    np.save(tmp_path / "new.npy", table(9).select(FEATURES).to_numpy())
    assert predict(run, tmp_path / "new.npy", tmp_path / "a.csv").trained == 0
    np.save(tmp_path / "same.npy", features(120)[50:70])
    assert predict(run, tmp_path / "same.npy", tmp_path / "a.csv").trained == 10


def test_a_single_feature_is_predicted_without_a_warning(tmp_path: Path) -> None:
    """Polars gives one column as an array that may not be written to, and torch warns of it."""
    for values in ([1.0, 2.0], ["1.5", "true"]):  # as numbers, and in words
        frame = pl.DataFrame({"size": values})
        path, items = tmp_path / "data.csv", pl.Series(["a", "b"])
        found = checked_features(path, frame, ["size"], items)
        assert found.flags.writeable
    clf = cl.CredalClassifier(epochs=1, random_state=0)
    one = features(20)[:, :1]
    clf.fit(one, cl.from_votes(votes(features(20))), classes=list(CLASSES))
    inputs = {"kind": "features", "path": "items.csv", "features": ["size"]}
    counts = votes(features(20))
    run = write_run(tmp_path / "RUN", clf, one, counts, row_digests(one), inputs, rule=True)
    for size in (["0.5", "-1"], ["true", "false"]):
        pl.DataFrame({"item": ["a", "b"], "size": size}).write_csv(tmp_path / "data.csv")
        assert predict(run, tmp_path / "data.csv", tmp_path / "out.csv").items == 2
    assert defer(run, tmp_path / "data.csv", tmp_path / "t.json", threshold=0.0).written == 2


def test_other_columns_are_ignored_and_said(run: Run, tmp_path: Path) -> None:
    frame = table(4, note=["=a", None, "c", "d"], id=[9, 9, 9, 9])
    frame.write_csv(tmp_path / "data.csv")
    summary = predict(run, tmp_path / "data.csv", tmp_path / "out.csv")
    assert summary.ignored == ("note", "id")
    assert "ignored: columns that are no features, 'note', 'id'" in summary.lines
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == ",".join(SCHEMA)


def test_decimal_commas_are_read_and_said(run: Run, tmp_path: Path) -> None:
    table(4).write_csv(tmp_path / "data.csv")
    table(4).write_csv(tmp_path / "commas.csv", separator=";", decimal_comma=True)
    predict(run, tmp_path / "data.csv", tmp_path / "out.csv")
    summary = predict(run, tmp_path / "commas.csv", tmp_path / "again.csv")
    assert summary.lines[0] == "decimal commas: 0,5 is read as 0.5 in 'seen', 'size', 'weight'"
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()


@pytest.mark.parametrize(("suffix", "name"), [("csv", ""), ("parquet", "__index_level_0__")])
def test_row_numbers_by_pandas_are_not_read(
    run: Run, tmp_path: Path, suffix: str, name: str
) -> None:
    data = tmp_path / f"data.{suffix}"
    frame = table(4).with_row_index(name)
    frame.write_csv(data) if suffix == "csv" else frame.write_parquet(data)
    assert [block.columns for block in blocks(data)] == [table().columns]
    summary = predict(run, data, tmp_path / "out.csv")
    assert summary.ignored == (name,)


def test_formulas_are_neutralized_in_csv_and_kept_elsewhere(run: Run, tmp_path: Path) -> None:
    names = ["=1+1", "+x", "-2.5", "@a", "a=b", '"q"', "a,b", "x\ny", "é"]
    frame = table(len(names)).with_columns(item=pl.Series(names))
    frame.write_parquet(tmp_path / "data.parquet")
    for name in ("out.csv", "out.parquet"):
        predict(run, tmp_path / "data.parquet", tmp_path / name)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == [escape_csv(name) for name in names]
    assert {row["label"] for row in rows} <= {escape_csv(name) for name in CLASSES}
    assert pl.read_parquet(tmp_path / "out.parquet")["item"].to_list() == names


@given(st.lists(st.text(alphabet="=+-@\t\r1.ae', \n", max_size=5), min_size=1))
def test_neutral_is_escape_csv_of_every_text(texts: list[str]) -> None:
    found = neutral(pl.DataFrame({"item": texts}))["item"].to_list()
    assert found == [escape_csv(text) for text in texts]


def test_without_a_rule_the_user_is_told_what_to_do(run: Run, tmp_path: Path) -> None:
    bare = make_run(tmp_path / "RUN", rule=False)
    table().write_csv(tmp_path / "data.csv")
    out = tmp_path / "out.jsonl"
    with pytest.raises(CredalError, match=r"no rule yet.*certify .*--threshold.*--no-decision"):
        predict(bare, tmp_path / "data.csv", out)
    assert not out.exists()
    summary = predict(bare, tmp_path / "data.csv", out, decide=False)
    assert summary.deferred is summary.coverage is None
    assert list(json.loads(out.read_text().splitlines()[0])) == list(SCHEMA)[:-1]
    assert predict(bare, tmp_path / "data.csv", out, threshold=1.0).deferred == 0
    assert predict(bare, tmp_path / "data.csv", out, threshold=0.0).deferred == 50
    with pytest.raises(
        CredalError, match=r"threshold must lie in \[0, 1\].*got nan. To fix: give one"
    ):
        predict(bare, tmp_path / "data.csv", out, threshold=float("nan"))
    (bare.path / "guarantee.json").write_text('{"threshold": 3}')
    with pytest.raises(CredalError, match=r"guarantee.json: this is no decision rule"):
        predict(bare, tmp_path / "data.csv", out)


def test_a_score_at_the_threshold_is_predicted(run: Run, tmp_path: Path) -> None:
    frame = table()
    frame.write_parquet(tmp_path / "data.parquet")
    out = tmp_path / "out.parquet"
    predict(run, tmp_path / "data.parquet", out, decide=False)
    scores = pl.read_parquet(out)["score"].sort()
    summary = predict(run, tmp_path / "data.parquet", out, threshold=scores[20])
    assert summary.deferred == (scores > scores[20]).sum() < 30


def test_damaged_files_are_refused_or_read_and_never_crash(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    frame, values = table(), features(50)
    frame.write_csv(tmp_path / "data.csv")
    frame.write_parquet(tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", values)
    np.savez_compressed(tmp_path / "data.npz", X=values, items=frame["item"].to_list())
    refused = []
    for data in sorted(tmp_path.iterdir()):
        whole = data.read_bytes()
        for number in range(150 if data.suffix == ".parquet" else 25):  # where polars may panic
            content = bytearray(whole)
            if number % 2:
                del content[int(random.integers(len(content))) :]
            else:
                for place in random.integers(len(content), size=3):
                    content[place] = random.integers(256)
            bad = tmp_path / f"bad{data.suffix}"
            bad.write_bytes(content)
            out = tmp_path / "out.parquet"
            out.unlink(missing_ok=True)
            try:
                assert predict(run, bad, out).items == len(pl.read_parquet(out)) <= 50
            except CredalError as error:
                refused.append(f"{error}")
                assert not out.exists()
    assert len(refused) > 140
    assert all(message.startswith(str(tmp_path / "bad.")) for message in refused)
    assert capfd.readouterr().err == ""  # no panic's stack


GOOD = "item,size,weight,seen\na,1,2,1.7e9\nb,1,2,1.7e9\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n", "has no header"),
        ("item,size,weight,seen\n", r"no row below its header\. To fix: add the items"),
        (
            GOOD.replace("weight", "wieght"),
            r"lacks 1 of the model's 3 features: 'weight'.*'wieght'",
        ),
        ("item,size\na,1\n", r"lacks 2 of the model's 3 features: 'weight', 'seen'.*add them"),
        (
            GOOD.replace("b,1", "b,big"),
            r"line 3: features must be numbers.*'size' holds 'big'.*'b'",
        ),
        (
            GOOD.replace("b,1", "b,nan"),
            r"line 3: features must be finite.*holds 'nan' for item 'b'",
        ),
        (GOOD.replace("b,1", "b,"), r"line 3: features must be finite.*'size' is empty.*'b'"),
        (GOOD.replace("b,1", ",1"), r"line 3: the item has no name"),
        (GOOD.replace("b,1", "a ,1"), r"the item 'a' comes twice, in rows 1 and 2"),
        (GOOD.replace("b,1,2", "b,1,2,3,4"), r"line 3: 6 values for 4 columns"),
        (GOOD.replace("item", "thing"), r"no column that names the items.*--item"),
        (GOOD.replace("size", "weight"), r"the column 'weight' comes twice"),
        (GOOD.replace("b,1,2,1.7e9", "b,1e300,2,1.7e9"), r"no answer for item 'b'.*1e\+300"),
        ("PAR1 but no parquet", "cannot be read as a table"),
        (GOOD + "\0\0", "binary"),
    ],
)
def test_bad_tables_are_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(text)
    for name in ("out.csv", "out.parquet", "out.jsonl"):
        with pytest.raises(CredalError, match=message):
            predict(run, data, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_lines_are_counted_past_blank_ones_and_line_ends_in_cells(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text('item,size\n\n"a\nb",1\n\r\n,\nc,2\n')
    assert [block.rows() for block in blocks(data)] == [[("a\nb", "1"), ("c", "2")]]
    assert [TextTable(data).line_of(row) for row in (0, 1)] == [4, 7]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('item;"width, mm, raw";height\na;1;2\n', [{"width, mm, raw": "1", "height": "2"}]),
        ('item,disk\na,5" disk\nb,\n', [{"disk": '5" disk'}, {"disk": None}]),
        ('item,disk\na,5" disk\n\nb,"3, 4"\n', [{"disk": '5" disk'}, {"disk": "3, 4"}]),
        ('item,disk\na,5" or 3"\nb,3" disk', [{"disk": '5" or 3"'}, {"disk": '3" disk'}]),
        ('item, disk\na, "3, 4"\n', [{"disk": "3, 4"}]),
        ("item,disk\ra,1\rb,2\r", [{"disk": "1"}, {"disk": "2"}]),
        ("item,disk\n ,\na,1\n", [{"disk": "1"}]),
    ],
)
def test_tables_are_read_as_annotations_are(
    tmp_path: Path, text: str, wanted: list[dict[str, str | None]]
) -> None:
    (tmp_path / "data.csv").write_bytes(text.encode())
    names = ("a", "b")[: len(wanted)]
    rows = [{"item": name, **row} for name, row in zip(names, wanted, strict=True)]
    for characters in (3, 20, 4096):
        found = blocks(tmp_path / "data.csv", characters=characters)
        assert [row for block in found for row in block.to_dicts()] == rows


@pytest.mark.parametrize(
    ("row", "message"),
    [('b,"5 disk', r"line 3: the row cannot be read \(.*To fix: close every quotation mark"),
     ('b,"5" disk"', r"line 3: the row cannot be read \(.*and double those inside a value"),
     ('b,5" disk,3', r"line 3: 3 values for 2 columns")],
)  # fmt: skip
def test_marks_that_cannot_be_understood_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, message: str
) -> None:
    monkeypatch.setattr("credalearn.app.tables.csv_blocks.CHARACTERS", 4000)
    more = "".join(f"c{number},{number}\n" for number in range(5000))
    (tmp_path / "data.csv").write_text(f"item,disk\na,1\n{row}\n{more}")
    read: list[str] = []
    parsed = TextTable._parsed

    def counted(self: TextTable, text: str) -> pl.DataFrame | None:
        read.append(text)
        return parsed(self, text)

    monkeypatch.setattr(TextTable, "_parsed", counted)
    with pytest.raises(CredalError, match=message):
        list(blocks(tmp_path / "data.csv", characters=4000))
    assert sum(map(len, read)) < 9000  # not all that follows, with each piece again


@given(
    rows=st.lists(
        st.tuples(*[st.text(alphabet='ab",;\n é', max_size=4) for _ in range(2)]), max_size=12
    ),
    characters=st.integers(1, 40),
)
def test_blocks_of_any_size_hold_what_the_csv_module_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], characters: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([("item", "size"), *rows])
    found = [row for block in blocks(path, characters=characters) for row in block.rows()]
    wanted = [row for row in rows if any(value.strip() for value in row)]
    assert [tuple(value or "" for value in row) for row in found] == wanted


def test_encodings_are_recognized(run: Run, tmp_path: Path) -> None:
    text = GOOD.replace("a,", "Zoë,", 1)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        (tmp_path / "data.csv").write_text(text, encoding=encoding)
        predict(run, tmp_path / "data.csv", tmp_path / "out.parquet")
        assert pl.read_parquet(tmp_path / "out.parquet")["item"].to_list() == ["Zoë", "b"]


def test_names_keep_their_zeros_and_truths_are_numbers(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,seen,size,weight\n007, 1.7e9 ,true,False\n")
    predict(run, tmp_path / "data.csv", tmp_path / "out.parquet")
    found = pl.read_parquet(tmp_path / "out.parquet")
    X = pl.DataFrame({"item": ["007"], "size": [1.0], "weight": [0.0], "seen": [1.7e9]})
    close(found, slow(run, X))


def test_items_go_by_the_names_that_annotations_know(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(GOOD.replace("item", "image_id"))
    predict(run, tmp_path / "data.csv", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["item"].to_list() == ["a", "b"]


def test_bad_parquet_and_arrays_are_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    table(3).with_columns(pl.Series("size", [1.0, None, 2.0])).write_parquet(
        tmp_path / "data.parquet"
    )
    with pytest.raises(
        CredalError, match=r"data.parquet, row 2: .*'size' is empty for item 'new-1'"
    ):
        predict(run, tmp_path / "data.parquet", out)
    table(1).with_columns(size=pl.Series([[1.0]])).write_parquet(tmp_path / "data.parquet")
    with pytest.raises(CredalError, match=r"features must be numbers; .*'size' is of type List"):
        predict(run, tmp_path / "data.parquet", out)
    values = features(3)
    np.save(tmp_path / "data.npy", values[:, :2])
    with pytest.raises(CredalError, match=r"holds 2 features an item; this model takes 3"):
        predict(run, tmp_path / "data.npy", out)
    values[1, 2] = np.inf
    np.save(tmp_path / "data.npy", values)
    with pytest.raises(CredalError, match=r"row 2: features must be finite; feature 3 is inf"):
        predict(run, tmp_path / "data.npy", out)
    np.savez(tmp_path / "data.npz", X=features(3), items=["a", "b", " "])
    with pytest.raises(CredalError, match=r"row 3: the item has no name"):
        predict(run, tmp_path / "data.npz", out)
    np.savez(tmp_path / "data.npz", X=features(3), items=["a", "b", "a "])
    with pytest.raises(CredalError, match=r"the item 'a' comes twice, in rows 1 and 3"):
        predict(run, tmp_path / "data.npz", out)
    np.savez(tmp_path / "data.npz", X=features(3), Z=features(3))
    with pytest.raises(CredalError, match=r"must hold one array of shape \(items, features\)"):
        predict(run, tmp_path / "data.npz", out)
    np.save(tmp_path / "data.npy", np.array([["a", "b", "c"]]))
    with pytest.raises(CredalError, match=r"features must be numbers; .* To fix: save them as fl"):
        predict(run, tmp_path / "data.npy", out)
    np.save(tmp_path / "data.npy", np.empty((0, 3)))
    with pytest.raises(CredalError, match=r"holds no row\. To fix: add the items"):
        predict(run, tmp_path / "data.npy", out)
    np.savez(tmp_path / "data.npz", X=features(3), items=["a", "b"])
    with pytest.raises(
        CredalError, match=r"no array 'items' with .* 3 rows; it has .*items of \(2,\)\. To fix"
    ):
        predict(run, tmp_path / "data.npz", out)
    content = (tmp_path / "data.npz").read_bytes()
    for name, part in (("cut.npz", content[:300]), ("cut.npy", content[:10])):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(CredalError, match=r"cannot be read as an array"):
            predict(run, tmp_path / name, out)
    with pytest.raises(CredalError, match=r"is a folder; this model takes features"):
        predict(run, tmp_path, out)
    for name in ("none.csv", "none.npy", "none.npz"):
        with pytest.raises(CredalError, match=rf"there is no file .*{name}\. To fix: look for it"):
            predict(run, tmp_path / name, out)
    assert not out.exists()


def test_a_truncated_npy_is_refused(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", features(30))
    content = (tmp_path / "data.npy").read_bytes()
    (tmp_path / "data.npy").write_bytes(content[:-5])
    with pytest.raises(CredalError, match=r"cannot be read as an array: it ends"):
        predict(run, tmp_path / "data.npy", tmp_path / "out.csv")


def test_the_output_must_be_one_that_can_be_written(run: Run, tmp_path: Path) -> None:
    table().write_csv(tmp_path / "data.csv")
    with pytest.raises(CredalError, match=r"must end in one of .csv, .tsv, .parquet, .jsonl"):
        predict(run, tmp_path / "data.csv", tmp_path / "out.xlsx")
    with pytest.raises(CredalError, match=r"is the data itself"):
        predict(run, tmp_path / "data.csv", tmp_path / "data.csv")
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(CredalError, match=r"is a folder"):
        predict(run, tmp_path / "data.csv", tmp_path / "a.csv")
    (tmp_path / "file").touch()
    with pytest.raises(CredalError, match=r"cannot be written: "):
        predict(run, tmp_path / "data.csv", tmp_path / "file" / "out.csv")


@pytest.mark.parametrize("suffix", READ)
def test_a_full_disk_leaves_the_old_file(run: Run, tmp_path: Path, suffix: str) -> None:
    table(20000).write_parquet(tmp_path / "data.parquet")
    old = tmp_path / f"out{suffix}"
    old.write_text("old")
    said = re.escape(f"{old} cannot be written: ")
    with full_disk(200_000), pytest.raises(CredalError, match=said):
        predict(run, tmp_path / "data.parquet", old)
    assert old.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", old.name]


def test_names_that_come_twice_are_found_in_parts() -> None:
    names = [pl.Series([f"{number}"]) for number in range(200)]
    for extra, wanted in ((None, None), (7, ("7", 7, 200)), (199, ("199", 199, 200))):
        given = names if extra is None else [*names, pl.Series([f"{extra}"])]
        with Twice() as seen:
            for series in given:
                seen.add(series)
            assert first_twice(given, seen.suspects()) == wanted


def test_hashes_are_looked_at_a_small_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Reading all of them for each part took 21 s for 20 million names, and four times that for 40.
    sizes: list[int] = []
    repeated = twice_module._repeated

    def counted(hashes: np.ndarray) -> np.ndarray:
        sizes.append(len(hashes))
        return repeated(hashes)

    monkeypatch.setattr(twice_module, "_repeated", counted)
    with Twice() as seen:
        seen.add(pl.Series(range(64_000)))
        assert not len(seen.suspects())
    assert sum(sizes) == 64_000
    assert 800 < min(sizes) < max(sizes) < 1200


def test_items_twice_far_apart_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "NUMBERS", 64)
    frame = table(200)
    frame[190, "item"] = "new-3"
    frame.write_parquet(tmp_path / "data.parquet")
    with pytest.raises(CredalError, match=r"the item 'new-3' comes twice, in rows 4 and 191"):
        predict(run, tmp_path / "data.parquet", tmp_path / "out.csv", batch_rows=8)
    assert not (tmp_path / "out.csv").exists()


def test_images_are_predicted_and_the_unreadable_named(tmp_path: Path) -> None:
    images = make_pictures(tmp_path / "pictures", 200, 8)
    run = make_image_run(tmp_path / "RUN", tmp_path / "pictures", votes(features(40)))
    (tmp_path / "pictures" / "._000.png").write_bytes(b"another system's note")
    (tmp_path / "pictures" / "017.png").write_bytes(b"no image")
    out = tmp_path / "out.parquet"
    summary = predict(run, tmp_path / "pictures", out, batch_rows=64)
    assert list(summary.broken) == ["017"]
    assert summary.trained == 19  # of the first twenty
    assert "017.png: cannot identify image file" in summary.broken["017"]
    assert any(line.startswith("left out: 1 images") for line in summary.lines)
    found = pl.read_parquet(out)
    kept = [row for row in range(200) if row != 17]
    assert found["item"].to_list() == [f"{row:03d}" for row in kept]
    pred = run.load_model().predict_credal(images[kept].astype(np.float32))
    np.testing.assert_allclose(found["probability"], pred.probs.amax(1), atol=1e-5)
    out.unlink()
    for number in (3, 5, 6, 7, 8):
        (tmp_path / "pictures" / f"{number:03d}.png").write_bytes(b"no image")
    with pytest.raises(CredalError, match=r"6 or more of the 200 .* than 5 and than 1 %.*003"):
        predict(run, tmp_path / "pictures", out)
    assert not out.exists()
    few = tmp_path / "few"
    few.mkdir()
    for number in (4, 5):
        shutil.copy(tmp_path / "pictures" / f"{number:03d}.png", few)
    assert list(predict(run, few, out).broken) == ["005"]  # half of two is not a wrong folder
    assert pl.read_parquet(out)["item"].to_list() == ["004"]
    (few / "004.png").unlink()
    with pytest.raises(CredalError, match=r"none of the 1 images .* can be read; the first .*005"):
        predict(run, few, out)
    name = unicodedata.normalize("NFD", "Žaba.png")  # as a Mac has it in a folder
    (tmp_path / "mac").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "mac" / name)
    predict(run, tmp_path / "mac", out)
    assert pl.read_parquet(out)["item"].to_list() == [unicodedata.normalize("NFC", "Žaba")]
    with pytest.raises(
        CredalError, match=r"takes a folder of images; .* is a file. To fix: name the f"
    ):
        predict(run, run.path / "run.json", out)
    (tmp_path / "none").mkdir()
    with pytest.raises(CredalError, match=r"holds no image; .* To fix: name the folder"):
        predict(run, tmp_path / "none", out)
