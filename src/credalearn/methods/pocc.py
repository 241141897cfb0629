"""The pessimistic–optimistic credal classifier, POCC (Wang and Chau, 2026).

Shapes: N items, K classes.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.credal import CredalSet
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions


def pocc_loss(pessimistic_logits: Tensor, optimistic_logits: Tensor, labels: CredalSet) -> Tensor:
    r"""Worst-case loss of one head plus best-case loss of the other, a mean over items.

    .. math:: \frac1N \sum_i \max_{q \in Q_i} -q^\top \log p_-
              + \min_{q \in Q_i} -q^\top \log p_+

    Exact for every kind of set; the extreme target is a constant for the gradient. On precise
    labels it is the sum of two ordinary cross-entropies.

    Args:
        pessimistic_logits: Of the head trained on the worst case, shape (N, K).
        optimistic_logits: Of the head trained on the best case, shape (N, K).
        labels: One credal set an item.

    Returns:
        A scalar in nats.

    Raises:
        CredalError: If the shapes do not fit.

    Example:
        Both heads say 50/50, so every target in the set costs log 2 with either.

        >>> import torch
        >>> from credalearn import LowerBounds
        >>> pocc_loss(torch.zeros(1, 2), torch.zeros(1, 2), LowerBounds([[0.7, 0.0]]))
        tensor(1.3863)
    """
    for name, logits in (("pessimistic", pessimistic_logits), ("optimistic", optimistic_logits)):
        if logits.shape != labels.lower.shape:
            raise CredalError(
                f"{name}_logits must have one row a label, shape {tuple(labels.lower.shape)}; "
                f"got {tuple(logits.shape)}."
            )
    # The cost −log p is −z plus a constant for each item, which cannot change which member is
    # extreme, since all sum to 1; and the worst case of −z is the best of z.
    worst = labels.best_target(pessimistic_logits).to(pessimistic_logits.dtype)
    best = labels.worst_target(optimistic_logits).to(optimistic_logits.dtype)
    return cross_entropy(pessimistic_logits, worst) + cross_entropy(optimistic_logits, best)


@dataclass(frozen=True, slots=True)
class Pocc:
    """Two heads on one backbone; the predicted set is the segment between them.

    The midpoint gives class and probabilities.

    Example:
        >>> import torch
        >>> Pocc().predictions(torch.zeros(1, 2, 2)).vertices
        tensor([[[0.5000, 0.5000],
                 [0.5000, 0.5000]]])
    """

    num_heads: int = 2

    def loss(self, logits: Tensor, labels: CredalSet, epoch: int) -> Tensor:  # noqa: ARG002
        """:func:`pocc_loss` of the two heads."""
        return pocc_loss(logits[:, 0], logits[:, 1], labels)

    def predictions(self, logits: Tensor) -> CredalPredictions:
        """The segment between the pessimistic head (vertex 0) and the optimistic one (vertex 1)."""
        return CredalPredictions.from_vertices(logits.softmax(2))
