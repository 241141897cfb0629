"""The standard error of a mean over items that appear in several splits.

Shapes: N items, S splits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Crossed:
    r"""Values of items over splits, their mean and its standard error.

    The mean is over items, of each item's mean :math:`m_i` over the :math:`t_i` splits that it was
    part of. Its variance has two parts:

    .. math:: \frac{1}{N} \operatorname{Var}(m_i) +
              \frac{\bar t}{\bar t - 1} \frac{1}{(\sum_i t_i)^2}
              \sum_s \sum_{i \neq j} e_{is} e_{js},
              \qquad e_{is} = x_{is} - m_i.

    The first is the variance over items, the second what a split does to all items alike, because
    the same annotators build in it; an estimate below 0 counts as 0. Items and splits are two
    crossed random effects (Searle, Casella and McCulloch, 1992).
    """

    def __init__(self, num_items: int) -> None:
        self._sum, self._squares, self._times = (np.zeros(num_items) for _ in range(3))
        self._splits: list[tuple[NDArray[np.bool_], float]] = []

    def add(self, rows: NDArray[np.bool_], values: Floats) -> None:
        """Add one split: which items it has, bool (N,), and the value of each of those."""
        self._sum[rows] += values
        self._squares[rows] += values**2
        self._times[rows] += 1
        self._splits.append((rows, float(values.sum())))

    @property
    def items(self) -> int:
        """Number of items that were part of some split."""
        return int((self._times > 0).sum())

    @property
    def mean(self) -> float:
        """Mean over items of each item's mean."""
        return float(self._means[self._times > 0].mean())

    @property
    def error(self) -> float:
        """Standard error of the mean; inf with one item or one split."""
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
