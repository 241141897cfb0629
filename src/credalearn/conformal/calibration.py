"""Calibrate by how much predicted sets are widened.

Shapes: N items, V vertices, K classes.
"""

import math
from dataclasses import replace

from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.conformal.distance import as_shares, box_distance, total_variation
from credalearn.conformal.inflation import Distance, Inflation, Scale
from credalearn.conformal.scales import scale_of


def calibrate(
    observed: ArrayLike,
    lower: Tensor,
    upper: Tensor,
    probs: Tensor,
    *,
    vertices: Tensor | None = None,
    coverage: float = 0.9,
    distance: Distance = "box",
    scale: Scale = "relative-variance",
) -> Inflation:
    r"""How much to widen sets so that they cover new items like these; see :class:`Inflation`.

    The :math:`\lceil (n+1) \cdot \text{coverage} \rceil`-th smallest nonconformity of the n items;
    infinite where that exceeds n.

    Args:
        observed: Votes or shares of the calibration items by class, shape (N, K); rows are divided
            by their sum. The items must not have been used for training.
        lower: Smallest probabilities of their predicted sets, shape (N, K).
        upper: Largest probabilities, shape (N, K).
        probs: The chosen distributions, shape (N, K).
        vertices: Points whose hulls the sets are, shape (N, V, K); only used by the total-variation
            distance.
        coverage: Share of new items whose observed distribution is to lie in their set.
        distance: How far an observed distribution is from a set.
        scale: How much an item is widened compared with the others.

    Raises:
        CredalError: If an item has no votes, shapes differ or an option is not one of the choices.

    Example:
        Nine points, each off by a twentieth more than the one before; 80 % of ten is the eighth.

        >>> import torch
        >>> off = torch.arange(1, 10, dtype=torch.float64) / 20
        >>> q, p = torch.stack([0.5 + off, 0.5 - off], 1), torch.full((9, 2), 0.5)
        >>> calibrate(q, p, p, p, coverage=0.8, scale="none").radius
        0.4
    """
    found = Inflation(  # checks the options, and knows which nonconformity is the radius
        coverage=coverage, radius=math.inf, distance=distance, scale=scale, items=len(lower)
    )
    shares = as_shares(observed, lower)
    low, high, inside = (each.detach().double() for each in (lower, upper, probs))
    factor = scale_of(inside, distance, scale)
    if distance == "box":
        off = box_distance(shares, low, high, factor)
    else:
        points = None if vertices is None else vertices.detach().double()
        off = total_variation(shares, low, high, vertices=points) / factor[:, 0]
    if found.rank > found.items:
        return found
    return replace(found, radius=float(off.sort().values[found.rank - 1]))
