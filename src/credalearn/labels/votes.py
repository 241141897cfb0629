"""Votes into credal sets, by four rules.

Shapes: N items, K classes.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import beta
from torch import Tensor

from credalearn.credal import LowerBounds
from credalearn.credal.checks import as_floats, check_choice, require
from credalearn.errors import CredalError
from credalearn.labels.checks import check_range
from credalearn.labels.soft import relax_at

VoteRule = Literal["relax", "precise", "idm", "clopper-pearson"]

_NEEDS_A_VOTE = ("relax", "precise")


def from_votes(
    counts: ArrayLike, *, rule: VoteRule = "relax", s: float = 1.0, confidence: float = 0.95
) -> LowerBounds:
    r"""Credal labels from how many annotators chose each class, n out of :math:`M = \sum_k n_k`.

    ========================  ==================================================================
    rule                      lower bounds
    ========================  ==================================================================
    ``"relax"``               n_j/M for the top class j only (the paper); ties: the lowest index
    ``"precise"``             n/M for every class: the soft label itself
    ``"idm"``                 n/(M + s), the imprecise Dirichlet model (Walley, 1996)
    ``"clopper-pearson"``     one-sided lower limits at level (1 − confidence)/K for each class
    ========================  ==================================================================

    Only the last holds for few votes: for votes drawn from p, the set contains p with probability
    ``confidence`` or more (Clopper and Pearson, 1934, with Bonferroni's correction over classes).

    Args:
        counts: Whole numbers of votes, shape (N, K), each 0 or more.
        rule: One of the four above.
        s: Strength of the imprecise Dirichlet model, above 0: how many unseen votes to allow for.
        confidence: In (0, 1), for ``"clopper-pearson"``.

    Returns:
        The sets, with the vote shares as their ``reference``. An item without any vote is the set
        of all distributions (its reference uniform) under the last two rules.

    Raises:
        CredalError: If a count is negative, not whole or not finite, an option is out of range, or
            an item has no vote under ``"relax"`` or ``"precise"``.

    Example:
        Three of four chose the second class.

        >>> from_votes([[1, 3]]).lower
        tensor([[0.0000, 0.7500]])
        >>> from_votes([[1, 3]], rule="idm", s=1.0).lower
        tensor([[0.2000, 0.6000]])
        >>> from_votes([[1, 3]], rule="clopper-pearson").lower
        tensor([[0.0063, 0.1941]])
    """
    check_choice(rule, get_args(VoteRule), name="rule")
    check_range(0 < s < float("inf"), name="s", rule="above 0 and finite", value=s)
    check_range(0 < confidence < 1, name="confidence", rule="in (0, 1)", value=confidence)
    votes, dtype = _as_votes(counts)
    total = votes.sum(1, keepdim=True)
    if rule in _NEEDS_A_VOTE:
        require(
            total > 0,
            rule=f"every item needs a vote under rule {rule!r}",
            remedy="drop the item, or use rule 'idm' or 'clopper-pearson', which leave it open",
            counts=votes,
        )
    shares = torch.where(total > 0, votes / total, 1 / votes.shape[1])
    if rule == "relax":
        return relax_at(shares, votes.argmax(1)).to(dtype)
    if rule == "precise":
        lower = shares
    elif rule == "idm":
        lower = votes / (total + s)
    else:
        lower = _lower_limits(votes, total, confidence)
    return LowerBounds(lower, soft=shares).to(dtype)


def _as_votes(counts: ArrayLike) -> tuple[Tensor, torch.dtype]:
    """Whole numbers in float64, which holds them to 2^53, and the dtype of the answer."""
    given = counts if isinstance(counts, Tensor | np.ndarray) else np.asarray(counts)
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuO":
        try:
            given = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise CredalError(f"counts must be whole numbers; {error}.") from error
    elif isinstance(given, Tensor) and not given.is_floating_point():
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


def _lower_limits(counts: Tensor, total: Tensor, confidence: float) -> Tensor:
    """Clopper–Pearson's lower limit of each share, simultaneous over the classes, shape (N, K)."""
    level = (1 - confidence) / counts.shape[1]
    chosen, others = counts.cpu().double(), (total - counts).cpu().double()
    # Beta's first parameter must be positive; a class without votes has the limit 0.
    limits: Tensor = torch.from_numpy(
        beta.ppf(level, chosen.clamp(min=1).numpy(), (others + 1).numpy())
    )
    return torch.where(chosen > 0, limits, 0).to(counts)
