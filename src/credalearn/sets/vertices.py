"""Credal sets given by points whose convex hull they are."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from torch import Tensor

from credalearn.sets._checks import as_distributions
from credalearn.sets.base import CredalSet
from credalearn.sets.diameter import farthest_pair


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Vertices(CredalSet):
    r"""A batch of convex hulls :math:`Q = \{\sum_v w_v p_v : w \in \Delta\}` of V distributions.

    Points inside the hull of the others are allowed and change nothing but :meth:`center`.

    Args:
        points: Distributions, shape (N, V, K).
        soft: The soft label that each set was made from, shape (N, K), a member of its set.

    Example:
        >>> import torch
        >>> sets = Vertices(torch.tensor([[[0.2, 0.8], [0.6, 0.4]]]))
        >>> sets.worst(torch.tensor([[1.0, 0.0]])), sets.diameter(), sets.center()
        (tensor([0.6000]), tensor([0.4000]), tensor([[0.4000, 0.6000]]))
    """

    points: Tensor

    def __init__(self, points: "ArrayLike", *, soft: "ArrayLike | None" = None) -> None:
        points = as_distributions(points, name="points", ndim=3).detach().clone()
        self._keep(points=points, lower=points.amin(1), upper=points.amax(1))
        self._keep_soft(soft)

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """The dearest or the cheapest vertex."""
        limit = torch.finfo(self.points.dtype).max / self.num_classes  # 0·∞ = 0, no sum overflows
        finite = cost.to(self.points.dtype).clamp(-limit, limit)
        totals = torch.einsum("nvk,nk->nv", self.points, finite)
        chosen = totals.argmax(1) if largest else totals.argmin(1)
        return self.points[torch.arange(len(self), device=chosen.device), chosen]

    def center(self) -> Tensor:
        """The mean of the vertices, shape (N, K)."""
        return self.points.mean(1)

    def diameter(self) -> Tensor:
        """Largest total-variation distance between two vertices: exact, shape (N,)."""
        return farthest_pair(self.points)

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        """Euclidean distance to the hull by non-negative least squares, one item at a time."""
        inside = []
        for points, row in zip(self.points.numpy(force=True), q.numpy(force=True), strict=True):
            # The sum of the weights is one more equation.
            equations = np.vstack([points.T, np.ones(len(points))]).astype(np.float64)
            inside.append(nnls(equations, np.append(row, 1.0).astype(np.float64))[1] <= tolerance)
        return torch.tensor(inside, dtype=torch.bool, device=q.device)
