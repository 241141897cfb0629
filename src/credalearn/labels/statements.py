"""Credal sets from what people state: "at least 70 % cat", or whole distributions.

Shapes: N items, V annotators, K classes.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike

from credalearn.sets import LowerBounds, Vertices
from credalearn.sets.checks import SUM_TOLERANCE, as_distributions, as_floats, require


def at_least(bounds: ArrayLike) -> LowerBounds:
    """Credal labels from stated lower bounds: each class has at least this probability.

    Several statements about one item hold at once if they sum to 1 or less; an item without any
    (all zeros) is the set of all distributions.

    Args:
        bounds: Stated bounds, shape (N, K), 0 where nothing was said.

    Returns:
        The sets; nobody stated a distribution, so their ``reference`` is their center.

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


def hull(statements: ArrayLike) -> Vertices:
    """Credal labels from stated distributions: all mixtures of what the annotators said of an item.

    It promises that nobody is contradicted: each annotator's own distribution is inside. It holds
    the true distribution where this is some mixture of theirs.

    Args:
        statements: A distribution an annotator and item, shape (N, V, K); rows of NaN where an
            annotator said nothing of an item.

    Returns:
        The sets, with the mean of an item's statements as their ``reference``.

    Example:
        The second annotator did not see the second item.

        >>> nan = float("nan")
        >>> sets = hull([[[0.8, 0.2], [0.5, 0.5]], [[0.1, 0.9], [nan, nan]]])
        >>> sets.upper, sets.diameter()
        (tensor([[0.8000, 0.5000],
                [0.1000, 0.9000]]), tensor([0.3000, 0.0000]))
    """
    given = as_floats(statements, name="statements", ndim=3, finite=False)
    said = ~given.isnan()
    require(
        said.all(2) | ~said.any(2),
        rule="a statement must be a distribution, or NaN for every class where nothing was said",
        remedy="fill it or make it NaN throughout",
        statements=given,
    )
    require(
        said.any(2).any(1, keepdim=True),
        rule="an item needs one statement or more",
        remedy="drop the item",
        statements=given,
    )
    # The mean of what was said lies in the hull, and changes neither the set nor its center.
    mean = given.nanmean(1, keepdim=True)
    return Vertices(as_distributions(torch.where(said, given, mean), name="statements", ndim=3))
