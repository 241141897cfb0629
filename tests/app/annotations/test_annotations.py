"""Readers of annotation exports: every format gives the same counts, in any spelling of a table."""

from pathlib import Path
from time import process_time

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_exports import (
    CLASSES,
    EXPORTS,
    ITEMS,
    LONG,
    VOTES,
    Write,
    as_counts,
    expected,
    to_json,
    to_lines,
)
from credalearn.app.annotations import READERS, read_annotations
from credalearn.app.items.checked import place_of
from credalearn.app.tables.blocks import columns_of
from credalearn.errors import CredalError

VOTES_TOO = [name for name in EXPORTS if name not in ("probabilities-csv", "bounds-csv")]


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_recognized_by_its_content(tmp_path: Path, name: str) -> None:
    export = EXPORTS[name]
    path = tmp_path / "export.bin"  # the suffix tells nothing
    path.write_bytes(export.write())
    found = read_annotations(path)
    assert found.source.format == export.format
    assert found.items == tuple(ITEMS)
    assert set(found.classes) <= set(CLASSES)
    assert as_counts(found) == pytest.approx(export.count(export.write()))
    if name in VOTES_TOO:
        assert as_counts(found) == expected()
    assert read_annotations(path, format=export.format).source.words == found.source.words


@pytest.mark.parametrize("name", [name for name in EXPORTS if EXPORTS[name].suffix == ".csv"])
def test_the_column_of_the_items_is_kept(tmp_path: Path, name: str) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(EXPORTS[name].write())
    found = read_annotations(path)
    assert found.source.item is not None
    column = pl.read_csv(path, infer_schema=False)[found.source.item]
    assert tuple(column.unique(maintain_order=True)) == found.items


def test_the_table_of_readers_is_what_the_exports_show() -> None:
    assert {export.format for export in EXPORTS.values()} == set(READERS)


@pytest.mark.parametrize("name", [n for n in VOTES_TOO if EXPORTS[n].format != "counts"])
def test_answers_that_are_no_votes_are_counted(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"export{EXPORTS[name].suffix}"
    path.write_bytes(EXPORTS[name].write())
    found = read_annotations(path)
    missing = sum(label is None for votes in VOTES.values() for label in votes.values())
    none_written = name in ("long-csv", "lewidi")  # these files leave them out themselves
    assert sum(found.source.left_out.values()) == (0 if none_written else missing)
    assert found.table.height == len(VOTES) * 3 - missing
    assert len(found.annotators) == 3


@pytest.mark.parametrize(
    "text",
    [
        ",item,annotator,label\n0,x,ann,cat\n1,x,bo,dog\n",  # as pandas writes its index
        " item , annotator, label\nx,ann,cat\nx,bo,dog\n",
        "item\tannotator\t\tlabel\nx\tann\t7\tcat\nx\tbo\t8\tdog\n",
    ],
)
def test_columns_without_a_name_and_spaces_in_names_do_no_harm(write: Write, text: str) -> None:
    found = read_annotations(write(text))
    assert found.table.rows() == [("x", "ann", "cat", 1.0), ("x", "bo", "dog", 1.0)]


@pytest.mark.parametrize("name", ["row", "obs", "index", "Unnamed: 0"])
@pytest.mark.parametrize("start", [0, 1])
def test_a_column_that_numbers_the_rows_is_no_class(write: Write, name: str, start: int) -> None:
    rows = ["a,2,1", "b,0,3", "c,1,2"]
    lines = [f"{number},{row}" for number, row in enumerate(rows, start)]
    text = "\n".join([f"{name},item,cat,dog", *lines, ""])
    for form, end in ((None, ""), (None, ",,,\n"), ("counts", ""), ("counts", ",,,\n")):
        found = read_annotations(write(text + end), format=form)
        assert found.classes == ("cat", "dog")
        assert found.counts().tolist() == [[2, 1], [0, 3], [1, 2]]
        assert found.source.words.endswith(f"; left out: {name!r}, which numbers the rows")
    people = [f"{number},{row.upper()}" for number, row in enumerate(("x,o,p", "y,o,o", "z,p,p"))]
    found = read_annotations(write("\n".join([f"{name},item,Zoe,Max", *people])))
    assert found.annotators == ("Zoe", "Max")


def test_numbers_are_votes_where_they_number_no_rows(write: Write) -> None:
    for text in ("dog,item,cat\n0,a,3\n1,b,2\n", "dog,item,cat\n0,a,3\n2,b,1\n1,c,2\n"):
        assert read_annotations(write(text), format="counts").classes == ("dog", "cat")
    path = write("dog,item,cat\n0,a,3\n1,b,2\n2,c,1\n")
    found = read_annotations(path, format="counts", classes=["cat", "dog"])  # as the user says
    assert found.counts().tolist() == [[3, 0], [2, 1], [1, 2]]


def test_pandas_numbers_of_the_rows_in_parquet_are_no_class(tmp_path: Path) -> None:
    columns = {"item": ["a", "b"], "cat": [2, 0], "dog": [1, 3], "__index_level_0__": [7, 4]}
    pl.DataFrame(columns).write_parquet(tmp_path / "counts.parquet")
    found = read_annotations(tmp_path / "counts.parquet", format="counts")
    assert found.classes == ("cat", "dog")


def test_columns_go_by_the_names_that_options_give(write: Write) -> None:
    path = write("a,b,c,d\nx,ann,cat,2\nx,bo,dog,1\n")
    found = read_annotations(path, item="A", annotator="b", label="c", weight="d")
    assert as_counts(found) == {("x", "cat"): 2, ("x", "dog"): 1}
    assert found.table.rows()[0] == ("x", "ann", "cat", 2.0)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_delimiters_and_encodings_are_detected_and_said(
    write: Write,
    delimiter: str,
    encoding: str,
) -> None:
    text = "task,worker,label\nx,Zoé,chat\nx,bo,grüne Eule\n".replace(",", delimiter)
    found = read_annotations(write(text.encode(encoding)))
    assert found.annotators == ("Zoé", "bo")
    assert found.classes == ("chat", "grüne Eule")
    said = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}.get(encoding, "UTF-8")
    assert said in found.source.words
    assert ("by guess" in found.source.words) == (encoding == "cp1252")


