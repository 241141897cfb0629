"""Credal sets from votes and from posteriors: one function per rule, and the table of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import betaincinv
from torch import Tensor

from credalearn import sets
from credalearn._checks import check_choice, check_number
from credalearn.errors import CredalError
from credalearn.labels.soft import relax_at, relax_ties
from credalearn.sets import CredalSet, LowerBounds
from credalearn.sets._checks import as_distributions, as_one_per_item, as_votes, require

VoteRule = Literal[
    "relax",
    "relax-ties",
    "precise",
    "idm",
    "clopper-pearson",
    "clopper-pearson-intervals",
    "total-variation",
    "hull",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The arguments of every rule."""

    counts: Tensor  # votes of each class, fractions allowed, shape (N, K)
    total: Tensor  # their sum M, shape (N, 1)
    shares: Tensor  # the soft label, shape (N, K)
    s: float  # strength of the imprecise Dirichlet model
    confidence: float  # of the rules with a guarantee

    def at_least(self, lower: Tensor) -> LowerBounds:
        """Lower bounds (N, K) of items with votes; all distributions for the others."""
        return LowerBounds(torch.where(self.total > 0, lower, 0), soft=self.shares)


def _clopper_pearson(votes: Tally) -> LowerBounds:
    level = (1 - votes.confidence) / votes.counts.shape[1]
    return LowerBounds(lower_limits(votes.counts, votes.total, level=level), soft=votes.shares)


def _clopper_pearson_intervals(votes: Tally) -> CredalSet:
    level = (1 - votes.confidence) / (2 * votes.counts.shape[1])
    lower = lower_limits(votes.counts, votes.total, level=level)
    upper = 1 - lower_limits(votes.total - votes.counts, votes.total, level=level)
    return sets.Intervals(lower, upper, soft=votes.shares)


def _total_variation(votes: Tally) -> CredalSet:
    total, num_classes = votes.total[:, 0], votes.counts.shape[1]
    if num_classes == 1:
        return sets.TotalVariationBall(votes.shares, torch.zeros_like(total))
    events = num_classes * math.log(2) + math.log1p(-(2.0 ** (1 - num_classes)))  # log(2^K − 2)
    # Without votes the root is infinite, and the radius 1 contains every distribution.
    root = ((events - math.log(1 - votes.confidence)) / (2 * total)).sqrt()
    return sets.TotalVariationBall(votes.shares, root.clamp(max=1))


def _hull(votes: Tally) -> CredalSet:
    possible = ((votes.counts > 0) | (votes.total == 0)).to(votes.shares)
    return sets.Intervals(0 * possible, possible, soft=votes.shares)


VOTE_RULES: dict[VoteRule, Callable[[Tally], CredalSet]] = {
    "relax": lambda votes: votes.at_least(relax_at(votes.shares, votes.counts.argmax(1)).lower),
    "relax-ties": lambda votes: votes.at_least(relax_ties(votes.shares).lower),
    "precise": lambda votes: votes.at_least(votes.shares),
    "idm": lambda votes: LowerBounds(votes.counts / (votes.total + votes.s), soft=votes.shares),
    "clopper-pearson": _clopper_pearson,
    "clopper-pearson-intervals": _clopper_pearson_intervals,
    "total-variation": _total_variation,
    "hull": _hull,
}

# They contain the distribution of independent votes with the given confidence.
PROMISING: tuple[VoteRule, ...] = (
    "clopper-pearson",
    "clopper-pearson-intervals",
    "total-variation",
)

USING: dict[str, tuple[VoteRule, ...]] = {"s": ("idm",), "confidence": PROMISING}
"""The rules that use an option."""


def check_options(rule: VoteRule, *, s: float, confidence: float) -> None:
    """Raise if the rule is unknown, or an option is out of its range or not used by the rule."""
    check_choice(rule, VOTE_RULES, name="rule")
    check_number(s, name="s", above=0)
    check_number(confidence, name="confidence", above=0, below=1)
    for name, value, default in (("s", s, 1.0), ("confidence", confidence, 0.95)):
        if rule not in USING[name] and value != default:
            raise CredalError(
                f"the rule {rule!r} does not use {name}; got {name}={value!r}. To fix: leave it "
                f"out, or use the rule {' or '.join(map(repr, USING[name]))}."
            )


def lower_limits(counts: Tensor, total: Tensor, *, level: float) -> Tensor:
    """Clopper and Pearson's (1934) lower limits, shape (N, K): quantiles of Beta(n, M − n + 1)."""
    others = (total - counts).double().numpy(force=True)
    above_zero = counts.double().clamp(min=np.finfo(np.float64).tiny)  # as Beta needs
    limits = torch.from_numpy(betaincinv(above_zero.numpy(force=True), others + 1, level))
    return torch.where(counts > 0, limits.to(counts), 0)


