"""Every reader passes one contract: recognized by content, opened once, counted as by hand."""

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_exports import (
    CLASSES,
    EXPORTS,
    ITEMS,
    LONG,
    SAID,
    VOTES,
    Write,
    as_counts,
    studio_task,
    to_lines,
)
from credalearn.app.readers import READERS, read_annotations
from credalearn.app.readers.options import Format, ReaderOptions, RoundOptions
from credalearn.errors import CredalError
from opens import count_opens

VOTES_TOO = [name for name in EXPORTS if name not in ("probabilities-csv", "bounds-csv")]
FEW = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_recognized_by_its_content_and_opened_once(
    tmp_path: Path, name: str
) -> None:
    export = EXPORTS[name]
    path = tmp_path / "export.bin"  # the suffix says nothing
    path.write_bytes(export.write())
    with count_opens(tmp_path) as opens:
        found = read_annotations(path)
    assert opens == {path.name: 1}
    assert found.source.format == export.format
    assert found.items == tuple(ITEMS)
    assert set(found.classes) <= set(CLASSES)
    assert as_counts(found) == pytest.approx(export.counts())
    assert read_annotations(path, format=export.format).source.words == found.source.words


@pytest.mark.parametrize("name", [n for n in VOTES_TOO if "count" not in n and n != "nested"])
def test_counts_answers_that_are_not_votes(write: Write, name: str) -> None:
    found = read_annotations(write(EXPORTS[name].write()))
    missing = sum(label is None for votes in VOTES.values() for label in votes.values())
    none_written = name in ("long-csv", "lewidi")  # these files leave them out themselves
    assert sum(found.source.left_out.values()) == (0 if none_written else missing)
    assert found.table.height == len(VOTES) * 3 - missing
    assert len(found.annotators) == 3


@pytest.mark.parametrize("name", sorted(EXPORTS.keys() - {"long-parquet"}))
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_every_encoding_gives_the_same_counts(write: Write, name: str, encoding: str) -> None:
    export = EXPORTS[name]
    path = write(export.write().decode().encode(encoding))
    assert as_counts(read_annotations(path)) == pytest.approx(export.counts())


def test_every_format_has_a_reader_and_an_export() -> None:
    assert set(get_args(Format)) == set(READERS) == {each.format for each in EXPORTS.values()}


def test_tables_and_arrays_in_memory_are_read() -> None:
    rows = [("x", "a", "cat"), ("x", "b", None), ("y", "a", "dog")]
    table = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    for given_as in (table, pd.DataFrame(table.to_dicts())):
        found = read_annotations(given_as)
        assert found.table.rows() == [("x", "a", "cat", 1.0), ("y", "a", "dog", 1.0)]
        assert found.source.left_out == {"empty": 1}
    counts = np.array([[2, 1], [0, 3]])
    assert read_annotations(counts, format="counts").counts().tolist() == counts.tolist()


def test_an_item_without_votes_stays_an_item(write: Write) -> None:
    texts = {
        "long": "item,annotator,label\nx,a,1\ny,a,\nz,a,2\n",
        "wide": "item,rater_1,rater_2\nx,1,\ny,,\nz,2,2\n",
        "counts": "item,count_1,count_2\nx,1,0\ny,0,0\nz,0,2\n",
    }
    for name, text in texts.items():
        found = read_annotations(write(text))
        assert found.source.format == name
        assert found.items == ("x", "y", "z")
        assert found.counts()[1].tolist() == [0, 0]


def test_a_column_may_be_called_row(write: Write) -> None:
    found = read_annotations(write("item,row,cell\nx,1,2\ny,3,0\n"), format="counts")
    assert (found.classes, found.counts().tolist()) == (("row", "cell"), [[1, 2], [3, 0]])
    found = read_annotations(write("item,row,cell\nx,cat,dog\ny,dog,dog\n"), format="wide")
    assert (found.annotators, found.counts().tolist()) == (("row", "cell"), [[1, 1], [0, 2]])
    with pytest.raises(CredalError, match=r"null character. To fix: rename it"):
        read_annotations(write('[{"id": "x", "\\u0000row": "a", "b": "a"}]'))


