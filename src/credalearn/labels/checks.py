"""Checks that the label rules share.

Shapes: N items, K classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets import CredalSet
from credalearn.sets.checks import refuse_masked


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
