"""Credal sets from votes, and from what models of annotators make of votes.

Shapes: N items, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.labels.vote_rules import VOTE_RULES, Tally, check_options
from credalearn.labels.vote_rules import VoteRule as VoteRule
from credalearn.sets import CredalSet
from credalearn.sets.checks import as_array, as_distributions, as_floats, require


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
    ``"clopper-pearson"``            lower limits at level (1 − confidence)/K a class, one-sided
    ``"clopper-pearson-intervals"``  lower and upper limits at level (1 − confidence)/(2K) each
    ``"total-variation"``            within :math:`\frac12\sqrt{2\log((2^K-2)/(1-c))/M}` of n/M, c
                                     the confidence (Weissman et al., 2003)
    ``"hull"``                       any distribution over the classes that got a vote
    ===============================  ===============================================================

    What they promise, for votes that are independent draws from one distribution p:

    - Both Clopper–Pearson rules (1934, with Bonferroni's correction over the classes) and
      ``"total-variation"`` contain p with probability ``confidence`` or more, for any number of
      votes, of classes and any p. Annotators who copy each other, or of unequal skill, are no such
      draws.
    - ``"relax"`` contains p where the top class's share does not exceed its probability: with many
      votes half of the time, less where two classes are close. ``"relax-ties"`` is the same but on
      ties, of which two or three votes have many: there ``"relax"`` tells every item of the tied
      pair to be of the class with the lower index, and a model learns that. ``"precise"`` contains
      p only if the shares equal it.
    - ``"idm"`` contains the posterior means of all Dirichlet priors of strength s, whatever their
      classes. It is no confidence set: it shrinks as 1/M, sampling noise as :math:`1/\sqrt M`.
    - ``"hull"`` contains p exactly if every class that p allows got a vote.

    Args:
        counts: Whole numbers of votes, shape (N, K), each 0 or more. Sets have no class names:
            those of a data frame go to ``CredalClassifier.fit`` as ``classes=list(frame.columns)``.
        rule: One of those above. docs/few-votes.md shows how accurately models learned from each,
            the default among them, by the number of votes.
        s: Strength of the imprecise Dirichlet model, above 0: how many unseen votes to allow for.
            For ``"idm"``; under other rules only the default is taken, which does nothing there.
        confidence: In (0, 1). For both Clopper–Pearson rules and ``"total-variation"``, likewise.

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
        >>> from_votes([[1, 3]], rule="clopper-pearson-intervals").upper
        tensor([[0.8478, 0.9969]])
        >>> from_votes([[1, 3, 0]], rule="hull").upper
        tensor([[1., 1., 0.]])

        The names of a data frame's columns, for a classifier that predicts them.

        >>> import credalearn as cl
        >>> import polars as pl
        >>> frame = pl.DataFrame({"cat": [3, 0], "dog": [1, 4]})
        >>> clf = cl.CredalClassifier(epochs=1)
        >>> clf = clf.fit([[0.0], [1.0]], from_votes(frame), classes=list(frame.columns))
        >>> clf.classes_.tolist()
        ['cat', 'dog']
    """
    check_options(rule, s=s, confidence=confidence)
    votes, dtype = _as_votes(counts)
    total = votes.sum(1, keepdim=True)
    shares = torch.where(total > 0, votes / total, 1 / votes.shape[1])
    tally = Tally(counts=votes, total=total, shares=shares, s=s, confidence=confidence)
    return VOTE_RULES[rule](tally).to(dtype)


def _as_votes(counts: ArrayLike) -> tuple[Tensor, torch.dtype]:
    """Whole numbers in float64, which holds them to 2^53, and the dtype of the answer."""
    given = as_array(counts, name="counts")
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuO":
        try:
            given = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise CredalError(f"counts must be whole numbers; {error}.") from error
    elif isinstance(given, Tensor) and not (given.is_floating_point() or given.is_complex()):
        given = given.double()
    votes = as_floats(given, name="counts", ndim=2)
    require(
        (votes >= 0) & (votes == votes.round()),
        rule="votes must be whole numbers of 0 or more",
        remedy="give the counts, not shares (for shares: relax or CredalClassifier's soft labels)",
        counts=votes,
    )
    kept = isinstance(counts, Tensor | np.ndarray) and given is counts
    return votes.double(), votes.dtype if kept else torch.get_default_dtype()


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
        The sets, with the posterior as their ``reference``. With 0 votes a set contains all
        distributions.

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
