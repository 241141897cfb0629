"""Exports that cannot be read: one clear line that says why and what to do."""

import io
import os
import random
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from annotation_exports import LONG, Write, as_counts, to_json
from credalearn.app.annotations import read_annotations
from credalearn.app.annotations.quiet import quiet_panics
from credalearn.app.cli import main
from credalearn.errors import CredalError

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


def test_a_folder_with_a_file_a_person_says_which_to_name(tmp_path: Path) -> None:
    for name in ("bo", "an n", "cy", "di"):
        (tmp_path / f"{name}.jsonl").write_text("{}")
    first = re.escape(f"say '{tmp_path}/an n.jsonl' --merge {tmp_path}/bo.jsonl --merge")
    with pytest.raises(
        CredalError, match=rf"name one file, .*{first} {tmp_path}/cy.jsonl …, where"
    ):
        read_annotations(tmp_path)


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
