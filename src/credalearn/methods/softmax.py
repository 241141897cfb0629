"""Plain softmax: cross-entropy on one distribution per item, one distribution predicted.

The base of the deep ensemble, the Laplace bridge and decalibration.

Shapes: N items, K classes.
"""

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.methods.base import Method, hull_of_outputs
from credalearn.sets import CredalSet


def softmax_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """Cross-entropy between each label's ``reference`` and the one head of logits (N, 1, K).

    Example:
        >>> import torch
        >>> from credalearn import LowerBounds
        >>> softmax_loss(torch.zeros(1, 1, 2), LowerBounds([[0.7, 0.0]]), 0)
        tensor(0.6931)
    """
    return cross_entropy(logits[:, 0], labels.reference.to(logits.dtype))


# The predicted set is a single point: lower = probs = upper.
SOFTMAX = Method(loss=softmax_loss, predictions=hull_of_outputs)