def from_votes(
    counts: "ArrayLike", *, rule: VoteRule = "relax-ties", s: float = 1.0, confidence: float = 0.95
) -> CredalSet:
    r"""Credal labels from how many annotators chose each class, n out of :math:`M = \sum_k n_k`.

    ===============================  ===============================================================
    rule                             the set
    ===============================  ===============================================================
    ``"relax"``                      n_j/M or more for the top class j (the paper); ties: lowest one
    ``"relax-ties"``                 the same; of tied top classes, each keeps its n_j/M or more
    ``"precise"``                    n/M alone: the soft label itself
    ``"idm"``                        n/(M + s) or more, imprecise Dirichlet model (Walley, 1996)
    ``"clopper-pearson"``            lower limits at level (1 − confidence)/K per class, one-sided
    ``"clopper-pearson-intervals"``  lower and upper limits at level (1 − confidence)/(2K) each
    ``"total-variation"``            within :math:`\frac12\sqrt{2\log((2^K-2)/(1-c))/M}` of n/M, c
                                     the confidence (Weissman et al., 2003)
    ``"hull"``                       any distribution over the classes that got a vote
    ===============================  ===============================================================

    For votes that are independent draws from one distribution p:

    - Both Clopper–Pearson rules (1934, with Bonferroni's correction over the classes) and
      ``"total-variation"`` contain p with probability ``confidence`` or more, whatever the number
      of votes, the number of classes and p.
    - ``"relax"`` contains p where the top class's share does not exceed its probability: with many
      votes half of the time. On ties it prefers the lower index; ``"relax-ties"`` does not.
    - ``"idm"`` contains the posterior means of all Dirichlet priors of strength s. It is not a
      confidence set: it shrinks as 1/M, sampling noise as :math:`1/\sqrt M`.
    - ``"hull"`` contains p exactly if every class that p allows got a vote.

    Args:
        counts: Whole numbers of votes, shape (N, K), each 0 or more. Sets have no class names:
            pass those of a data frame to ``CredalClassifier.fit`` as ``classes=``.
        rule: One of the rules above; experiments/docs/few-votes.md compares them.
        s: Strength of the imprecise Dirichlet model, above 0; only for ``"idm"``.
        confidence: In (0, 1); only for both Clopper–Pearson rules and ``"total-variation"``.

    The vote shares are the ``reference`` of a set. An item without votes allows all distributions.

    Example:
        Three of four chose the second class.

        >>> from_votes([[1, 3]]).lower
        tensor([[0.0000, 0.7500]])
        >>> from_votes([[1, 3]], rule="idm", s=1.0).lower
        tensor([[0.2000, 0.6000]])
        >>> from_votes([[1, 3]], rule="clopper-pearson").lower
        tensor([[0.0063, 0.1941]])
    """
    check_options(rule, s=s, confidence=confidence)
    votes, dtype = as_votes(counts), torch.get_default_dtype()
    total = votes.sum(1, keepdim=True)
    shares = torch.where(total > 0, votes / total, 1 / votes.shape[1])
    tally = Tally(counts=votes, total=total, shares=shares, s=s, confidence=confidence)
    if isinstance(counts, np.ndarray) and counts.dtype.kind == "f":
        dtype = torch.from_numpy(counts[:0]).dtype
    elif isinstance(counts, Tensor) and counts.is_floating_point():
        dtype = counts.dtype
    return VOTE_RULES[rule](tally).to(dtype)


def from_posterior(
    posterior: "ArrayLike",
    num_votes: "ArrayLike",
    *,
    rule: VoteRule = "relax-ties",
    s: float = 1.0,
    confidence: float = 0.95,
) -> CredalSet:
    """Credal labels from the posterior of a model of annotators, such as Dawid and Skene's (1979).

    ``posterior · num_votes`` takes the place of the counts in :func:`from_votes`. The guarantee of
    a rule then assumes that the posterior is worth as many independent votes, which nothing proves:
    it is about which one class is the true one, and is near 0 or 1 even for ambiguous items.

    ``posterior`` (N, K) has one distribution per item, the ``reference`` of its set; ``num_votes``
    (N,), or one number for all, is how many votes are behind it. Options as for
    :func:`from_votes`.

    Example:
        A model of the annotators weighs four votes as 0.9 to 0.1.

        >>> from_posterior([[0.9, 0.1]], 4, rule="idm").lower
        tensor([[0.7200, 0.0800]])
    """
    check_options(rule, s=s, confidence=confidence)
    given = as_distributions(posterior, name="posterior", ndim=2)
    shares = given.double()
    total = as_one_per_item(num_votes, len(shares), name="num_votes").to(shares)[:, None]
    require(
        total >= 0,
        rule="num_votes must be 0 or more",
        remedy="give the number of people who voted on each item",
        num_votes=total,
    )
    tally = Tally(counts=shares * total, total=total, shares=shares, s=s, confidence=confidence)
    return VOTE_RULES[rule](tally).to(given.dtype)
