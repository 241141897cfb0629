"""Arguments that are refused: the message names the rule and what to use instead."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from credalearn import CredalError
from credalearn._checks import check_choice, check_number, nearest
from credalearn.sets._checks import as_classes


def test_rejects_truth_values_and_none() -> None:
    with pytest.raises(CredalError, match=r"^n must be a number of 0 or more; got True\.$"):
        check_number(True, name="n", least=0)
    with pytest.raises(CredalError, match=r"^rule must be .* got None\. To fix: take one of"):
        check_choice(None, ("relax", "idm"), name="rule")


def test_nearest_ignores_case_and_separators() -> None:
    assert nearest("Item_ID", ["item id", "label"]) == "item id"
    assert nearest("itme", ["item", "label"]) == "item"
    assert nearest("weather", iter(["item", "label"])) is None
    assert nearest("total-varition-bal", ["total-variation-ball"]) == "total-variation-ball"
    assert nearest("x", []) is None


@pytest.mark.parametrize(
    "y",
    [
        [0, 2, 1],
        np.array([0, 2, 1], np.uint64),
        np.array([0, 2, 1], ">i4"),
        torch.tensor([0, 2, 1]).to(torch.uint16),
        np.ma.array([0, 2, 1]),  # a mask that hides nothing
        pd.Series([0, 2, 1]),
    ],
    ids=repr,
)
def test_whole_numbers_of_every_kind_are_class_indices(y: Any) -> None:
    found = as_classes(y, num_classes=3, name="y")
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ma.array([0, 1, 1], mask=[False, True, False]), r"no masked value; that at \(1,\) is"),
        ([True, False, True], "got torch.bool of"),
        ([0.0, 1.0, 2.0], "got torch.float32 of"),
        (torch.tensor([0, 1, 2]).to_sparse(), "dense tensor of real numbers"),
        ([[0], [1], [2]], r"of shape \(3, 1\)"),
        ([[0], [1, 2], [1]], "an array of numbers"),
        ([0, -1, 1], r"lie in 0\.\.2; row 1 has y=\[-1.0\]"),
        (np.array([0, 2**64 - 1, 1], np.uint64), r"lie in 0\.\.2; row 1"),
    ],
)
def test_rejects_bad_class_indices(y: Any, message: str) -> None:
    with pytest.raises(CredalError, match=rf"^y must .*{message}"):
        as_classes(y, num_classes=3, name="y")
