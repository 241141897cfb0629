"""Posteriors of the true class, as models of annotators give them, into credal sets.

Shapes: N items, K classes.
"""

from __future__ import annotations

from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.labels.checks import as_array
from credalearn.labels.vote_rules import VOTE_RULES, Tally, VoteRule, check_options
from credalearn.sets import CredalSet
from credalearn.sets.checks import as_distributions, as_floats, require


def from_posterior(
    posterior: ArrayLike,
    num_votes: ArrayLike,
    *,
    rule: VoteRule = "relax-ties",
    s: float = 1.0,
    confidence: float = 0.95,
) -> CredalSet:
    r"""Credal labels by any rule for votes, on posteriors in the place of vote shares.

    Annotators of unequal skill are first brought to one distribution an item, by Dawid and Skene's
    (1979) model for instance; ``posterior · num_votes`` then stands for the counts of
    :func:`from_votes`, fractions and all (Clopper and Pearson's limits by quantiles of the Beta
    distribution).

    The promise of a rule for independent votes then rests on the posterior standing for as many
    such votes, which nothing proves: a posterior is about which one class is the true one, and is
    near 0 or 1 where people disagree about an item that truly is ambiguous.

    Args:
        posterior: One distribution an item, shape (N, K).
        num_votes: How many votes each stands for, 0 or more, shape (N,), or one number for all.
        rule: As for :func:`from_votes`. Under ``"hull"`` every class that the posterior does not
            rule out is possible, which is usually every class.
        s: As there.
        confidence: As there.

    Returns:
        The sets, with the posterior as their ``reference``. With 0 votes a set holds all
        distributions, except under ``"relax"`` and ``"precise"``, which do not ask how many.

    Raises:
        CredalError: If a row is no distribution, a number of votes is negative or not finite, or
            an option is out of range or not used by the rule.

    Example:
        Four votes that a model of the annotators weighs as 0.9 to 0.1.

        >>> from_posterior([[0.9, 0.1]], 4, rule="idm").lower
        tensor([[0.7200, 0.0800]])
    """
    check_options(rule, s=s, confidence=confidence)
    given = as_distributions(posterior, name="posterior", ndim=2)
    shares = given.double()
    total = _as_numbers(num_votes, shares)
    tally = Tally(counts=shares * total, total=total, shares=shares, s=s, confidence=confidence)
    return VOTE_RULES[rule](tally).to(given.dtype)


def _as_numbers(num_votes: ArrayLike, shares: Tensor) -> Tensor:
    """The number of votes of each item, shape (N, 1)."""
    given = as_array(num_votes, name="num_votes")
    if given.shape not in ((), (len(shares),)):
        raise CredalError(
            f"num_votes must be one number, or one an item, shape ({len(shares)},); "
            f"got {tuple(given.shape)}."
        )
    total = as_floats(given.reshape(-1, 1), name="num_votes", ndim=2).to(shares)
    require(
        total >= 0,
        rule="num_votes must be 0 or more",
        remedy="give how many people voted on each item",
        num_votes=total,
    )
    return total.expand(len(shares), 1)
