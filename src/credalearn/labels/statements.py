"""Statements such as "at least 70 % cat" into credal sets.

Shapes: N items, K classes.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from credalearn.sets import LowerBounds
from credalearn.sets.checks import SUM_TOLERANCE, as_floats, require


def at_least(bounds: ArrayLike) -> LowerBounds:
    """Credal labels from stated lower bounds: each class has at least this probability.

    Several statements about one item hold at once if they sum to 1 or less; an item without any
    (all zeros) is the set of all distributions.

    Args:
        bounds: Stated bounds, shape (N, K), 0 where nothing was said.

    Returns:
        The sets; nobody stated a distribution, so their ``reference`` is their center.

    Raises:
        CredalError: If a bound is not finite or not in [0, 1], or an item's bounds contradict each
            other; the message names the item.

    Example:
        >>> at_least([[0.7, 0.0, 0.1]]).upper
        tensor([[0.9000, 0.2000, 0.3000]])
    """
    stated = as_floats(bounds, name="bounds", ndim=2)
    require(
        (stated >= 0) & (stated <= 1),
        rule="a stated bound must lie in [0, 1]",
        remedy="state probabilities, 0.70 for 70 %",
        bounds=stated,
    )
    require(
        stated.sum(1, keepdim=True) <= 1 + SUM_TOLERANCE,
        rule="an item's stated bounds contradict each other if they sum to more than 1",
        remedy="lower one of them",
        bounds=stated,
    )
    return LowerBounds(stated)
