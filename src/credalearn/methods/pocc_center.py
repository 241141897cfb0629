"""POCC with a third head on the soft label.

At the optimum of a relaxed label the pessimist learns the top class's share with the rest spread
evenly, and the optimist the hard label: what the other votes said reaches the network only through
a head that is trained on it.

Shapes: N items, K classes.
"""

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.methods.base import Method, hull_of_outputs
from credalearn.methods.pocc import pocc_loss
from credalearn.sets import CredalSet


def three_heads(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """The mean of the three heads' losses on logits (N, 3, K).

    Head 0 learns the worst case, head 1 the best, head 2 the label's ``reference`` (its soft label,
    or its center) by cross-entropy. A mean, not a sum: a larger sum drives the backbone too hard.

    Example:
        >>> import torch
        >>> from credalearn import LowerBounds
        >>> three_heads(torch.zeros(1, 3, 2), LowerBounds([[0.7, 0.0]]), 0)
        tensor(0.6931)
    """
    extremes = pocc_loss(logits[:, 0], logits[:, 1], labels)
    center = cross_entropy(logits[:, 2], labels.reference.to(logits.dtype))
    return (extremes + center) / 3


POCC_CENTER = Method(loss=three_heads, predictions=hull_of_outputs, num_heads=3, score="mmi")
