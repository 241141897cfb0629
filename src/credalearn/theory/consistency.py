"""Whether votes could have come from a set: exact binomial tests of its bounds.

Shapes: N items, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from torch import Tensor

from credalearn._checks import check_number
from credalearn.errors import CredalError
from credalearn.sets.checks import as_floats, require

_ROUNDING = 1e-6  # a bound this near to 0 or 1 excludes nothing: float32 sums drift by as much

Floats = NDArray[np.float64]


def consistent(
    counts: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, level: float = 0.05
) -> Tensor:
    r"""Whether votes that had no part in making a set could have come from it, bool (N,).

    Votes :math:`n` out of :math:`m = \sum_k n_k`. Each class is tested at :math:`\alpha =`
    level/K, a half of it for each bound where both can be wrong (lower > 0 and upper < 1), all of
    it for the one otherwise. The set is rejected if, for any class,

    .. math:: P(\mathrm{Bin}(m, \ell_k) \le n_k) < \alpha \quad\text{or}\quad
              P(\mathrm{Bin}(m, u_k) \ge n_k) < \alpha.

    A set that holds the truth p is rejected with probability ``level`` or less: at
    :math:`p_k = \ell_k` the first event has probability at most α, since a p-value is never
    smaller than uniform, and a larger :math:`p_k` only raises :math:`n_k`; likewise the second at
    :math:`u_k`. Bonferroni's inequality adds up the classes. The tails are exact; of a set that
    is no box, such as a total-variation ball, only the box around it is tested.

    Args:
        counts: Votes held out, whole numbers, shape (N, K). Without a vote nothing is rejected.
        lower: Lower probabilities of the set, shape (N, K).
        upper: Upper probabilities, same shape.
        level: Largest share of right sets to reject, in (0, 1).

    Example:
        Nobody of four chose the first class. Of half that happens once in sixteen times, of 0.9
        once in ten thousand.

        >>> consistent([[0, 4], [0, 4]], [[0.5, 0.0], [0.9, 0.0]], [[1.0, 0.5], [1.0, 0.1]])
        tensor([ True, False])
    """
    low, high = _bounds(lower, upper)
    votes = _votes(counts, low.shape)
    total = votes.sum(1, keepdims=True)
    at_lower, at_upper = _levels(low, high, level)
    # At or beyond the mean a binomial tail holds a half or more (its median is next to its mean),
    # and no class is tested above a half: only the other cells need their tail, 2 to 7 % of them
    # on CIFAR-10H.
    rejected = np.zeros(low.shape, bool)
    for suspects, tail, bound, alpha in (
        ((votes < total * low) & (at_lower > 0), _at_most, low, at_lower),
        ((votes > total * high) & (at_upper > 0), _at_least, high, at_upper),
    ):
        of = np.broadcast_to(total, low.shape)[suspects]
        rejected[suspects] |= tail(votes[suspects], of, bound[suspects]) < alpha[suspects]
    return torch.from_numpy(~rejected.any(1))


def can_reject(
    num_votes: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, level: float = 0.05
) -> Tensor:
    """Whether any outcome of so many votes would reject the set in :func:`consistent`, bool (N,).

    With one or two votes most sets can never be rejected: that nothing was rejected then says
    nothing about them.

    Args:
        num_votes: Votes held out of each item, shape (N,).
        lower: Lower probabilities of the set, shape (N, K).
        upper: Upper probabilities, same shape.
        level: As of :func:`consistent`.

    Example:
        At least a half: all of four votes against it may happen, all of six may not.

        >>> can_reject([4, 6], [[0.5, 0.0], [0.5, 0.0]], [[1.0, 0.5], [1.0, 0.5]])
        tensor([False,  True])
    """
    low, high = _bounds(lower, upper)
    try:
        given = np.array(num_votes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CredalError(f"num_votes must be whole numbers, one an item; {error}.") from error
    if given.shape != low.shape[:1]:
        raise CredalError(f"num_votes must have shape {low.shape[:1]}; got {given.shape}.")
    total = _votes(given[:, None], (len(low), 1))
    at_lower, at_upper = _levels(low, high, level)
    all_of_them = np.broadcast_to(total, low.shape)
    # The outcomes farthest from the bounds: nobody for the class, and everybody.
    nobody = _at_most(np.zeros_like(low), all_of_them, low) < at_lower
    everybody = _at_least(all_of_them, all_of_them, high) < at_upper
    return torch.from_numpy(((nobody | everybody) & (total > 0)).any(1))


def votes_to_reject(lower: ArrayLike, upper: ArrayLike, *, level: float = 0.05) -> Tensor:
    r"""The fewest votes of which some outcome rejects the set, float64 (N,); inf where none can.

    The least m with :math:`(1 - \ell_k)^m < \alpha` or :math:`u_k^m < \alpha` for some class, α as
    in :func:`consistent`.

    Args:
        lower: Lower probabilities of the set, shape (N, K).
        upper: Upper probabilities, same shape.
        level: As of :func:`consistent`.

    Example:
        >>> votes_to_reject([[0.5, 0.0], [0.0, 0.0]], [[1.0, 0.5], [1.0, 1.0]])
        tensor([6., inf], dtype=torch.float64)
    """
    low, high = _bounds(lower, upper)
    at_lower, at_upper = _levels(low, high, level)
    fewest = np.full(low.shape, np.inf)
    # log 0 is −∞ and gives 0 votes and the one more; a bound that nothing tests has level 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        for alpha, log_share in ((at_lower, np.log1p(-low)), (at_upper, np.log(high))):
            needed = np.floor(np.log(alpha) / log_share) + 1
            fewest = np.where(alpha > 0, np.fmin(fewest, needed), fewest)
    return torch.from_numpy(fewest.min(1))


def _levels(lower: Floats, upper: Floats, level: float) -> tuple[Floats, Floats]:
    """The level of the test of each bound, 0 where the bound excludes nothing, twice (N, K)."""
    check_number(level, name="level", above=0, below=1)
    can_be_wrong = (lower > _ROUNDING, upper < 1 - _ROUNDING)
    # Of one class there is nothing to test; of more, no level is above a half.
    share = level / lower.shape[1] if lower.shape[1] > 1 else 0.0
    share_each = share / np.maximum(can_be_wrong[0].astype(np.float64) + can_be_wrong[1], 1)
    at_lower, at_upper = (np.where(wrong, share_each, 0.0) for wrong in can_be_wrong)
    return at_lower, at_upper


def _at_most(votes: Floats, total: Floats, share: Floats) -> Floats:
    """P(Bin(total, share) ≤ votes): the incomplete beta function, 1 where all voted so."""
    others = total - votes
    tail = betainc(np.maximum(others, 1), votes + 1, 1 - share)
    return np.where(others > 0, tail, 1.0)


def _at_least(votes: Floats, total: Floats, share: Floats) -> Floats:
    """P(Bin(total, share) ≥ votes), likewise; 1 where nobody did."""
    return _at_most(total - votes, total, 1 - share)


def _bounds(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    low = as_floats(lower, name="lower", ndim=2).double().cpu()
    high = as_floats(upper, name="upper", ndim=2).double().cpu()
    if low.shape != high.shape:
        raise CredalError(
            "lower and upper must share one shape (items, classes); "
            f"got {tuple(low.shape)} and {tuple(high.shape)}."
        )
    require(
        (low >= 0) & (low <= high + _ROUNDING) & (high <= 1 + _ROUNDING),
        rule="0 <= lower <= upper <= 1 must hold for every class",
        remedy="swap the bounds or clamp them",
        lower=low,
        upper=high,
    )
    return low.clamp(max=1).detach().numpy(), high.clamp(max=1).detach().numpy()


def _votes(counts: ArrayLike, shape: tuple[int, ...]) -> Floats:
    votes = as_floats(counts, name="counts", ndim=2).double().cpu()
    if tuple(votes.shape) != shape:
        raise CredalError(f"counts must have the shape of the bounds, {shape}; got {votes.shape}.")
    require(
        (votes >= 0) & (votes == votes.round()),
        rule="votes must be whole numbers of 0 or more",
        remedy="give the counts, not shares",
        counts=votes,
    )
    found: Floats = votes.detach().numpy()
    return found
