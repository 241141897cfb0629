"""Distributions that several annotators stated into credal sets.

Shapes: N items, V annotators, K classes.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike

from credalearn.sets import Vertices
from credalearn.sets.checks import as_distributions, as_floats, require


def hull(statements: ArrayLike) -> Vertices:
    """Credal labels from stated distributions: all mixtures of what the annotators said of an item.

    It promises that nobody is contradicted: each annotator's own distribution is inside. It holds
    the true distribution where this is some mixture of theirs.

    Args:
        statements: A distribution an annotator and item, shape (N, V, K); rows of NaN where an
            annotator said nothing of an item.

    Returns:
        The sets, with the mean of an item's statements as their ``reference``.

    Raises:
        CredalError: If a statement is no distribution or is NaN in part, or an item has none.

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
