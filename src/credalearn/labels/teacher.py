"""A teacher network's logits into credal sets.

Shapes: N items, K classes.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from credalearn._checks import check_choice, check_option
from credalearn.labels.soft import SOFT_RULES, SoftRule
from credalearn.sets import LowerBounds
from credalearn.sets.checks import as_floats


def from_teacher(
    logits: ArrayLike, *, temperature: float = 2.5, rule: SoftRule = "relax"
) -> LowerBounds:
    r"""Credal labels from a teacher: a rule on :math:`\mathrm{softmax}(z / T)`.

    The top class is taken from the logits, where a high temperature cannot tie two classes by
    rounding; equal logits go to the lowest index.

    Args:
        logits: The teacher's outputs before the softmax, shape (N, K), finite.
        temperature: T above 0; larger is softer.
        rule: ``"relax"`` (the paper), ``"relax-ties"`` or ``"precise"``.

    Returns:
        The sets, with the teacher's distribution as their ``reference``.

    Raises:
        CredalError: If a logit is not finite or the temperature is not above 0.

    Example:
        >>> from_teacher([[2.0, 0.0]], temperature=2.0).lower
        tensor([[0.7311, 0.0000]])
    """
    check_choice(rule, SOFT_RULES, name="rule")
    check_option(
        temperature,
        lambda value: 0 < value < float("inf"),
        name="temperature",
        rule="above 0 and finite",
        remedy="give 2.5, or 1 for the teacher's own probabilities",
    )
    outputs = as_floats(logits, name="logits", ndim=2)
    probs = (outputs / temperature).softmax(1)
    return SOFT_RULES[rule](probs, outputs.argmax(1))
