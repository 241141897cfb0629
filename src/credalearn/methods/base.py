"""What a method is: a number of heads, a loss on their logits, and predictions from them.

Shapes: N items, H heads, K classes.
"""

from typing import Protocol

from torch import Tensor

from credalearn.credal import CredalSet
from credalearn.predictions import CredalPredictions


class Method(Protocol):
    """A way to learn from credal labels; each is one file and a line in ``METHODS``.

    Example:
        >>> from credalearn.methods import METHODS
        >>> {name: method.num_heads for name, method in METHODS.items()}
        {'pocc': 2, 'softmax': 1}
    """

    @property
    def num_heads(self) -> int:
        """How many heads of K logits the network needs."""

    def loss(self, logits: Tensor, labels: CredalSet, epoch: int) -> Tensor:
        """Training loss of logits (N, H, K) in this epoch (from 0): a scalar."""

    def predictions(self, logits: Tensor) -> CredalPredictions:
        """What the trained network's logits (N, H, K) say about each item."""
