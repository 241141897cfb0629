"""POCC with a third head on the soft label.

At the optimum of a relaxed label the pessimistic head learns the share of the top class with the
rest spread evenly, and the optimistic head learns the hard label. The votes for other classes reach
the network only through a head that is trained on them.

Shapes: N items, K classes.
"""

from dataclasses import replace

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.methods.pocc import POCC, pocc_loss
from credalearn.sets import CredalSet


def three_heads(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """The mean of the three heads' losses on logits (N, 3, K).

    Head 0 learns the worst case, head 1 the best, head 2 the label's ``reference`` (its soft label,
    or its center) by cross-entropy. A mean, not a sum: the gradients of a sum are too large for the
    backbone.

    Example:
        >>> import torch
        >>> from credalearn import LowerBounds
        >>> three_heads(torch.zeros(1, 3, 2), LowerBounds([[0.7, 0.0]]), 0)
        tensor(0.6931)
    """
    extremes = pocc_loss(logits[:, 0], logits[:, 1], labels)
    center = cross_entropy(logits[:, 2], labels.reference.to(logits.dtype))
    return (extremes + center) / 3


POCC_CENTER = replace(POCC, loss=three_heads, num_heads=3)