def test_an_encoding_is_a_guess_unless_the_user_names_it(write: Write) -> None:
    text = "task,worker,label\nx,a,кот\nx,b,пёс\n"
    found = read_annotations(write(text.encode("cp1251")))
    assert found.source.words.endswith(
        "Windows-1252 by guess: if names look wrong, say --encoding)"
    )
    found = read_annotations(write(text.encode("cp1251")), encoding="cp1251")
    assert found.classes == ("кот", "пёс")
    assert found.source.words.endswith("cp1251)")
    lines = '{"item": "x", "label": "chât"}\n{"item": "y", "label": "chien"}\n'
    assert (
        "(JSON Lines, Windows-1252 by guess"
        in read_annotations(write(lines.encode("cp1252"))).source.words
    )


def test_the_columns_taken_as_annotators_are_said(write: Write) -> None:
    found = read_annotations(write("id,color,shape,site\n1,red,round,A\n2,red,square,A\n"))
    said = "one row an item 'id', one column an annotator: 'color', 'shape', 'site' ("
    assert found.source.words.startswith(said)
    people = [f"rater_{i}" for i in range(9)]
    table = f"id,{','.join(people)}\n1{',cat' * 9}\n2{',dog' * 9}\n"
    assert "'rater_5' and 3 more (" in read_annotations(write(table)).source.words


def test_labels_are_trimmed_normalized_and_numbers_are_one(write: Write) -> None:
    text = "task,worker,label\nx, ann ,1\nx,bo,1.0\nx,cy, 2 \ny,ann,cafe\u0301\ny,bo,café\n"
    found = read_annotations(write(text))
    assert found.classes == ("1", "2", "café")
    assert as_counts(found) == {("x", "1"): 2, ("x", "2"): 1, ("y", "café"): 2}
    assert found.source.mended == {
        "spaces trimmed": 2,
        "Unicode normalized (NFC)": 1,
        "numbers such as 1.0 read as 1": 1,
    }
    stated = read_annotations(write("item,label,at_least\nx,1,0.4\ny, 1.0,0.3\nx,1.0,0.4\ny,2,0\n"))
    assert stated.classes == ("1", "2")
    assert stated.counts().tolist() == [[0.4, 0.0], [0.3, 0.0]]
    assert stated.source.left_out == {"repeated": 1}
    assert stated.source.mended == {"spaces trimmed": 1, "numbers such as 1.0 read as 1": 2}
    lines = [{"item": "x", "annotator": i, "label": v} for i, v in enumerate([1, 1.0, "1", 2])]
    assert as_counts(read_annotations(write(to_lines(lines)))) == {("x", "1"): 3, ("x", "2"): 1}


def test_labels_are_text_whatever_they_say(write: Write) -> None:
    text = 'task,worker,label\nx,a,<script>\nx,b,=1+1\ny,a,"a,""b""\nc"\ny,b,\nz,a,NaN\n'
    found = read_annotations(write(text))
    assert found.classes == ("<script>", "=1+1", 'a,"b"\nc')
    assert found.source.left_out == {"empty": 2}
    assert found.items == ("x", "y")