def test_counts_next_to_a_column_of_groups_are_named_by_class(write: Write) -> None:
    path = write("item,p_cat,p_dog,site\nx,3,0,north\ny,1,2,south\nz,0,3,south\n")
    with pytest.raises(CredalError, match=r"could be annotators .*or counts.*each class with cl"):
        read_annotations(path)
    found = read_annotations(path, classes=["p_dog", "p_cat"], format="counts")
    assert found.classes == ("p_dog", "p_cat")
    assert found.counts().tolist() == [[0, 3], [2, 1], [3, 0]]
    assert found.source.notes == ("not named by classes=, and left out: 'site'",)
    words = write("item,ann1,ben,cy\nx,cat,dog,cat\ny,dog,,cat\n", "words.csv")
    assert read_annotations(words).source.format == "wide"


def test_options_name_the_columns(write: Write) -> None:
    path = write("a,b,c,d\nx,ann,cat,2\nx,bo,dog,1\n")
    found = read_annotations(path, item="A", annotator="b", label="c", weight="d")
    assert as_counts(found) == {("x", "cat"): 2, ("x", "dog"): 1}
    assert found.source.item == "a"


def test_without_an_annotator_the_other_columns_are_named(write: Write) -> None:
    found = read_annotations(write("id,who,label\nx,a,cat\nx,a,cat\ny,b,dog\n"))
    assert found.counts().sum() == 3  # nobody knows whether they are repeats
    assert found.source.notes == ("if 'who' names the annotator, pass it with annotator=",)


def test_labels_are_trimmed_normalized_and_numbers_are_one(write: Write) -> None:
    text = LONG + "x, ann ,1\nx,bo,1.0\nx,cy, 2 \ny,ann,cafe\u0301\ny,bo,ca\u200bfé\nz,bo,NaN\n"
    found = read_annotations(write(text))
    assert found.classes == ("1", "2", "café")
    assert as_counts(found) == {("x", "1"): 2, ("x", "2"): 1, ("y", "café"): 2}
    lines = [{"item": "x", "annotator": i, "label": v} for i, v in enumerate([1, 1.0, "1", 2])]
    assert as_counts(read_annotations(write(to_lines(lines)))) == {("x", "1"): 3, ("x", "2"): 1}


def test_unsure_votes_keep_the_item_without_a_vote(write: Write) -> None:
    path = write(LONG + "x,a,cat\nx,b,unsure\ny,a,unsure\nz,a,dog\n")
    found = read_annotations(path, unsure=["unsure ", "idk"])
    assert found.counts().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert found.source.left_out == {"unsure": 2}
    assert found.table["label"].to_list() == ["cat", None, None, "dog"]
    assert found.source.notes == ("no answer is 'idk', which unsure= names",)


def test_ignored_columns_may_be_nested_of_other_spelling_or_of_a_later_round(
    write: Write, tmp_path: Path
) -> None:
    first = write("id,a,b,My site\nx,0,1,s\ny,1,0,t\n")
    assert len(read_annotations(first, format="wide", ignore=["my_site"]).classes) == 2
    later = tmp_path / "later.csv"
    later.write_text("id,a,b,room\nz,0,1,s\nw,1,0,t\n")
    ignored = ["my_site", "room"]
    both = read_annotations(first, format="wide", ignore=ignored, merge=(later,))
    assert both.classes == ("0", "1")
    said = [{"item": "x", "label": "a", "extra": {"k": 1}}, {"item": "y", "label": "b"}]
    read_annotations(write(to_lines(said)), ignore=["extra"])


def test_a_column_of_constant_sums_has_a_note(write: Write) -> None:
    rows = "".join(f"{row},{row % 3},{2 - row % 3},2\n" for row in range(10))
    found = read_annotations(write("item,a,b,all\n" + rows), format="counts")
    assert found.classes == ("a", "b", "all")
    assert found.source.notes == (
        "column 'all' is the sum of the others; pass ignore='all' if it is no class",
    )


def test_a_word_for_nothing_is_a_class_with_a_note(write: Write) -> None:
    found = read_annotations(write(LONG + "x,a,yes\nx,b,NA\ny,a,no\n"))
    assert found.classes == ("NA", "no", "yes")
    assert found.source.notes == ("class 'NA': if it means 'no answer', pass missing='NA'",)


