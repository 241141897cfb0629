"""Plain softmax: cross-entropy on one distribution an item, one distribution predicted.

Shapes: N items, K classes.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.credal import CredalSet
from credalearn.predictions import CredalPredictions


@dataclass(frozen=True, slots=True)
class Softmax:
    """One head trained on each label's ``reference``; the predicted set is a single point.

    Example:
        >>> import torch
        >>> Softmax().predictions(torch.zeros(1, 1, 2)).score("mmi")
        tensor([0.])
    """

    num_heads: int = 1

    def loss(self, logits: Tensor, labels: CredalSet, epoch: int) -> Tensor:  # noqa: ARG002
        """Cross-entropy between the soft label that each set was made from and the head."""
        return cross_entropy(logits[:, 0], labels.reference.to(logits.dtype))

    def predictions(self, logits: Tensor) -> CredalPredictions:
        """The head's distribution as its own lower and upper bound."""
        return CredalPredictions.from_vertices(logits.softmax(2))