def test_unsure_votes_are_for_nothing_and_keep_the_item(write: Write) -> None:
    text = "task,worker,label\nx,a,cat\nx,b,unsure\ny,a,unsure\nz,a,dog\n"
    found = read_annotations(write(text), unsure=["unsure "])
    assert found.items == ("x", "y", "z")
    assert found.counts().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert found.source.left_out == {"unsure": 2}
    assert found.table["label"].to_list() == ["cat", None, None, "dog"]


def test_unsure_labels_that_nobody_gives_are_known(write: Write) -> None:
    path = write(LONG + "x,a,cat\nx,b,idk\ny,a,dog\n")
    assert read_annotations(path, unsure=["idk ", "zebra"]).source.unused == ("zebra",)
    assert read_annotations(path).source.unused == ()
    path = write("item,count_cat,count_idk\nx,1,2\ny,2,1\n")
    assert read_annotations(path, unsure=["idk"]).source.unused == ("idk",)


def test_a_pivot_tables_blanks_are_counts_of_0_where_asked(write: Write) -> None:
    path = write("item,cat,dog\nx,1,\ny,,3\nz,2,1\n")
    assert read_annotations(path, format="counts").counts().tolist() == [[1, 0], [0, 3], [2, 1]]


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u2060"])
def test_marks_that_nobody_sees_make_no_class(write: Write, mark: str) -> None:
    path = write(LONG + f"x,a,cat\nx,b,ca{mark}t\ny,a,{mark} dog\ny,b,{mark}\ny{mark},b,dog\n")
    found = read_annotations(path)
    assert found.classes == ("cat", "dog")
    assert found.counts().tolist() == [[2, 0], [0, 1], [0, 1]]
    assert found.source.mended["unseen marks taken out"] == 3
    assert found.source.left_out == {"empty": 1}
    assert found.items == ("x", "y", f"y{mark}")  # as the table of features has it
    assert read_annotations(path, classes=[f"do{mark}g", "cat"]).classes == ("dog", "cat")


def test_classes_keep_the_order_asked_for(write: Write) -> None:
    path = write("task,worker,label\nx,a,10\nx,b,9\n")
    assert read_annotations(path).classes == ("9", "10")
    assert read_annotations(path, classes=["10", "9", "8"]).counts().tolist() == [[1, 1, 0]]
    with pytest.raises(CredalError, match=r"two classes or more; got '910'. To fix: name every"):
        read_annotations(path, classes="910")


def test_thousands_of_classes_asked_for_are_quick(write: Write) -> None:
    classes = [f"class {i}" for i in range(8000)]
    path = write("task,worker,label\n" + "".join(f"x,{name},{name}\n" for name in classes))
    started = process_time()
    assert read_annotations(path, classes=classes).counts().sum() == 8000
    assert process_time() - started < 4


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_excels_line_before_the_header_names_the_delimiter(
    write: Write, first: str, end: str
) -> None:
    rows = ("task;worker;label", "x,1;a,b;cat", 'x,1;b;"dog"', "")
    found = read_annotations(write("\ufeff" + end.join((first, *rows))))
    assert as_counts(found) == {("x,1", "cat"): 1, ("x,1", "dog"): 1}
    assert "semicolon-separated table" in found.source.words
    path = write("\ufeff" + end.join((first, "item;size", "x;1,5", "y;2,5", "z;red", "")))
    assert columns_of(path) == ["item", "size"]
    assert place_of(path, 2) == f"{path}, line 5"


def test_a_class_may_be_called_row(write: Write) -> None:
    soft = {"7": {"soft_label": {"row": 0.4, "column": 0.6}}}
    for text in (to_json(soft), "item,row,column\n7,0.4,0.6\n"):
        found = read_annotations(write(text))
        assert found.classes == ("row", "column")
        assert found.counts().tolist() == [[0.4, 0.6]]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 4)), st.integers(0, 3)))
def test_random_votes_are_counted(tmp_path: Path, votes: dict[tuple[int, int], int]) -> None:
    text = LONG + "".join(f"i{i},w{w},{'abcd'[label]}\n" for (i, w), label in votes.items())
    path = tmp_path / "votes.csv"
    path.write_text(text)
    if len(set(votes.values())) < 2:
        with pytest.raises(CredalError, match=r"no vote is left|every vote is for one class"):
            read_annotations(path)
        return
    slow = np.zeros((7, 4))
    for (i, _), label in votes.items():
        slow[i, label] += 1
    for (item, name), value in as_counts(read_annotations(path)).items():
        assert slow[int(item[1]), "abcd".index(name)] == value
        slow[int(item[1]), "abcd".index(name)] = 0
    assert not slow.any()
