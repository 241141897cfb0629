"""Calibration items into an inflation.

Shapes: N items, V vertices, K classes.
"""

import math
from typing import get_args

from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_choice
from credalearn._formats import check_share
from credalearn.conformal.checks import as_shares
from credalearn.conformal.distance import box_distance, total_variation
from credalearn.conformal.inflation import Distance, Inflation, rank_of, scale_of
from credalearn.conformal.scales import SCALES, Scale


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
            by their sum. The items must have had no part in the training.
        lower: Smallest probabilities of their predicted sets, shape (N, K).
        upper: Largest probabilities, shape (N, K).
        probs: The chosen distributions, shape (N, K).
        vertices: Points whose hulls the sets are, shape (N, V, K); only the total-variation
            distance asks for them.
        coverage: Share of new items whose observed distribution is to lie in their set.
        distance: How far an observed distribution is from a set.
        scale: How much an item is widened beside the others.

    Raises:
        CredalError: If an item has no votes, shapes differ or an option is none of those there are.

    Example:
        Nine points, each off by a twentieth more than the one before; 80 % of ten is the eighth.

        >>> import torch
        >>> off = torch.arange(1, 10, dtype=torch.float64) / 20
        >>> q, p = torch.stack([0.5 + off, 0.5 - off], 1), torch.full((9, 2), 0.5)
        >>> calibrate(q, p, p, p, coverage=0.8, scale="none").radius
        0.4
    """
    check_share(coverage, name="coverage")
    coverage = float(coverage)  # as the Inflation holds it, so that both find one rank
    check_choice(distance, get_args(Distance), name="distance")
    check_choice(scale, SCALES, name="scale")
    shares = as_shares(observed, lower)
    low, high, inside = (each.detach().double() for each in (lower, upper, probs))
    factor = scale_of(inside, distance, scale)
    if distance == "box":
        off = box_distance(shares, low, high, factor)
    else:
        points = None if vertices is None else vertices.detach().double()
        off = total_variation(shares, low, high, vertices=points) / factor[:, 0]
    rank = rank_of(len(off), coverage)
    radius = math.inf if rank > len(off) else float(off.sort().values[rank - 1])
    return Inflation(
        coverage=coverage, radius=radius, distance=distance, scale=scale, items=len(off)
    )
