"""Checks that the metrics share.

Shapes: N items, K classes.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.credal.checks import as_floats, refuse_masked, require, require_distributions
from credalearn.errors import CredalError

ROUNDED = 0.02  # rows of two decimals, or of 16 bits, sum to 1 within it; logits and counts do not


def as_probs_and_classes(probs: ArrayLike, y: ArrayLike) -> tuple[Tensor, Tensor]:
    """Probabilities (N, K) and true class indices (N,), at least one item, without gradients."""
    checked = as_floats(probs, name="probs", ndim=2).detach()
    require_distributions(checked, name="probs", tolerance=ROUNDED)
    refuse_masked(y, name="y")
    try:
        classes = y if isinstance(y, Tensor) else torch.from_numpy(np.array(y))
    except (TypeError, ValueError) as error:
        raise CredalError(f"y must hold class indices, whole numbers; {error}.") from error
    classes = classes.to(checked.device)
    if classes.is_floating_point() or classes.shape != checked.shape[:1] or len(classes) == 0:
        raise CredalError(
            "y must hold one class index for each of one item or more, whole numbers of shape "
            f"({len(checked)},); got {classes.dtype} of shape {tuple(classes.shape)}."
        )
    require(
        ((classes >= 0) & (classes < checked.shape[1]))[:, None],
        rule=f"y must lie in 0..{checked.shape[1] - 1}",
        remedy="give class indices, in the order of the columns of probs",
        y=classes,
    )
    return checked, classes
