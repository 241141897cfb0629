"""Checks that the label rules share.

Shapes: N items, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.checks import check_whole
from credalearn.credal import CredalSet
from credalearn.credal.checks import refuse_masked, require
from credalearn.errors import CredalError


def check_sets(labels: object) -> None:
    """Refuse labels that are no credal sets, such as an array of soft ones."""
    if not isinstance(labels, CredalSet):
        raise CredalError(
            f"labels must be credal sets, one an item; got {type(labels).__name__}. To fix: give "
            "what from_votes(counts) makes of votes, or precise(probs) of soft labels."
        )


def as_array(values: ArrayLike, *, name: str) -> Tensor | np.ndarray:
    """A tensor as it is and all else as an array, if its rows are of one length."""
    if isinstance(values, Tensor):
        return values
    refuse_masked(values, name=name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise CredalError(
            f"{name} must be an array of numbers; {str(error).rstrip('.')}. To fix: give "
            "every item as many values as the others."
        ) from error


def as_classes(labels: ArrayLike, num_classes: int) -> Tensor:
    """Class indices (N,) as int64, each in 0..K-1."""
    check_whole(num_classes, least=1, name="num_classes", remedy="give how many classes there are")
    try:
        classes = torch.from_numpy(np.array(labels)) if not isinstance(labels, Tensor) else labels
    except (TypeError, ValueError) as error:
        raise CredalError(
            f"labels must be class indices, whole numbers of shape (items,); {error}."
        ) from error
    if classes.ndim != 1 or classes.is_floating_point() or classes.dtype == torch.bool:
        raise CredalError(
            "labels must be class indices, whole numbers of shape (items,); "
            f"got {classes.dtype} of shape {tuple(classes.shape)}."
        )
    classes = classes.long()
    require(
        ((classes >= 0) & (classes < num_classes))[:, None],
        rule=f"labels must lie in 0..{num_classes - 1}",
        remedy="raise num_classes or number the classes from 0",
        label=classes,
    )
    return classes
