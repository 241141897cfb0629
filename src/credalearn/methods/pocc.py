"""The pessimistic–optimistic credal classifier, POCC (Wang and Chau, 2026), and its variants."""

from dataclasses import replace

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.errors import CredalError
from credalearn.methods.base import Method, hull_of_outputs
from credalearn.methods.softmax import ENSEMBLE_SIZE
from credalearn.sets import CredalSet
from credalearn.sets._checks import check_sets


def pocc_loss(pessimistic_logits: Tensor, optimistic_logits: Tensor, labels: CredalSet) -> Tensor:
    r"""Worst-case loss of one head plus best-case loss of the other, mean over items.

    .. math:: \frac1N \sum_i \max_{q \in Q_i} -q^\top \log p_-
              + \min_{q \in Q_i} -q^\top \log p_+

    Exact for every kind of set; the extreme target is a constant for the gradient. On precise
    labels it is the sum of two ordinary cross-entropies.

    Args:
        pessimistic_logits: Of the head trained on the worst case, shape (N, K).
        optimistic_logits: Of the head trained on the best case, shape (N, K).
        labels: One credal set per item.

    Returns:
        A scalar in nats.

    Raises:
        CredalError: If the labels are not sets, the logits not floating-point tensors, or the
            shapes do not match.

    Example:
        Both heads say 50/50, so every target in the set costs log 2 with either.

        >>> import torch
        >>> from credalearn import LowerBounds
        >>> pocc_loss(torch.zeros(1, 2), torch.zeros(1, 2), LowerBounds([[0.7, 0.0]]))
        tensor(1.3863)
    """
    check_sets(labels)
    for name, logits in (("pessimistic", pessimistic_logits), ("optimistic", optimistic_logits)):
        if not isinstance(logits, Tensor) or not logits.is_floating_point():
            got = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
            raise CredalError(
                f"{name}_logits must be a tensor of floating-point numbers; got {got}. To fix: "
                "give what the network returns."
            )
        if logits.shape != labels.lower.shape:
            raise CredalError(
                f"{name}_logits must have one row per label, shape {tuple(labels.lower.shape)}; "
                f"got {tuple(logits.shape)}."
            )
    # The cost −log p is −z plus a constant for each item, which cannot change which member is
    # extreme, since all sum to 1; and the worst case of −z is the best of z.
    worst = labels.best_target(pessimistic_logits).to(pessimistic_logits.dtype)
    best = labels.worst_target(optimistic_logits).to(optimistic_logits.dtype)
    return cross_entropy(pessimistic_logits, worst) + cross_entropy(optimistic_logits, best)


def two_heads(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """:func:`pocc_loss` of the pessimistic head 0 and the optimistic head 1 of logits (N, 2, K)."""
    return pocc_loss(logits[:, 0], logits[:, 1], labels)


def mean_of_two_heads(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    """Half of :func:`pocc_loss`: on precise labels a step of SGD then equals that of softmax."""
    return two_heads(logits, labels, epoch) / 2


def three_heads(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """The mean of three losses on logits (N, 3, K): worst case, best case, and the soft label."""
    # At the optimum of a relaxed label the pessimistic head learns the share of the top class with
    # the rest spread evenly, and the optimistic head learns the hard label. The votes for other
    # classes reach the network only through the third head.
    extremes = pocc_loss(logits[:, 0], logits[:, 1], labels)
    return (extremes + cross_entropy(logits[:, 2], labels.reference.to(logits.dtype))) / 3


POCC = Method(
    loss=two_heads, predictions=hull_of_outputs, num_heads=2, score="mmi", learns_sets=True
)
POCC_MEAN = replace(POCC, loss=mean_of_two_heads)
POCC_CENTER = replace(POCC, loss=three_heads, num_heads=3)
POCC_ENSEMBLE = replace(POCC, num_members=ENSEMBLE_SIZE)
