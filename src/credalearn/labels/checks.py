"""Checks that the label rules share.

Shapes: N items, K classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.credal.checks import require
from credalearn.errors import CredalError


def check_range(ok: bool, *, name: str, rule: str, value: float) -> None:
    """Refuse an option outside its range; NaN is outside every range."""
    if not ok:
        raise CredalError(f"{name} must be {rule}; got {value!r}.")


def check_option(
    value: float, inside: Callable[[float], bool], *, name: str, rule: str, remedy: str
) -> None:
    """Refuse what is no number, such as a text or None, or out of range; NaN always is."""
    try:
        ok = bool(inside(value))
    except (TypeError, ValueError, RuntimeError):  # not to be compared with numbers
        ok = False
    if not ok:
        raise CredalError(f"{name} must be {rule}; got {value!r}. To fix: {remedy}.")


def as_classes(labels: ArrayLike, num_classes: int) -> Tensor:
    """Class indices (N,) as int64, each in 0..K-1."""
    check_range(num_classes >= 1, name="num_classes", rule="1 or more", value=num_classes)
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
