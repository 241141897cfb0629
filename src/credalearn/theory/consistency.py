"""Whether votes could have come from a set: exact binomial tests of its bounds."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_number
from credalearn.guarantees._bounds import binomial_tail
from credalearn.sets._checks import as_floats, as_votes, require_bounds, require_shape

_ROUNDING = 1e-6  # a bound this near to 0 or 1 excludes nothing: float32 sums drift by as much


def consistent(
    counts: "ArrayLike", lower: "ArrayLike", upper: "ArrayLike", *, level: float = 0.05
) -> Tensor:
    r"""Whether held-out votes could have come from a set that was made without them, bool (N,).

    Votes :math:`n` out of :math:`m = \sum_k n_k`. Each class is tested at :math:`\alpha =` level/K,
    half of it per bound where both bounds can be wrong. The set is rejected if, for any class,
    :math:`P(\mathrm{Bin}(m, \ell_k) \le n_k) < \alpha` or :math:`P(\mathrm{Bin}(m, u_k) \ge n_k) <
    \alpha`, so a set that contains the true distribution is rejected with probability ``level`` or
    less (Bonferroni). The tails are exact; for a set that is not a box, the box around it is
    tested.

    Args:
        counts: Held-out votes, whole numbers, shape (N, K). Without a vote nothing is rejected.
        lower: Lower probabilities of the set, shape (N, K).
        upper: Upper probabilities, same shape.
        level: Largest share of correct sets to reject, in (0, 1).

    Example:
        >>> consistent([[0, 4], [0, 4]], [[0.5, 0.0], [0.9, 0.0]], [[1.0, 0.5], [1.0, 0.1]])
        tensor([ True, False])
    """
    low, high, at_lower, at_upper = _tested(lower, upper, level)
    votes = as_votes(counts).cpu().numpy()
    require_shape(votes, low.shape, name="counts")
    total = votes.sum(1, keepdims=True)
    # At or beyond the mean a binomial tail is a half or more, and no class is tested above a half:
    # only the other cells need their tail, 2 to 7 % of them on CIFAR-10H.
    rejected = np.zeros(low.shape, bool)
    # Too many votes for a class are too few for the others.
    for few, bound, alpha in ((votes, low, at_lower), (total - votes, 1 - high, at_upper)):
        suspects = (few < total * bound) & (alpha > 0)
        of = np.broadcast_to(total, low.shape)[suspects]
        rejected[suspects] |= binomial_tail(few[suspects], of, bound[suspects]) < alpha[suspects]
    return torch.from_numpy(~rejected.any(1))


def votes_to_reject(lower: "ArrayLike", upper: "ArrayLike", *, level: float = 0.05) -> Tensor:
    r"""The smallest number of votes that can reject the set, float64 (N,); inf where none can.

    The least m with :math:`(1 - \ell_k)^m < \alpha` or :math:`u_k^m < \alpha` for some class: if
    nobody votes for it, or everybody. With one or two votes most sets can never be rejected.
    Arguments and α as in :func:`consistent`.

    Example:
        >>> votes_to_reject([[0.5, 0.0], [0.0, 0.0]], [[1.0, 0.5], [1.0, 1.0]])
        tensor([6., inf], dtype=torch.float64)
    """
    low, high, at_lower, at_upper = _tested(lower, upper, level)
    fewest = np.full(low.shape, np.inf)
    # log 0 is −∞ and gives 0 votes and the one more; a bound that nothing tests has level 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        for alpha, log_share in ((at_lower, np.log1p(-low)), (at_upper, np.log(high))):
            needed = np.floor(np.log(alpha) / log_share) + 1
            fewest = np.where(alpha > 0, np.fmin(fewest, needed), fewest)
    return torch.from_numpy(fewest.min(1))


def _tested(lower: "ArrayLike", upper: "ArrayLike", level: float) -> list[np.ndarray]:
    """Both bounds, and the level of the test of each, 0 where it excludes nothing, all (N, K)."""
    check_number(level, name="level", above=0, below=1)
    given = {"lower": lower, "upper": upper}
    bounds = [as_floats(x, name=name, ndim=2).detach().double().cpu() for name, x in given.items()]
    require_bounds(*bounds, tolerance=_ROUNDING)
    low, high = (each.clamp(max=1).numpy() for each in bounds)
    can_be_wrong = (low > _ROUNDING, high < 1 - _ROUNDING)
    # A single class leaves nothing to test; with more, no level is above a half.
    share = level / low.shape[1] if low.shape[1] > 1 else 0.0
    share_each = share / np.maximum(can_be_wrong[0].astype(np.float64) + can_be_wrong[1], 1)
    return [low, high, *(np.where(wrong, share_each, 0.0) for wrong in can_be_wrong)]
