"""The standard error of a mean over items that return in split after split.

Shapes: N items, S splits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Crossed:
    r"""Values of items over splits, taken in split by split, and what their mean is worth.

    The mean is over items, of each item's mean :math:`m_i` over the :math:`t_i` splits that it was
    part of. Its variance has two parts:

    .. math:: \frac{1}{N} \operatorname{Var}(m_i) +
              \frac{\bar t}{\bar t - 1} \frac{1}{(\sum_i t_i)^2}
              \sum_s \sum_{i \neq j} e_{is} e_{js},
              \qquad e_{is} = x_{is} - m_i.

    The first is the chance of which items there are; what a split does to each item on its own is
    in it, as it is in the spread of the :math:`m_i`. The second is what a split does to all items
    alike, because the same annotators build in it: only pairs of different items count, so that
    nothing is counted twice. An estimate below 0 counts as 0. But for that it is without bias where
    every item is in every split, items and splits being two crossed random effects (Searle, Casella
    and McCulloch, 1992).

    Args:
        num_items: N.

    Example:
        Two items that the first split finds at 1 and the second at 0: the items are alike, the
        splits are not.

        >>> values = Crossed(2)
        >>> for found in (1.0, 0.0):
        ...     values.add(np.array([True, True]), np.array([found, found]))
        >>> values.mean, round(values.error, 4)
        (0.5, 0.3536)
    """

    def __init__(self, num_items: int) -> None:
        self._sum, self._squares, self._times = (np.zeros(num_items) for _ in range(3))
        self._splits: list[tuple[NDArray[np.bool_], float]] = []

    def add(self, rows: NDArray[np.bool_], values: Floats) -> None:
        """Take in one split: which items it has, bool (N,), and the value of each of those."""
        self._sum[rows] += values
        self._squares[rows] += values**2
        self._times[rows] += 1
        self._splits.append((rows, float(values.sum())))

    @property
    def items(self) -> int:
        """How many were part of some split."""
        return int((self._times > 0).sum())

    @property
    def mean(self) -> float:
        """Over items, of each item's mean."""
        return float(self._means[self._times > 0].mean())

    @property
    def error(self) -> float:
        """Its standard error; inf where it cannot be known, of one item or of one split."""
        seen = self._times > 0
        returns = self._times[seen].mean() if seen.any() else 0.0
        if seen.sum() < 2 or returns <= 1:
            return float("inf")
        means = self._means
        together = sum((total - means[rows].sum()) ** 2 for rows, total in self._splits)
        alone = (self._squares - self._times * means**2).sum()
        shared = returns / (returns - 1) * (together - alone) / self._times.sum() ** 2
        return float(np.sqrt(means[seen].var(ddof=1) / seen.sum() + max(shared, 0.0)))

    @property
    def _means(self) -> Floats:
        means: Floats = self._sum / np.maximum(self._times, 1)
        return means
