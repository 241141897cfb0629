"""Readers of annotation exports: every format gives the same counts, bad input one clear line."""

import io
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
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
    VOTES,
    as_counts,
    clean,
    expected,
    to_json,
    to_lines,
)
from credalearn.annotations import READERS, Annotations, Source, read_annotations
from credalearn.annotations.coding import coded
from credalearn.annotations.places import edit_distance, nearest
from credalearn.annotations.quiet import quiet_panics
from credalearn.cli import main
from credalearn.errors import CredalError
from credalearn.workflow.blocks import columns_of
from credalearn.workflow.checked import place_of
from credalearn.workflow.inspecting import inspection
from credalearn.workflow.merging import merge

Write = Callable[..., Path]
VOTES_TOO = [name for name in EXPORTS if name not in ("probabilities-csv", "bounds-csv")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and gives its path."""

    def to(content: str | bytes, name: str = "votes.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_recognised_by_its_content(tmp_path: Path, name: str) -> None:
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
    found = read_annotations(write("id,colour,shape,site\n1,red,round,A\n2,red,square,A\n"))
    said = "one row an item 'id', one column an annotator: 'colour', 'shape', 'site' ("
    assert found.source.words.startswith(said)
    people = [f"rater_{i}" for i in range(9)]
    table = f"id,{','.join(people)}\n1{',cat' * 9}\n2{',dog' * 9}\n"
    assert "'rater_5' and 3 more (" in read_annotations(write(table)).source.words


def test_labels_are_trimmed_normalised_and_numbers_are_one(write: Write) -> None:
    text = "task,worker,label\nx, ann ,1\nx,bo,1.0\nx,cy, 2 \ny,ann,cafe\u0301\ny,bo,café\n"
    found = read_annotations(write(text))
    assert found.classes == ("1", "2", "café")
    assert as_counts(found) == {("x", "1"): 2, ("x", "2"): 1, ("y", "café"): 2}
    assert found.source.mended == {
        "spaces trimmed": 2,
        "Unicode normalised (NFC)": 1,
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


def test_jobs_name_the_annotator_and_what_is_not_read_is_said(write: Write) -> None:
    rows = "1,a,ban,9:00\n1,b,ban,9:01\n1,a,ban,9:00\n2,b,ok,9:02\n"
    for name in ("moderator", "Nurse ID", "expert_id", "rater_id"):
        found = read_annotations(write(f"post_id,{name},decision,at\n{rows}"))
        assert found.counts().sum() == 3
        assert found.source.unread == ()
    path = write(f"post_id,who,decision,at\n{rows}")
    found = read_annotations(path)
    assert found.counts().sum() == 4  # nobody knows whether they are repeats
    told = "not read: 'who', 'at'; if one names the annotator, name it with --annotator"
    assert told in inspection(found)
    assert "3 votes" in inspection(read_annotations(path, annotator="who"))[1]
    assert merge(found, found).source.unread == ("who", "at")
    found = read_annotations(write("id,label,her excerpt\nx,cat,a\nx,dog,b\n"))
    told = "not read: 'her excerpt'; if one names the annotator, say --annotator 'her excerpt'"
    assert told in inspection(found)


@pytest.mark.parametrize(
    "table",
    [
        "item,email,label,expert\n1,a,A,no\n1,b,A,no\n1,c,B,yes\n2,a,B,no\n2,b,B,no\n",
        "item,label,expert\n1,A,A\n1,A,A\n1,B,A\n2,B,B\n2,B,B\n",
        "item,label,expert\n1,A,x\n1,A,x\n1,B,\n2,B,\n2,B,\n",
        "item,doctor,nurse,label\n1,a,b,A\n1,a,b,A\n1,c,d,B\n2,a,b,B\n2,a,b,B\n",
        "\n".join(
            f'{{"item": {item}, "label": "{label}", "expert": {told}}}'
            for item, label, told in (
                *((1, "A", "true"), (1, "A", "true"), (1, "B", "false")),
                *((2, "B", "true"), (2, "B", "true")),
            )
        ),
    ],
)
def test_jobs_that_name_nobody_leave_out_no_vote(write: Write, table: str) -> None:
    found = read_annotations(write(table))
    assert as_counts(found) == {("1", "A"): 2, ("1", "B"): 1, ("2", "B"): 2}
    assert {*found.source.unread} & {"expert", "nurse"}
    assert "if one names the annotator" in " ".join(inspection(found))


def test_doccanos_fields_called_by_jobs_leave_out_no_vote(write: Write) -> None:
    records = [{"id": "x", "label": [each], "expert": True} for each in ("A", "A", "B")]
    found = read_annotations(write(to_lines(records)))
    assert as_counts(found) == {("x", "A"): 2, ("x", "B"): 1}
    assert found.source.unread == ("expert",)


def test_words_like_jobs_are_no_misspelt_annotators(write: Write) -> None:
    for name in ("excerpt", "export", "physical", "moderated"):
        found = read_annotations(write(f"id,{name},label\nx,a,cat\nx,b,dog\n"))
        assert found.source.unread == (name,)


def test_jobs_may_be_columns_of_votes(write: Write) -> None:
    found = read_annotations(write("item,doctor,nurse\nx,cat,dog\ny,dog,dog\n"))
    assert found.annotators == ("doctor", "nurse")


def test_one_of_a_kind_is_told_as_one(write: Write) -> None:
    found = read_annotations(write("task,worker,label\nx,a,cat\ny,a,dog\n"))
    assert inspection(found)[1] == "2 items, 1 annotator, 2 votes; classes cat, dog"


def test_of_changed_votes_the_last_may_count(write: Write) -> None:
    path = write(
        "task,worker,label,weight\nx,a,cat,1\nx,b,dog,1\nx,a,cat,1\nx,a,dog,2\ny,b,cat,1\n"
    )
    with pytest.raises(CredalError, match=r"votes twice on item 'x'.*To fix: say --repeats last"):
        read_annotations(path)
    found = read_annotations(path, repeats="last")
    assert found.items == ("x", "y")
    assert found.counts().tolist() == [[0, 3], [1, 0]]
    assert found.source.left_out == {"replaced by the annotator's last answer": 2}
    assert inspection(found)[-1] == "replaced by the annotator's last answer: 2"
    with pytest.raises(CredalError, match="repeats is 'refuse' or 'last'; got 'first'"):
        read_annotations(path, repeats="first")  # type: ignore[arg-type]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(votes=st.lists(st.tuples(*map(st.sampled_from, ("ijk", "ab ", "uvw"))), min_size=1))
def test_the_last_votes_are_those_of_a_loop(
    write: Write, votes: list[tuple[str, str, str]]
) -> None:
    path = write(LONG + "".join(f"{','.join(vote)}\n" for vote in votes))
    found = read_annotations(path, repeats="last", classes=["u", "v", "w"])
    last: dict[tuple[str, str], str] = {}
    for i, (item, who, label) in enumerate(votes):
        last[item, who if who != " " else str(i)] = label  # unknown people are all different
    assert as_counts(found) == Counter((item, label) for (item, _), label in last.items())


def test_identical_repeats_count_once(write: Write) -> None:
    found = read_annotations(write("task,worker,label\nx,a,cat\nx,a,cat\nx,b,dog\nx,a,cat\n"))
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}
    assert found.source.left_out == {"repeated": 2}


LONG = "task,worker,label\n"
REFUSED = {
    "empty": (b"", "the file is empty"),
    "spaces": (b" \n \n", "the file is empty"),
    "header only": (LONG.encode(), "no vote is left of 0 answers"),
    "missing column": (b"task,worker,lable\nx,a,cat\n", r"no column is the label.*--label 'lable'"),
    "misspelt annotator": (b"task,workre,label\nx,a,cat\nx,b,dog\n", "'workre' looks like a mis"),
    "two votes": (
        LONG.encode() + b"x,a,cat\ny,a,dog\nx,a,dog\n",
        r"line 4: annotator 'a' votes twice on item 'x' and differently: 'cat' \(line 2\) and",
    ),
    "one class": (LONG.encode() + b"x,a,cat\ny,a,cat\n", "every vote is for one class, 'cat'"),
    "no item": (LONG.encode() + b"x,a,cat\n,a,dog\n", "line 3: the vote names no item"),
    "too long": (LONG.encode() + b"x,a,cat\nx,b,dog,3\n", "line 3: this row has more fields"),
    "too short": (LONG.encode() + b"x,a,cat\nx,b\nx,c,dog\n", "line 3: this row has fewer fields"),
    "short after a return": (LONG.encode() + b"x,a,cat\ry\nx,b,dog\n", "line 3: .* fewer fields"),
    "header again": (
        LONG.encode() + b"x,a,cat\ntask,worker,label\nx,b,dog\n",
        "line 3: this row holds the names of the columns again.*keep one header",
    ),
    "header again, marked": (
        '"task","worker","label"\nx,a,cat\n\ufeff"task","worker","label"\nx,b,dog\n'.encode(),
        "line 3: this row holds the names of the columns again",
    ),
    "header again, wide": (
        b"item,rater_1,rater_2,text\nx,cat,dog,t\nitem,rater_1,rater_2,text\ny,cat,dog,t\n",
        "line 3: this row holds the names of the columns again",
    ),
    "open quote": (LONG.encode() + b'x,a,"cat\nx,b,dog\n', "line 3: the row cannot be read"),
    "same name": (b"task,label,label\nx,a,cat\n", "two columns are called 'label'"),
    "zero byte": (LONG.encode() + b"x,a,c\0t\n", "line 2: a zero byte: this file is binary"),
    "binary": (bytes(range(1, 256)) * 4, "this file is binary"),
    "random": (random.Random(0).randbytes(5000), "control characters: this file is binary"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(99), "this file is an image"),
    "spreadsheet": (b"PK\x03\x04" + bytes(99), "zip archive or a spreadsheet"),
    "damaged parquet": (b"PAR1" + bytes(99), "no readable Parquet"),
    "mixed": (LONG.encode() + "x,é,cat\n".encode() + b"x,\xe9,dog\n", "line 3: byte 0xe9 is not"),
    "free text": (
        LONG.encode() + b"".join(b"x%d,a,words %d\n" % (i, i) for i in range(2000)),
        "2,000 different labels in 2,000 votes are free text",
    ),
    "weight": (b"task,worker,label,weight\nx,a,cat,-1\n", "line 2: a weight is a number of 0"),
    "no number": (b"task,worker,label,weight\nx,a,cat,much\n", "'weight' must be a number; .*much"),
    "sum": (b"item,cat,dog\nx,0.5,0.5\ny,0.5,0.4\n", "line 3: probabilities must sum to 1.*0.9"),
    "percent": (b"item,p_cat,p_dog\nx,50,50\n", "divide percentages by 100"),
    "negative": (b"item,cat,dog\nx,0.5,0.5\ny,-0.5,1.5\n", "line 3: .*'cat' is -0.5"),
    "nan": (b"item,cat,dog\nx,0.5,0.5\ny,nan,1.0\n", "line 3: .*'cat' is nan"),
    "seventy": (b"item,label,at_least\nx,cat,0.2\nx,dog,70\n", "write 0.70 for 70 %"),
    "contradiction": (
        b"item,label,at_least\nx,cat,0.7\nx,dog,0.6\n",
        r"item 'x' contradict each other: they sum to 1.3, above 1 \(0.7 cat, 0.6 dog\)",
    ),
    "two bounds": (b"item,label,at_least\nx,cat,0.7\ny,dog,0.1\nx,cat,0.6\n", "line 4: two bounds"),
    "two bounds of 1": (
        b"item,label,at_least\nx,1,0.4\nx,1.0,0.3\ny,2,0.5\n",
        r"line 3: two bounds for the same item and class differ: 0.4 \(line 2\) and 0.3",
    ),
    "bound of nothing": (b"item,label,at_least\nx,cat,0.4\nx,nan,0.3\n", "line 3: .* no label"),
    "class item": (b"id,p_item,p_dog\nx,0.5,0.5\n", "line 1: no class can be called 'item'"),
    "soft label item": (
        b'{"7": {"soft_label": {"dog": 0.4, "cat": 0.6}},\n"8": {"soft_label": {"item": 1.0}}}',
        "line 2: no class can be called 'item'.*give the class another name",
    ),
    "twice": (b"item,cat,dog\nx,0.5,0.5\nx,0.4,0.6\n", "line 3: item 'x' stands twice"),
    "ambiguous": (b"item,cat,dog\nx,1,0\ny,1,1\n", "say --format wide or --format counts"),
    "a pivot table": (b"item,cat,dog\nx,1,\ny,,3\nz,2,1\n", "could be .* or counts by class"),
    "predictions": (
        b"item,label,probability,lower,upper,score,decision\nx,cat,0.5,0.4,0.6,0.2,predict\n",
        "line 1: these are predictions, not annotations",
    ),
    "undecided predictions": (
        b'{"item": "x", "label": "cat", "probability": 0.5, "lower": 0, "upper": 1, "score": 1}\n'
        * 2,
        "these are predictions, not annotations",
    ),
    "tasks": (b'[{"data": {"item": "x"}}]', "there is no annotation in it: these are tasks"),
    "tasks of a project": (
        b'[{"id": 1, "data": {"item": "x"}, "annotations": []}]',
        "there is no annotation in it: these are tasks",
    ),
    "first row too long": (LONG.encode() + b"x,a,cat,dog\ny,a,dog\n", "line 2: .* more fields"),
    "first wide row too long": (
        b"item,p1,p2\nx,cat,dog,cat\ny,cat,dog\n",
        "line 2: this row has more fields than the header's 3",
    ),
    "several choices": (
        to_json(
            [
                {
                    "data": {"item": f"x{len(chosen)}"},
                    "annotations": [
                        {"result": [{"from_name": "kind", "value": {"choices": chosen}}]}
                    ],
                }
                for chosen in (["a"], ["a", "b"])
            ]
        ),
        r"one class, 'a' \(left out: 1 several classes\)",
    ),
    "cut short": (b'[{"a": 1},\n{"b": ', "line 2: the JSON ends in the middle of a value"),
    "no json": (b'[{"a": 1},\n{"b": x}]', "line 2, column 7: this is no JSON"),
    "deep": (b"[" * 1_000_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 1_000_000, "nested too deeply|cut short"),
    "not objects": (b"[1, 2, 3]", "a record must be an object; this is 1"),
    "no records": (b"[]", "the file holds no record"),
    "huge number": (b'[{"item": ' + b"9" * 5000 + b"}]", "this is no JSON"),
    "surrogate": (b'{"item": "x", "label": "\\ud800"}\n' * 2, "not valid Unicode"),
    "brat": (b"T1\tPerson 0 5\tAnna\nT2\tPerson 9 12\tBob\n", "brat's annotations.* a CSV or Parq"),
    "brat's events": (b"E1\tMerge:T2 Org1:T1\n", "brat's annotations"),
    "brat's equals": (b"*\tEquiv T1 T2\n", "brat's annotations"),
    "brat's notes": (b"#1\tAnnotatorNotes T1\tsee there\n", "brat's annotations"),
    "brat's relations": (b"R1\tMarried Arg1:T1 Arg2:T2\n", "brat's annotations"),
    "xml": (
        b'<?xml version="1.0"?>\n<annotations></annotations>\n',
        "this is XML.*export a CSV or",
    ),
    "a web page": ("\ufeff\n<!DOCTYPE html>".encode("utf-16"), "or a web page, which is not read"),
    "features": (
        b"id,f1,f2,site\nx,0.5,-0.27,A\ny,1.5,2.25,B\nz,0.5,0.5,B\n",
        "line 2: this looks like features, not votes.*sum to 0.23.*with --features",
    ),
    "excel's line alone": (b"sep=;\n", "the file is empty"),
    "excel's line, too long": (b"sep=;\nid;label\nx;cat\ny;dog;1\n", "line 4: .* more fields"),
    "excel's line, too short": (b"sep=;\nid;label\nx;cat\ny\n", "line 4: .* fewer fields"),
    "one long line": (b"a" * 2_000_000, "the first line is over a megabyte long"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_line(write: Write, name: str) -> None:
    content, message = REFUSED[name]
    path = write(content)
    with pytest.raises(CredalError, match=message) as refused:
        read_annotations(path)
    assert str(refused.value).startswith(str(path))
    assert "To fix: " in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("header", ["A1\tA 2\tA3", "R1\tclass label\tR3", "N1\tno. 2\tN3"])
def test_tables_that_begin_like_brats_marks_are_read(write: Write, header: str) -> None:
    item, _, label = header.split("\t")
    found = read_annotations(write(f"{header}\nx\ta\tcat\nx\tb\tdog\n"), item=item, label=label)
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}


def test_the_name_of_brats_files_refuses_no_table(write: Write) -> None:
    found = read_annotations(write(LONG + "x,a,cat\nx,b,dog\n", name="e.ann"), format="long")
    assert found.classes == ("cat", "dog")


def test_rows_without_all_numbers_are_not_taken_for_features(write: Write) -> None:
    rows = "x,0.5,0.5\ny,0.4,\nz,0.3,\n"
    with pytest.raises(CredalError, match="line 3: 'dog' must be a number"):
        read_annotations(write(f"id,cat,dog\n{rows}"))
    with pytest.raises(CredalError, match="line 3: 'dog' must be a number; this is 'much'"):
        read_annotations(write(f"id,cat,dog\n{rows}".replace(",\n", ",much\n")))


def test_numbers_that_are_called_probabilities_are_no_features(write: Write) -> None:
    path = write("id,cat,dog\nx,0.5,-0.27\ny,1.5,2.25\n")
    for asked in ({"format": "probabilities"}, {"classes": ["dog", "cat"]}):
        with pytest.raises(CredalError, match="probabilities must be finite numbers of 0 or more"):
            read_annotations(path, **asked)


def test_a_class_that_was_not_asked_for_is_refused_with_the_nearest(write: Write) -> None:
    path = write(LONG + "x,a,horse\nx,b,cat\ny,a,hrose\n")
    with pytest.raises(CredalError, match=r"line 4: 'hrose' is not among .* write 'horse'"):
        read_annotations(path, classes=["horse", "cat"])


def test_files_that_cannot_be_opened(tmp_path: Path, write: Write) -> None:
    write(LONG)
    with pytest.raises(CredalError, match=r"this is a folder; it holds 'votes.csv'"):
        read_annotations(tmp_path)
    with pytest.raises(CredalError, match=r"no such file. To fix: did you mean '.*votes.csv'"):
        read_annotations(tmp_path / "vots.csv")
    with pytest.raises(CredalError, match=r"there is no format 'label-studo'. .*'label-studio'"):
        read_annotations(tmp_path / "votes.csv", format="label-studo")
    with pytest.raises(CredalError, match="two classes or more"):
        read_annotations(tmp_path / "votes.csv", classes=["cat"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "votes.csv").write_text(LONG)
    folder.chmod(0)
    try:
        for path in (folder, folder / "votes.csv"):
            with pytest.raises(CredalError, match="Permission denied"):
                read_annotations(path)
    finally:
        folder.chmod(0o700)


def test_errors_of_the_system_become_one_line(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(LONG + "x,a,cat\n")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(CredalError, match=r"cannot be read \(Permission denied\)"):
        read_annotations(path)


def test_a_question_is_chosen_where_there_are_several(write: Write) -> None:
    def result(question: str, label: str) -> dict[str, object]:
        return {"from_name": question, "value": {"choices": [label]}}

    tasks = [
        {
            "id": i,
            "data": {"text": "words"},
            "annotations": [
                {"completed_by": 1, "result": [result("tone", "glad"), result("kind", kind)]}
            ],
        }
        for i, kind in enumerate(["poem", "letter"])
    ]
    path = write(to_json(tasks))
    with pytest.raises(CredalError, match=r"answers to 'tone', 'kind': which .* --question 'tone'"):
        read_annotations(path)
    with pytest.raises(CredalError, match=r"none to 'knd'. To fix: choose with --question 'kind'"):
        read_annotations(path, question="knd")
    assert read_annotations(path, question="kind", item="id").items == ("0", "1")


def test_prodigys_binary_answers(write: Write) -> None:
    def record(label: str, answer: str, number: int) -> dict[str, object]:
        return {"label": label, "answer": answer, "_input_hash": number, "_session_id": "s"}

    one = [record("SPAM", "accept", 1), record("SPAM", "reject", 2), record("SPAM", "ignore", 3)]
    found = read_annotations(write(to_lines(one)))
    assert as_counts(found) == {("1", "SPAM"): 1, ("2", "not SPAM"): 1}
    assert found.source.left_out == {"skipped": 1}
    two = [record("A", "accept", 1), record("B", "accept", 2), record("B", "reject", 3)]
    found = read_annotations(write(to_lines(two)))
    assert as_counts(found) == {("1", "A"): 1, ("2", "B"): 1}
    assert found.source.left_out == {"rejected": 1}


def test_the_last_of_prodigys_binary_answers_is_the_last_in_the_file(write: Write) -> None:
    answers = [("reject", 1), ("accept", 1), ("accept", 2), ("reject", 2)]
    records = [
        {"label": "SPAM", "answer": answer, "_input_hash": number, "_session_id": "s"}
        for answer, number in answers
    ]
    found = read_annotations(write(to_lines(records)), repeats="last")
    assert as_counts(found) == {("1", "SPAM"): 1, ("2", "not SPAM"): 1}


def test_prodigys_options_go_by_their_texts_where_each_has_its_own(write: Write) -> None:
    def records(*texts: str) -> list[dict[str, object]]:
        return [
            {
                "options": [{"id": i, "text": text} for i, text in enumerate([*texts, final])],
                "accept": [number],
                "answer": "accept",
                "_input_hash": number,
                "_annotator_id": "a",
            }
            for number, final in enumerate(["owl", "owl"])
        ]

    path = write(to_lines(records("cat", "dog")))
    found = read_annotations(path)
    assert found.classes == ("cat", "dog")
    assert "options by their texts" in found.source.words
    for asked in ({"classes": ["1", "0", "2"]}, {"unsure": ["2"]}):  # the user's names are ids
        found = read_annotations(path, **asked)  # type: ignore[arg-type]
        assert set(found.classes) >= {"0", "1"}
        assert "texts" not in found.source.words
    assert read_annotations(path, classes=["dog", "cat", "owl"]).classes == ("dog", "cat", "owl")
    changed = records("cat", "dog")
    changed[1]["options"] = [{"id": 0, "text": "cats"}, {"id": 1, "text": "dog"}]
    for other in (changed, records("same", "same")):
        assert read_annotations(write(to_lines(other))).classes == ("0", "1")
    more = [{"id": 1, "text": "dog"}, {"id": 7, "text": "emu"}]
    last = {"accept": [1], "answer": "accept", "_input_hash": 9, "_annotator_id": "a"}
    for final in (last, {**last, "options": []}, {**last, "options": more}):  # rename nothing
        found = read_annotations(write(to_lines([*records("cat", "dog"), final])))
        assert as_counts(found) == {("0", "cat"): 1, ("1", "dog"): 1, ("9", "dog"): 1}
    unlike = [{"id": 8, "text": "cat"}]  # a text of two ids
    path = write(to_lines([*records("cat", "dog"), {**last, "options": unlike}]))
    assert read_annotations(path).classes == ("0", "1")


NESTED = {
    "prodigy": [
        {"answer": "accept", "accept": [label], "_input_hash": 7, "meta": {"item": item, "by": "a"}}
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "label-studio": [
        {
            "id": 3,
            "data": {"text": "words"},
            "meta": {"item": item},
            "annotations": [
                {"completed_by": 1, "result": [{"from_name": "q", "value": {"choices": [label]}}]}
            ],
        }
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "doccano": [
        {"id": 1, "text": "words", "label": [label], "meta": {"item": item, "by": "a"}}
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "argilla": [
        {"id": 1, "pet.responses": [label], "meta": {"item": item}}
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "ground-truth": [
        {
            "datasetObjectId": 1,
            "meta": {"item": item},
            "annotations": [{"workerId": "a", "annotationData": {"content": {"label": label}}}],
        }
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "lewidi": [
        {"id": 1, "annotators": "A", "annotations": label, "meta": {"item": item}}
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
    "long": [
        {"id": 1, "label": label, "meta": {"item": item, "by": "a"}}
        for item, label in (("x", "cat"), ("y", "dog"))
    ],
}


@pytest.mark.parametrize("name", NESTED)
def test_fields_of_records_go_by_a_path_and_are_listed(write: Write, name: str) -> None:
    path = write(to_lines(NESTED[name]))
    for item in ("meta.item", "item"):
        found = read_annotations(path, item=item)
        assert found.source.format == name
        assert found.items == ("x", "y")
    if name in ("prodigy", "doccano", "long"):
        assert read_annotations(path, item="item", annotator="meta.by").annotators == ("a",)
        with pytest.raises(CredalError, match=r"'nosuch'.*To fix: say with --annotator which"):
            read_annotations(path, item="item", annotator="nosuch")
    told = "no record has a field 'nosuch'; the fields are .*'meta.item'.*say with --item which"
    told = "there is no column 'nosuch'; the columns are 'id', 'label'" if name == "long" else told
    with pytest.raises(CredalError, match=told):
        read_annotations(path, item="nosuch")
    if name != "long":
        with pytest.raises(CredalError, match="say --item 'item'"):
            read_annotations(path, item="itmm")


def test_mechanical_turks_three_ways_to_answer(write: Write) -> None:
    ticks = "WorkerId,Input.id,Answer.pet.cat,Answer.pet.dog\na,x,true,false\nb,x,false,true\n"
    assert as_counts(read_annotations(write(ticks + "c,x,true,true\n"))) == {
        ("x", "cat"): 1,
        ("x", "dog"): 1,
    }
    answers = (
        'WorkerId,Input.id,Answer.taskAnswers\na,x,"[{""pet"":{""cat"":true,""dog"":false}}]"\n'
    )
    found = read_annotations(write(answers + 'b,x,"[{""pet"":{""label"":""dog""}}]"\n'))
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}


def test_lewidis_edition_of_2025_and_its_soft_labels(write: Write) -> None:
    new = {"7": {"annotators": "A,B", "annotations": {"A": "2", "B": "5"}, "soft_label": {}}}
    assert as_counts(read_annotations(write(to_json(new)))) == {("7", "2"): 1, ("7", "5"): 1}
    soft = {"7": {"annotations": "", "annotators": "", "soft_label": {"0": 0.4, "1": 0.6}}}
    found = read_annotations(write(to_json(soft)))
    assert found.kind == "probabilities"
    assert found.counts().tolist() == [[0.4, 0.6]]


def test_a_class_may_be_called_row(write: Write) -> None:
    soft = {"7": {"soft_label": {"row": 0.4, "column": 0.6}}}
    for text in (to_json(soft), "item,row,column\n7,0.4,0.6\n"):
        found = read_annotations(write(text))
        assert found.classes == ("row", "column")
        assert found.counts().tolist() == [[0.4, 0.6]]


def test_doccano_names_the_annotator_by_its_file(write: Write) -> None:
    lines = to_lines([{"id": 1, "text": "a", "label": ["x"]}, {"id": 2, "label": ["y"]}])
    assert read_annotations(write(lines, "ann.jsonl")).annotators == ("ann",)
    assert read_annotations(write(lines, "all.jsonl")).annotators == ()
    spans = to_lines([{"id": 1, "text": "a", "label": [[0, 2, "PER"]]}])
    with pytest.raises(CredalError, match="labels of parts of a text are not classes"):
        read_annotations(write(spans))


def test_ground_truth_before_consolidation(write: Write) -> None:
    def answer(who: str, label: str) -> dict[str, object]:
        content = f'{{"image-contains": {{"label": "{label}"}}}}'
        return {"workerId": who, "annotationData": {"content": content}}

    request = [
        {
            "datasetObjectId": "0",
            "dataObject": {"s3Uri": "s3://b/x.jpg"},
            "annotations": [answer("a", "cat"), answer("b", "dog")],
        }
    ]
    found = as_counts(read_annotations(write(to_json(request))))
    assert found == {("s3://b/x.jpg", "cat"): 1, ("s3://b/x.jpg", "dog"): 1}


def test_argilla_in_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": ["x"],
            "q.responses": [["cat", "dog", "cat"]],
            "q.responses.users": [["a", "b", "c"]],
            "q.responses.status": [["submitted", "submitted", "draft"]],
        }
    )
    frame.write_parquet(tmp_path / "argilla.parquet")
    found = read_annotations(tmp_path / "argilla.parquet")
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}
    assert found.source.left_out == {"draft": 1}


def argilla(number: int, **answers: list[str]) -> dict[str, object]:
    """A record that two people answered, or nobody."""
    record: dict[str, object] = {"id": f"r{number}", "status": "completed", "_server_id": "s"}
    record["q1.suggestion"] = "cat"
    for question, labels in answers.items():
        record[f"{question}.responses"] = labels
        record[f"{question}.responses.users"] = ["a", "b"]
        record[f"{question}.responses.status"] = ["submitted", "submitted"]
    return record


def test_argillas_answers_may_begin_after_hundreds_of_records(write: Write) -> None:
    pending = [argilla(i) for i in range(200)]
    one = [*pending, argilla(200, q1=["cat", "dog"])]
    found = as_counts(read_annotations(write(to_lines(one))))
    assert found == {("r200", "cat"): 1, ("r200", "dog"): 1}
    path = write(to_lines([*one, argilla(201, q1=["cat", "cat"], q2=["a", "b"])]))
    found = as_counts(read_annotations(path, question="q2"))
    assert found == {("r201", "a"): 1, ("r201", "b"): 1}
    with pytest.raises(CredalError, match="answers to 'q1', 'q2': which one is the label"):
        read_annotations(path)


def test_argillas_records_without_answers_are_no_votes(write: Write) -> None:
    lost = [argilla(i, q1=["cat", "dog"]) for i in range(9)]
    for record in lost:
        del record["q1.responses"]
    table = "id,status,q1.suggestion\n" + "".join(f"r{i},pending,cat\n" for i in range(9))
    for content in (to_lines(lost), to_lines([argilla(i) for i in range(9)]), table):
        with pytest.raises(CredalError, match=r"no list of answers in a field '<question>.respon"):
            read_annotations(write(content))
    long = "id,user,label,label.suggestion\nx,a,cat,cat\nx,b,dog,cat\n"
    assert read_annotations(write(long)).source.format == "long"


def test_records_are_a_table_without_lists_and_objects(write: Write) -> None:
    records = [
        {"meta": {"a": 1}, "item": 7, "label": "cat"},
        {"label": 1.0, "item": 8.0, "more": [1], "": "x"},
        {"item": "7", "label": True, "more": None},
    ]
    found = read_annotations(write(to_lines(records)))
    assert as_counts(found) == {("7", "cat"): 1, ("8", "1"): 1, ("7", "true"): 1}
    by_name = {"x": {"label": "cat"}, "y": {"label": "dog", "id": "z"}, "w": {"id": [], "label": 1}}
    assert read_annotations(write(to_json(by_name))).items == ("x", "z", "w")
    with pytest.raises(CredalError, match=r"line 3: .* is not valid Unicode text"):
        read_annotations(write(to_lines([*records[:2], {"item": "y", "label": "\ud800"}])))
    with pytest.raises(CredalError, match="line 1: the records hold no text and no number"):
        read_annotations(write(to_lines([{"meta": {}}] * 2)))


def test_only_panics_are_hushed(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(error: BaseException) -> None:
        with quiet_panics():
            os.write(2, f"{error}\n".encode())
            raise error

    with quiet_panics():
        os.write(2, b"a warning\n")
    with pytest.raises(OSError, match="full"):
        fail(OSError("full"))
    with pytest.raises(pl.exceptions.PanicException):
        fail(pl.exceptions.PanicException("unwrap"))
    os.write(2, b"the end\n")
    assert capfd.readouterr().err == "a warning\nfull\nthe end\n"


def test_a_terminal_that_knows_ascii_only(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says what it can: other letters are escaped."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "ascii", "strict") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    path = write(LONG + "x,a,café\nx,b,犬\n", "votes-é.csv")
    monkeypatch.setattr(sys, "argv", ["credalearn", "inspect", str(path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    out.seek(0)
    assert not stopped.value.code
    assert r"classes caf\xe9, \u72ac" in out.read()
    monkeypatch.setattr(sys, "argv", ["credalearn", "inspect", f"{path}s"])
    with pytest.raises(SystemExit, match="2"):
        main()
    err.seek(0)
    assert r"votes-\xe9.csvs: there is no such file" in err.read()


def test_a_hundred_megabytes_on_one_line_are_quick(write: Write) -> None:
    # Objects are all read, 1.7 µs each, before the end is missed: of them there are fewer.
    for content in (b"a" * 100_000_000, b"[" + b"1," * 50_000_000, b"[" + b"{}," * 1_000_000):
        with pytest.raises(CredalError):
            read_annotations(write(content))


TEXTS = st.text(st.sampled_from("ab \u0301e\u00e9\t1.0"), max_size=4)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | TEXTS, max_size=12))
def test_codes_are_those_of_a_loop(values: list[str | None]) -> None:
    found = coded(pl.Series(values, dtype=pl.String))
    names = list(dict.fromkeys(clean(value) for value in values if clean(value)))
    assert found.names.to_list() == names
    slow = [names.index(clean(value)) if clean(value) else -1 for value in values]
    assert found.codes.tolist() == slow


@pytest.mark.parametrize("num_names", [3, 150_000])
def test_codes_of_long_columns_are_those_of_a_loop(num_names: int) -> None:
    dice = np.random.default_rng(num_names)
    values = [f"name {n}" if n else None for n in dice.integers(0, num_names, 200_000)]
    found = coded(pl.Series(values, dtype=pl.String))
    position: dict[str | None, int] = {None: -1}
    for value in values:
        position.setdefault(value, len(position) - 1)
    assert found.codes.tolist() == [position[value] for value in values]
    assert found.names.to_list() == [name for name in position if name is not None]


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


def test_the_canonical_table_checks_what_it_is_given() -> None:
    source = Source(Path("votes.csv"), "long", "by hand", 1)
    table = pl.DataFrame({"item": ["x"], "annotator": ["a"], "label": ["cat"], "weight": [1.0]})
    made = Annotations("votes", ("x",), ("cat", "dog"), table, source)
    assert made.counts().tolist() == [[1, 0]]
    assert made.annotators == ("a",)
    with pytest.raises(
        CredalError, match=r"every label of the table must be one of 'dog'; got 'cat'"
    ):
        Annotations("votes", ("x",), ("dog",), table, source)
    with pytest.raises(CredalError, match="every item of the table must be one of 'y'; got 'x'"):
        Annotations("votes", ("y",), ("cat",), table, source)
    with pytest.raises(CredalError, match="a table of bounds has the columns"):
        Annotations("bounds", ("x",), ("cat",), table, source)
    wrong = table.with_columns(weight=-1.0)
    with pytest.raises(
        CredalError, match=r"weight must be a number of 0 or more; item 'x' has -1.0"
    ):
        Annotations("votes", ("x",), ("cat",), wrong, source)


WORDS = st.text("abc", max_size=5)


@given(WORDS, WORDS)
def test_the_edit_distance_is_the_shortest_way(first: str, second: str) -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        best = min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))
        if len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0]:
            best = min(best, slow(a[2:], b[2:]) + 1)
        return best

    assert edit_distance(first, second, most=9) == slow(first, second)
    assert edit_distance(first, second, most=1) == min(slow(first, second), 2)


def test_the_nearest_name_is_only_suggested_when_it_is_near() -> None:
    assert nearest("itme", ["item", "label"]) == "item"
    assert nearest("weather", ["item", "label"]) is None
