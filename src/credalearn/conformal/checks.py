"""What people said, as calibrating and widening both take it.

Shapes: N items, K classes.
"""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets.checks import as_floats, require


def as_shares(observed: ArrayLike, sets: Tensor) -> Tensor:
    """Votes or shares, each row divided by its sum, in float64 on the device of the ``sets``.

    Example:
        >>> as_shares([[3, 1]], torch.zeros(1, 2)).tolist()
        [[0.75, 0.25]]
    """
    votes = as_floats(observed, name="observed", ndim=2).detach().to(sets.device, torch.float64)
    if votes.shape != sets.shape:
        raise CredalError(
            f"observed must have the items and classes of the sets, {tuple(sets.shape)}; "
            f"got shape {tuple(votes.shape)}."
        )
    total = votes.sum(1, keepdim=True)
    require(
        (votes >= 0) & (total > 0),
        rule="observed must be votes or shares by class, none below 0 and not all 0",
        remedy="leave items without votes out",
        observed=votes,
    )
    return votes / total
