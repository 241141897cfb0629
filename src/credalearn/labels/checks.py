"""Checks that the label rules share.

Shapes: N items, K classes.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.credal import CredalSet
from credalearn.credal.checks import refuse_masked, require
from credalearn.errors import CredalError


def check_option(
    value: float, inside: Callable[[Any], bool], *, name: str, rule: str, remedy: str
) -> None:
    """Refuse what is no number, such as a text or an array, or out of range; NaN always is."""
    if not isinstance(value, Real) or not inside(value):
        raise CredalError(f"{name} must be {rule}; got {value!r}. To fix: {remedy}.")


def check_whole(value: int, *, least: int, name: str, remedy: str) -> None:
    """Refuse what is no whole number of ``least`` or more; 2.0 is none."""
    check_option(
        value,
        lambda number: number >= least and isinstance(number, Integral),
        name=name,
        rule=f"a whole number of {least} or more",
        remedy=remedy,
    )


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
