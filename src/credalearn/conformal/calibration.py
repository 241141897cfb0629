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

    ``observed`` are votes or shares by class, (N, K), of items that were not used for training;
    ``lower``, ``upper``, ``probs`` and ``vertices`` (N, V, K) are their predictions.
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
