"""Options that are refused: the message says what to take instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

import credalearn as cl
from credalearn import CredalError, CredalPredictions
from credalearn._checks import check_choice, near, nearest
from credalearn.app.tables.naming import naming
from credalearn.sets.checks import as_classes
from credalearn_experiments.drawing import draw_triangle


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("relaxed", "'relax'"),
        ("IDM", "'idm'"),
        ("nonsense", "one of these"),
        (["idm"], "one of these"),
        (None, "one of these"),
    ],
)
def test_the_nearest_choice_is_named(value: object, fix: str) -> None:
    with pytest.raises(CredalError) as found:
        check_choice(value, ("relax", "idm"), name="rule")
    said = f"rule must be one of 'relax', 'idm'; got {value!r}. To fix: take {fix}."
    assert str(found.value) == said


def test_slips_are_told_from_other_words() -> None:
    assert near("Item_ID", ["item id", "items", "label"]) == ["item id", "items"]
    assert nearest("itme", ["item", "label"]) == "item"
    assert nearest("weather", iter(["item", "label"])) is None
    assert nearest("age", ["image"]) is None  # two letters are too many of three
    assert nearest("total-varition-bal", ["total-variation-ball"]) == "total-variation-ball"
    assert nearest("x", []) is None


def test_a_file_that_is_not_there_says_where_to_look(tmp_path: Path) -> None:
    for name in ("features.csv", "features.log", "new.v2.npz", "news.csv", "new.parquet"):
        (tmp_path / name).touch()
    for name, fix in (
        ("feature.csv", f"name {tmp_path}/features.csv"),
        ("features", f"name {tmp_path}/features.csv"),
        ("features.npz", f"name {tmp_path}/features.csv"),
        ("new.v2", f"name {tmp_path}/new.v2.npz"),
        ("new.csv", f"name {tmp_path}/new.parquet"),  # and not news.csv
        ("other.npy", f"look for it in {tmp_path}"),
        ("absent/features.csv", f"look at the path: there is no folder {tmp_path}/absent"),
    ):
        path = tmp_path / name
        with pytest.raises(CredalError) as found, naming(path):
            path.stat()
        assert str(found.value) == f"there is no file {path}. To fix: {fix}."


@pytest.mark.parametrize(
    "y",
    [
        [0, 2, 1],
        (0, 2, 1),
        *(np.array([0, 2, 1], dtype=kind) for kind in ("i1", "u1", "u2", "u4", "u8", ">i4")),
        *(torch.tensor([0, 2, 1]).to(kind) for kind in (torch.uint8, torch.uint16, torch.int32)),
        np.ma.array([0, 2, 1]),  # a mask that hides nothing
        np.array([0, 9, 2, 9, 1])[::2],
        pd.Series([0, 2, 1]),
        [torch.tensor(0), torch.tensor(2), torch.tensor(1)],
    ],
    ids=repr,
)
def test_whole_numbers_of_every_kind_are_class_indices(y: Any) -> None:
    found = as_classes(y, num_classes=3, name="y")
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 2, 1]


def test_class_indices_are_the_callers_own() -> None:
    given = np.array([0, 1])
    found = as_classes(given, num_classes=2, name="y")
    given[0] = 1
    assert found.tolist() == [0, 1]


PREDICTED = CredalPredictions.from_vertices(torch.eye(3)[None, :2].repeat(3, 1, 1))
TAKE_CLASSES: dict[str, Callable[[Any], object]] = {
    "labels": lambda y: cl.smooth(y, 0.1, 3),
    "metrics": lambda y: cl.metrics.accuracy(PREDICTED.probs, y),
    "triangle": lambda y: draw_triangle(Figure().subplots(), PREDICTED, classes=list("abc"), y=y),
}
NO_CLASSES: dict[str, tuple[Any, str]] = {
    "masked": (
        np.ma.array([0, 1, 1], mask=[False, True, False]),
        r"have no masked value; that at \(1,\) is",
    ),
    "bool": (np.array([True, False, True]), r"whole numbers of shape \(items,\); got bool of"),
    "bools": ([True, False, True], "got bool of"),
    "bool tensor": (torch.tensor([True, False, True]), "got torch.bool of"),
    "floats": ([0.0, 1.0, 2.0], "got float64 of"),
    "complex": (torch.tensor([0j, 1j, 0j]), "got torch.complex64 of"),
    "meta": (torch.zeros(3, dtype=torch.int64, device="meta"), "hold values; "),
    "sparse": (torch.tensor([0, 1, 2]).to_sparse(), r"be a dense tensor; got torch\.sparse_coo"),
    "names": (["a", "b", "c"], "got <U1 of"),
    "table": ([[0], [1], [2]], r"of shape \(3, 1\)"),
    "one number": (0, r"of shape \(\)"),
    "ragged": ([[0], [1, 2], [1]], "inhomogeneous shape"),
    "missing": ([0, None, 1], "got object of"),
    "negative": ([0, -1, 1], r"lie in 0\.\.2; row 1 has \w+=\[-1.0\]"),
    "too large": (np.array([0, 3, 1], np.uint16), r"lie in 0\.\.2; row 1 has \w+=\[3.0\]"),
    "beyond int64": (np.array([0, 2**64 - 1, 1], np.uint64), r"lie in 0\.\.2; row 1"),
}


@pytest.mark.parametrize("case", NO_CLASSES)
@pytest.mark.parametrize("take", TAKE_CLASSES)
def test_what_is_no_class_index_is_refused_everywhere_alike(take: str, case: str) -> None:
    y, message = NO_CLASSES[case]
    name = "labels" if take == "labels" else "y"
    with pytest.raises(CredalError, match=rf"^{name} must .*{message}.* To fix: "):
        TAKE_CLASSES[take](y)


@pytest.mark.parametrize("take", ["metrics", "triangle"])
def test_as_many_class_indices_as_items(take: str) -> None:
    with pytest.raises(CredalError, match=r"one class index for each of .* To fix: give"):
        TAKE_CLASSES[take]([0, 1])


def test_unsigned_class_indices_are_counted_right() -> None:
    assert cl.metrics.accuracy([[0.9, 0.1], [0.4, 0.6]], np.array([0, 1], np.uint16)) == 1.0
