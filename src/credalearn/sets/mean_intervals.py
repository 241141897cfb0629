"""Credal sets that average the intervals of P people about one item."""

from dataclasses import dataclass
from typing import final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.sets._checks import as_floats, require, require_shape
from credalearn.sets._greedy import greedy
from credalearn.sets.base import CredalSet
from credalearn.sets.diameter import ENUMERATED_SPLITS, class_sets
from credalearn.sets.intervals import Intervals, middle, poured


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class MeanIntervals(CredalSet):
    r"""A batch of Minkowski averages :math:`Q = \{\sum_p w_p q_p : q_p \in Q_p\}` of boxes.

    The worst and the best case are the weighted means of those of the people's own boxes
    :math:`Q_p = \{q \in \Delta : \ell_p \le q \le u_p\}`, so that a loss on Q is the mean of their
    losses. The box of the mean bounds contains Q and is larger from four classes on.

    ``lower`` and ``upper`` have shape (N, P, K). The ``weight`` of each person (N, P) is equal if
    not given, and 0 where a person said nothing about an item, whose bounds are then ignored.

    Example:
        >>> import torch
        >>> sets = MeanIntervals([[[0.8, 0.0], [0.0, 0.0]]], [[[1.0, 1.0], [1.0, 1.0]]])
        >>> sets.lower, sets.diameter()
        (tensor([[0.4000, 0.0000]]), tensor([0.6000]))
    """

    person_lower: Tensor  # tightened, shape (N, P, K); 0 without a weight
    person_upper: Tensor
    share: Tensor  # of each person, shape (N, P), sums to 1

    def __init__(
        self, lower: "ArrayLike", upper: "ArrayLike", weight: "ArrayLike | None" = None
    ) -> None:
        low = as_floats(lower, name="lower", ndim=3).detach()
        high = as_floats(upper, name="upper", ndim=3).detach().to(low)
        weights = torch.ones_like(low[:, :, 0]) if weight is None else weight
        weights = as_floats(weights, name="weight", ndim=2).detach().to(low)
        require_shape(high, low.shape, name="upper, like lower,")
        require_shape(weights, low.shape[:2], name="weight, one per person,")
        require(
            (weights >= 0) & (weights.sum(1, keepdim=True) > 0),
            rule="weights must be 0 or more, and one person of each item must have one above 0",
            remedy="drop items that nobody said anything about",
            weight=weights,
        )
        has_weight = weights > 0
        boxes = Intervals(low[has_weight], high[has_weight])
        low, high = (
            torch.zeros_like(low).masked_scatter_(has_weight[:, :, None], each)
            for each in (boxes.lower, boxes.upper)
        )
        share = weights / weights.sum(1, keepdim=True)
        self._keep(person_lower=low, person_upper=high, share=share, soft=None)
        self._keep(lower=_mean(low, share), upper=_mean(high, share))

    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """The mean of everyone's own extreme."""
        people = (self.person_lower, self.person_upper, self.share)
        return greedy(_mean_poured, cost, *people, largest=largest)

    def center(self) -> Tensor:
        """The mean of the centers of the people's boxes, shape (N, K)."""
        return _mean(middle(self.person_lower, self.person_upper), self.share)

    def diameter(self) -> Tensor:
        """Largest total-variation distance between two members, shape (N,).

        Exact up to 12 classes, where every event is tried; beyond, an upper bound.
        """
        if self.num_classes > ENUMERATED_SPLITS:
            low, high = self.person_lower.sum(2), self.person_upper.sum(2)
            return (self.share * torch.minimum(1 - low, high - 1).clamp(min=0)).sum(1)
        upper = self._upper(class_sets(self.num_classes).to(self.lower).T)
        return (upper + upper.flip(1) - 1).amax(1).clamp(min=0)  # an event and its complement

    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        """Whether no event is too probable: all of them up to 12 classes, then single classes."""
        if self.num_classes > ENUMERATED_SPLITS:
            return ((q >= self.lower - tolerance) & (q <= self.upper + tolerance)).all(1)
        events = class_sets(self.num_classes).to(self.lower).T
        return (q @ events <= self._upper(events) + tolerance).all(1)

    def _upper(self, events: Tensor) -> Tensor:
        """Upper probabilities of events, 0/1 columns (K, E): the mean of everyone's, (N, E)."""
        total = torch.zeros(len(self), events.shape[1]).to(self.lower)
        people = (self.person_lower, self.person_upper, self.share[:, :, None])
        for low, high, share in zip(*(each.unbind(1) for each in people), strict=True):
            total += share * torch.minimum(high @ events, 1 - low @ (1 - events))
        return total


def _mean(values: Tensor, share: Tensor) -> Tensor:
    """The mean of what each person has (N, P, K), shape (N, K)."""
    return torch.einsum("np,npk->nk", share, values)


def _mean_poured(order: Tensor, lower: Tensor, upper: Tensor, share: Tensor) -> Tensor:
    """The mean of what :func:`poured` gives each person."""
    return _mean(poured(order[:, None].expand_as(lower), lower, upper), share)
