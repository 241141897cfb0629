"""Labels that are read as classes."""

from pathlib import Path

import polars as pl
import pytest

import credalearn as cl
from annotation_exports import Write
from credalearn.app.annotations.class_map import parse_map
from team_files import Capture, in_process

MAP = "-3,-2,-1=abusive 0,1=fine"


def severity() -> pl.DataFrame:
    rows = [("a", "ann", -3), ("a", "bo", 1), ("b", "ann", 0), ("b", "bo", -1), ("b", "cy", 1)]
    return pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")


def test_votes_are_counted_by_class(tmp_path: Path, capsys: Capture) -> None:
    found = cl.read_annotations(severity(), map=MAP)
    assert found.classes == ("abusive", "fine")
    assert found.counts().tolist() == [[1, 1], [1, 2]]
    path = tmp_path / "votes.csv"
    severity().write_csv(path)
    done = in_process(capsys, "inspect", path, "--map", MAP)
    assert "votes by class: abusive: 2 (-3, -2, -1), fine: 3 (0, 1)" in done.out
    again = in_process(capsys, "inspect", path, "--map", "-3,-2,-1=abusive", "--map", "0,1=fine")
    assert again.out == done.out


def test_labels_that_look_alike_may_be_one_class() -> None:
    rows = [("a", "ann", "Gut"), ("a", "bo", "bad"), ("b", "ann", "g ut")]
    schema = ["item", "annotator", "label"]
    found = cl.read_annotations(pl.DataFrame(rows, schema=schema, orient="row"))
    assert "map='Gut,g ut=g ut', and name every other class likewise" in found.source.notes[0]
    twice = pl.DataFrame([*rows, ("a", "ann", "g ut")], schema=schema, orient="row")
    mapped = cl.read_annotations(twice, map=("Gut,g ut=good", "bad=bad"))
    assert mapped.counts().tolist() == [[1, 1], [1, 0]]
    assert mapped.source.left_out == {"repeated": 1}


def test_a_class_of_one_map_may_have_spaces() -> None:
    given = ("very bad,bad=not fine", "good = fine")
    assert parse_map(given) == {"very bad": "not fine", "bad": "not fine", "good": "fine"}


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("item,n_0,n_1,n_2\na,2,1,0\nb,0,3,1\n", "counts", [[2, 1], [0, 4]]),
        ("item,0,1,2\na,.5,.25,.25\nb,0,.5,.5\n", "probabilities", [[0.5, 0.5], [0, 1]]),
        ("item,label,at_least\na,1,.25\na,2,.5\nb,0,.75\n", "bounds", [[0, 0.75], [0.75, 0]]),
    ],
)
def test_counts_probabilities_and_bounds_add_up(
    write: Write, text: str, kind: str, wanted: list[list[float]]
) -> None:
    found = cl.read_annotations(write(text), map="0=none 1,2=some")
    assert found.kind == kind
    assert found.counts().tolist() == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("-3,-2,-1", r"a map must be labels, = and their class, each label once; got '-3,-2,-1'"),
        ("-3=a -3=b", r"each label once; got '-3=b'"),
        ("-3,-2,-1=bad 0=fine", r"'1' is none of .* or give it a class with map="),
        ("-3,-2,-1,0,1=all", r"at least two classes; it leads to 'all'"),
    ],
)
def test_refuses_a_map_that_does_not_fit(given: str, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        cl.read_annotations(severity(), map=given)


def test_classes_order_the_map() -> None:
    found = cl.read_annotations(severity(), map=MAP, classes=("fine", "abusive"))
    assert found.classes == ("fine", "abusive")
    assert found.counts().tolist() == [[1, 1], [2, 1]]
    with pytest.raises(cl.CredalError, match="the map must lead to 'fine', 'rude'"):
        cl.read_annotations(severity(), map=MAP, classes=("fine", "rude"))