def test_classes_keep_the_order_asked_for(write: Write) -> None:
    path = write(LONG + "x,a,10\nx,b,9\n")
    assert read_annotations(path).classes == ("9", "10")
    assert read_annotations(path, classes=["10", "9", "8"]).counts().tolist() == [[1, 1, 0]]


@FEW
@given(st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 4)), st.integers(0, 3)))
def test_random_votes_are_counted(write: Write, votes: dict[tuple[int, int], int]) -> None:
    path = write(LONG + "".join(f"i{i},w{w},{'abcd'[k]}\n" for (i, w), k in votes.items()))
    if len(set(votes.values())) < 2:
        with pytest.raises(CredalError, match=r"there are no answers|every vote is for one class"):
            read_annotations(path)
        return
    slow = Counter((f"i{i}", "abcd"[k]) for (i, _), k in votes.items())
    assert as_counts(read_annotations(path)) == slow


@FEW
@given(votes=st.lists(st.tuples(*map(st.sampled_from, ("ijk", "ab ", "uvw"))), min_size=1))
def test_last_votes_match_a_slow_loop(write: Write, votes: list[tuple[str, str, str]]) -> None:
    path = write(LONG + "".join(f"{','.join(vote)}\n" for vote in votes))
    found = read_annotations(path, repeats="last", classes=["u", "v", "w"])
    last: dict[tuple[str, str], str] = {}
    for i, (item, who, label) in enumerate(votes):
        last[item, who if who != " " else str(i)] = label  # unknown people are all different
    assert as_counts(found) == Counter((item, label) for (item, _), label in last.items())
    assert len(votes) == len(last) + sum(found.source.left_out.values())


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "header only": (LONG, {}, "csv: there are no answers"),
    "missing column": ("task,worker,lable\nx,a,cat\n", {}, "no column name looks like the label"),
    "two votes": (LONG + "x,a,cat\nx,a,dog\n", {}, r"line 3: .*'cat' \(line 2\) and 'dog'.*last"),
    "one class": (LONG + "x,a,cat\ny,a,cat\n", {}, "every vote is for one class, 'cat'"),
    "no item": (LONG + "x,a,cat\n,a,dog\n", {}, "line 3: the vote names no item"),
    "free text": (LONG + "".join(f"x{i},a,t{i}\n" for i in range(150)), {}, "150 .* free text"),
    "measurements": (
        LONG + "".join(f"x{i},{who},{i / 7:.2f}\n" for i in range(60) for who in "abcdef"),
        {},
        "60 different numbers in 360 votes, such as '0', '0.14', .* are measurements",
    ),
    "ratings": (
        LONG
        + "".join(f"x{i},{who},{(i * 7 + ord(who)) % 101}\n" for i in range(60) for who in "abc"),
        {},
        "different numbers in 180 votes, .* are measurements",
    ),
    "lists": (LONG + "x,a,['joy']\nx,b,\"['joy', 'fear']\"\ny,a,['fear']\n", {}, "names several"),
    "several": (LONG + 'x,a,joy\nx,b,"joy, fear"\ny,a,fear\n', {}, "'joy, fear' names several"),
    "percentages": ("id,a,b\nx,70%,30 %\ny,10%,90%\n", {}, r"percentages, .* 0.7 for 70 %"),
    "a percentage": (
        "item,p_a,p_b\nx,70%,30%\n",
        {"format": "probabilities"},
        "'a' must be a number; got '70%'. To fix: divide",
    ),
    "a sum": (
        "item,a,b,Summe\n" + "".join(f"{row},{row},2,{row + 2}\n" for row in range(10)),
        {"format": "counts"},
        "column 'Summe' is the sum of the others. To fix: pass ignore='Summe'",
    ),
    "ignored column": (
        "id,a,b\nx,0,1\ny,1,0\n",
        {"ignore": ["c"], "format": "wide"},
        "has no column 'c'",
    ),
    "comments": (
        "id,ann,bo,mm,note\n" + "".join(f"{i},a,b,{i / 7:.2f},see {i}\n" for i in range(30)),
        {"format": "wide"},
        "such as '0' in 'mm', 'note'. To fix: pass ignore='mm' and ignore='note', or",
    ),
    "words": ("id,cat,dog,by\nx,1,2,a\n", {"format": "counts"}, "'by' must .*ignore='by' if it"),
    "half": ("id,cat,dog\nx,2.5,1\n", {"format": "counts"}, "got 2.5. To fix: correct it"),
    "no answer": ("id,a,b,c\nx,0,1,-1\ny,1,1,0\n", {}, "'-1' may mean .* pass missing='-1'"),
    "nested": ('[{"id": 1, "ann": "cat", "bo": "dog", "tags": []}]', {}, "like the label"),
    "one name": (
        "id,text,rater,label\n1,Hi,a,x\n1,Ho,b,y\n",
        {},
        "'text' in line 3 than in l",
    ),
    "weight": ("task,worker,label,weight\nx,a,cat,much\nx,b,dog,1\n", {}, "line 2: 'weight' must"),
    "sum": ("item,cat,dog\nx,0.5,0.5\ny,0.5,0.4\n", {}, "line 3: probabilities must sum to 1.*0.9"),
    "percent": ("item,p_cat,p_dog\nx,50,50\n", {}, "divide percentages by 100"),
    "no number": ("item,cat,dog\nx,0.5,0.5\ny,0.4,\n", {}, "line 3: 'dog' must be a number"),
    "twice": ("item,cat,dog\nx,0.5,0.5\nx,0.4,0.6\n", {}, "line 3: .* two different rows .* 'x'"),
    "predictions": ("item,label,lower,upper\nx,a,0.7,0.8\n", {}, "'upper' would be ignored"),
    "two bounds": ("item,label,at_least\nx,a,0.7\ny,b,0.1\nx,a,0.6\n", {}, "line 4: .*two diff"),
    "no bound": ("item,label,at_least\n", {}, "no row contains a bound"),
    "no label": ("item,label,at_least\nx,cat,0.4\nx,nan,0.3\n", {}, "line 3: a lower bound needs"),
    "class item": ("id,p_item,p_dog\nx,0.5,0.5\n", {}, "no class can be called 'item'"),
    "foreign names": (
        "Teil;Prüfer;Urteil\nx;a;gut\nx;b;schlecht\ny;a;gut\ny;b;gut\n",
        {"item": "Teil", "repeats": "last"},
        "most items of 'Teil' occur in several rows, .* with annotator= and label=",
    ),
    "annotator alone": (LONG.replace("label", "x"), {"annotator": "worker"}, "like the label"),
    "ambiguous": (
        "item,cat,dog\nx,1,0\ny,1,1\n",
        {},
        "pass format='wide', or format='counts' and each class with classes=",
    ),
    "class": (
        LONG + "x,a,horse\nx,b,hrose\n",
        {"classes": ["horse", "cat"]},
        "line 3: 'hrose' is.*correct it, or leave",
    ),
    "one asked": (LONG, {"classes": "cat"}, "classes must name two or more; got 'cat'"),
    "format": (LONG, {"format": "label-studo"}, "format must be one of .*'label-studio'"),
    "no JSON": (LONG, {"format": "prodigy"}, "prodigy is JSON, and this is a table"),
    "nothing flat": ('[{"a": []}]', {}, "no column name looks like the item"),
    "above 100": (SAID.replace("70", "170"), {}, "item 'x': 'top_percent' .* at most 100; got 170"),
    "below 0": (SAID.replace("30", "-2"), {}, "'second_percent' must be 0 or more; got -2"),
    "shares": ("item,top,top_percent\nx,a,0.7\nx,b,1\n", {}, "no percentage is above 1. To fix: m"),
    "listed": (SAID.replace("fox;owl", '"[fox, owl]"'), {}, r"line 2: '\[fox, owl\]' is not one"),
    "stated class": (SAID, {"classes": ["cat", "dog", "fox"]}, "line 2: 'owl' is .*='owl'.$"),
    "no top": (SAID.replace("top,", "first,"), {}, "no column name looks like the label.*label="),
    "stated map": (SAID, {"map": "cat=a dog,fox,owl=b"}, "map= cannot change statements"),
    "said twice": (SAID + "y,ann,fox,60,,,\n", {}, "line 5: .*twice.*'80' 'dog' '40' .*'fox' '60'"),
    "a list": ('{"item": 1, "top": "a", "top_percent": 9, "impossible": ["b"]}\n', {}, "is a list"),
    "surrogate": ('{"item": "x", "label": "\\ud800"}\n' * 2, {}, "is not valid Unicode text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_line(write: Write, name: str) -> None:
    content, options, message = REFUSED[name]
    path = write(content)
    with pytest.raises(CredalError, match=message) as refused:
        read_annotations(path, **options)
    assert "To fix: " in str(refused.value)
    assert "\n" not in str(refused.value)


def test_later_rounds_are_read_as_what_continues_the_first(write: Write) -> None:
    first = write("msg,who,what\n1,ann,cat\n2,ann,dog\n", "first.csv")
    tasks = [studio_task(1, {"item": "2"}, {"q": "cat"})]
    later = (write("item,annotator,label\n1,bo,cat\n", "b.csv"), write(to_lines(tasks), "c.json"))
    columns: dict[str, Any] = {"item": "msg", "annotator": "who", "label": "what"}
    found = read_annotations(first, **columns, merge=later)
    assert found.counts().tolist() == [[2, 0], [1, 1]]
    assert found.annotators == ("ann", "bo", "0")
    assert found.source.later == later
    table = pl.read_csv(later[0])  # in memory, as one value
    assert read_annotations(first, **columns, merge=table).counts().tolist() == [[2, 0], [0, 1]]
    named = read_annotations(first, **columns, merge=later[1], merge_item="id")
    assert named.counts().tolist() == [[2, 0], [0, 1]]


def test_votes_may_follow_counts_whatever_the_format_of_the_first(write: Write) -> None:
    first = write("item,cat,dog\nx,1,0\ny,1,1\n", "first.csv")
    later = write("item,annotator,label\nx,ann,dog\n", "later.csv")
    found = read_annotations(first, format="counts", merge=(later,))
    assert found.counts().tolist() == [[1, 1], [1, 1]]
    unknown = write("item,annotator,label\nx,ann,eel\n", "unknown.csv")
    with pytest.raises(CredalError, match=r"line 2: 'eel' is none of .*missing='eel', .* map="):
        read_annotations(first, format="counts", merge=(unknown,))


def test_missing_labels_are_no_votes_and_named_classes_are_no_codes(write: Write) -> None:
    path = write("id,a,b,c\nx,0,1,-1\ny,1,1,0\nz,-1,-1,-1\n")
    found = read_annotations(path, missing="-1")
    assert found.counts().tolist() == [[1, 1], [1, 2], [0, 0]]
    assert found.source.left_out == {"empty cells": 4}
    assert read_annotations(path, classes=["-1", "0", "1"]).counts().sum() == 9
    assert read_annotations(write("id,r1,r2\nx,1,-1\ny,1,1\n")).classes == ("-1", "1")
    joined = write(LONG + 'x,a,joy\nx,b,"joy,fear"\ny,a,fear\n')
    assert len(read_annotations(joined, classes=["joy", "fear", "joy,fear"]).classes) == 3


@pytest.mark.catches(
    "app/annotations/merge.py",
    "known.get(item, content) != content",
    "known.get(item, content) is None",
)
def test_items_of_another_split_are_not_merged_by_their_names(write: Write) -> None:
    head = "id,text,rater,label\n"
    first = write(head + "1,Hi,a,x\n2,Bye,a,y\n", "train.csv")
    again = write(head + "1, Hi ,b,y\n2,,b,y\n", "again.csv")  # an empty text is not known
    assert read_annotations(first, merge=(again,)).counts().tolist() == [[1, 1], [0, 2]]
    other = write(head + "1,Howdy,b,x\n2,Bye,b,y\n", "dev.csv")
    for conflicts in ("refuse", "newest"):
        with pytest.raises(CredalError, match=r"dev.csv: 1 item has the name of a different"):
            read_annotations(first, merge=(other,), merge_conflicts=conflicts)
    unknown = write("id,rater,label\n1,a,y\n", "votes.csv")
    with pytest.raises(CredalError, match=r"if the names start again in each file, give every"):
        read_annotations(first, merge=(unknown,))


def test_reader_options_have_help_and_are_fields_of_round_options() -> None:
    stated = [each for each in fields(ReaderOptions) if each.name != "elsewhere"]
    assert all(each.metadata["help"].endswith(".") for each in stated)
    assert {each.name for each in fields(ReaderOptions)} < {
        each.name for each in fields(RoundOptions)
    }
