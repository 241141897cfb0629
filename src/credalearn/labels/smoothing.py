"""Hard labels, smoothed, into credal sets.

Shapes: N items, K classes.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch.nn.functional import one_hot

from credalearn._checks import check_choice, check_option, check_whole
from credalearn.labels.soft import SOFT_RULES, SoftRule
from credalearn.sets import LowerBounds
from credalearn.sets.checks import as_classes


def smooth(
    labels: ArrayLike, epsilon: float, num_classes: int, *, rule: SoftRule = "relax"
) -> LowerBounds:
    r"""Credal labels from label smoothing: a rule on :math:`(1 - \epsilon) e_y + \epsilon / K`.

    Args:
        labels: Class indices, shape (N,), in 0..K-1.
        epsilon: Mass taken from the label and spread evenly, 0 <= ε < 1.
        num_classes: K.
        rule: ``"relax"`` (the paper), ``"relax-ties"`` or ``"precise"``.

    Returns:
        The sets, with the smoothed label as their ``reference``.

    Raises:
        CredalError: If ε or a label is out of range.

    Example:
        >>> smooth([1], 0.2, 4).lower
        tensor([[0.0000, 0.8500, 0.0000, 0.0000]])
    """
    check_choice(rule, SOFT_RULES, name="rule")
    check_option(
        epsilon,
        lambda value: 0 <= value < 1,
        name="epsilon",
        rule="0 or more and below 1",
        remedy="give a share, 0.1 for 10 %",
    )
    check_whole(num_classes, least=1, name="num_classes", remedy="give how many classes there are")
    top = as_classes(labels, num_classes=num_classes, name="labels")
    hard = one_hot(top, num_classes).to(torch.get_default_dtype())
    probs = (1 - epsilon) * hard + epsilon / num_classes
    return SOFT_RULES[rule](probs, top)
