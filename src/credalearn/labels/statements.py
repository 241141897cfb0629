"""Credal sets from statements of people: "at least 70 % cat", or whole distributions.

Shapes: N items, V annotators, K classes.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike

from credalearn.sets import LowerBounds, Vertices
from credalearn.sets.checks import as_distributions, as_floats, require


def at_least(bounds: ArrayLike) -> LowerBounds:
    """Credal labels from stated lower bounds: each class has at least this probability.

    The bounds of an item must sum to 1 or less; an item without any (all zeros) is the set of all
    distributions. The ``reference`` of a set is its center.

    Args:
        bounds: Stated bounds, shape (N, K), 0 where there is none.

    Example:
        >>> at_least([[0.7, 0.0, 0.1]]).upper
        tensor([[0.9000, 0.2000, 0.3000]])
    """
    return LowerBounds(bounds)


def hull(statements: ArrayLike) -> Vertices:
    """Credal labels from stated distributions: all mixtures of the statements about an item.

    A set contains every annotator's own distribution, and the true one if it is a mixture of them.
    Its ``reference`` is the mean of the statements.

    Args:
        statements: One distribution per item and annotator, shape (N, V, K); rows of NaN where an
            annotator made no statement about an item.

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
        rule="a statement must be a distribution, or NaN for every class where there is none",
        remedy="fill it or make it NaN throughout",
        statements=given,
    )
    require(
        said.any(2).any(1, keepdim=True),
        rule="an item needs one statement or more",
        remedy="drop the item",
        statements=given,
    )
    # The mean of the statements lies in the hull, and changes neither the set nor its center.
    mean = given.nanmean(1, keepdim=True)
    return Vertices(as_distributions(torch.where(said, given, mean), name="statements", ndim=3))
