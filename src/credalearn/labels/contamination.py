"""Soft labels of which a share may be anything into credal sets.

Shapes: N items, K classes.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from credalearn._checks import check_option
from credalearn.sets import LowerBounds
from credalearn.sets.checks import as_distributions


def contaminate(probs: ArrayLike, epsilon: float) -> LowerBounds:
    r"""Credal labels :math:`\{(1 - \epsilon) q + \epsilon p : p \in \Delta\}` around soft labels.

    The ε-contamination model (Huber, 1964): a share ε of the annotators may have answered
    anything. Exactly the lower bounds :math:`(1 - \epsilon) q`. It promises what it assumes: the
    true distribution is inside where it has the form above, whatever the number of votes.

    Args:
        probs: Soft labels q, shape (N, K), rows that sum to 1.
        epsilon: Share that may be anything, 0 <= ε <= 1.

    Returns:
        The sets, with ``probs`` as their ``reference``.

    Raises:
        CredalError: If ε is out of range or a row is no distribution.

    Example:
        >>> sets = contaminate([[0.75, 0.25]], 0.2)
        >>> sets.lower, sets.upper
        (tensor([[0.6000, 0.2000]]), tensor([[0.8000, 0.4000]]))
    """
    check_option(
        epsilon,
        lambda value: 0 <= value <= 1,
        name="epsilon",
        rule="in [0, 1]",
        remedy="give a share, 0.1 for 10 %",
    )
    soft = as_distributions(probs, name="probs", ndim=2)
    return LowerBounds((1 - epsilon) * soft, soft=soft)
