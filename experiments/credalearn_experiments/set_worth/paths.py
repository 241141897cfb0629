"""Linear models of the folds of some items, with a penalty selected by their likelihood."""

from typing import Any

import numpy as np
import torch

import credalearn as cl
from credalearn._folds import Items, make_folds
from credalearn._selection import LinearPath, linear_path
from credalearn._targets import truth_of


def selected_path(
    X: Any, labels: cl.CredalSet, groups: np.ndarray | None, seed: int
) -> tuple[Items, LinearPath]:
    """The items, and linear models of their folds with a selected penalty."""
    sets = labels.to(dtype=torch.float64)
    inputs = torch.from_numpy(X) if isinstance(X, np.ndarray) else X
    items = Items(inputs, sets, truth_of(sets, None, np.arange(sets.num_classes)))
    folds = make_folds(items.truth, groups, random_state=seed)
    return items, linear_path(items, folds, sets.reference, lambda *_: None)
