"""Credal sets from votes, and from the posteriors of models of annotators.

Shapes: N items, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.labels.vote_rules import VOTE_RULES, Tally, check_options
from credalearn.labels.vote_rules import VoteRule as VoteRule
from credalearn.sets import CredalSet
from credalearn.sets.checks import as_distributions, as_one_per_item, as_votes, require


def from_votes(
    counts: ArrayLike, *, rule: VoteRule = "relax-ties", s: float = 1.0, confidence: float = 0.95
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
      ``"total-variation"`` contain p with probability ``confidence`` or more, for any number of
      votes, any number of classes and any p.
    - ``"relax"`` contains p where the top class's share does not exceed its probability: with many
      votes half of the time. On ties, which are common with two or three votes, it prefers the
      lower index, and a model learns that; ``"relax-ties"`` does not. ``"precise"`` contains p only
      if the shares equal it.
    - ``"idm"`` contains the posterior means of all Dirichlet priors of strength s. It is not a
      confidence set: it shrinks as 1/M, sampling noise as :math:`1/\sqrt M`.
    - ``"hull"`` contains p exactly if every class that p allows got a vote.

    Args:
        counts: Whole numbers of votes, shape (N, K), each 0 or more. Sets have no class names:
            pass those of a data frame to ``CredalClassifier.fit`` as ``classes=``.
        rule: One of the rules above; docs/few-votes.md compares the models learned from each.
        s: Strength of the imprecise Dirichlet model, above 0; only for ``"idm"``.
        confidence: In (0, 1); only for both Clopper–Pearson rules and ``"total-variation"``.

    Returns:
        The sets, with the vote shares as their ``reference``. An item without any vote is the set
        of all distributions, its reference uniform.

    Example:
        Three of four chose the second class.

        >>> from_votes([[1, 3]]).lower
        tensor([[0.0000, 0.7500]])
        >>> from_votes([[1, 1, 0]], rule="relax-ties").lower
        tensor([[0.5000, 0.5000, 0.0000]])
        >>> from_votes([[1, 3]], rule="idm", s=1.0).lower
        tensor([[0.2000, 0.6000]])
        >>> from_votes([[1, 3]], rule="clopper-pearson").lower
        tensor([[0.0063, 0.1941]])
    """
    check_options(rule, s=s, confidence=confidence)
    votes = as_votes(counts)
    total = votes.sum(1, keepdim=True)
    shares = torch.where(total > 0, votes / total, 1 / votes.shape[1])
    tally = Tally(counts=votes, total=total, shares=shares, s=s, confidence=confidence)
    return VOTE_RULES[rule](tally).to(_dtype_of(counts))


def _dtype_of(counts: ArrayLike) -> torch.dtype:
    """The dtype of an array or tensor of floats; torch's default for anything else."""
    if isinstance(counts, np.ndarray) and counts.dtype.kind == "f":
        return torch.from_numpy(counts[:0]).dtype
    if isinstance(counts, Tensor) and counts.is_floating_point():
        return counts.dtype
    return torch.get_default_dtype()


def from_posterior(
    posterior: ArrayLike,
    num_votes: ArrayLike,
    *,
    rule: VoteRule = "relax-ties",
    s: float = 1.0,
    confidence: float = 0.95,
) -> CredalSet:
    """Credal labels from the posterior of a model of annotators, such as Dawid and Skene's (1979).

    ``posterior · num_votes`` takes the place of the counts in :func:`from_votes`. The guarantee of
    a rule then assumes that the posterior is worth as many independent votes, which nothing proves:
    it is about which one class is the true one, and is near 0 or 1 even for ambiguous items.

    Args:
        posterior: One distribution per item, shape (N, K): the ``reference`` of its set.
        num_votes: Number of votes behind it, 0 or more, shape (N,), or one number for all items.
        rule: As for :func:`from_votes`.
        s: As for :func:`from_votes`.
        confidence: As for :func:`from_votes`.

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
