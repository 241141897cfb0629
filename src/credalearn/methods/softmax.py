"""Softmax: cross-entropy on one distribution per item; and two methods that repeat its network."""

from dataclasses import replace

from torch import Tensor
from torch.nn.functional import cross_entropy

from credalearn.methods.base import Method, hull_of_outputs
from credalearn.sets import CredalSet

ENSEMBLE_SIZE = 5


def softmax_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """Cross-entropy between each label's ``reference`` and the one head of logits (N, 1, K)."""
    return cross_entropy(logits[:, 0], labels.reference.to(logits.dtype))


# The predicted set is a single point: lower = probs = upper.
SOFTMAX = Method(loss=softmax_loss, predictions=hull_of_outputs)

# Deep ensemble (Lakshminarayanan, Pritzel and Blundell, 2017): the hull of five networks.
DEEP_ENSEMBLE = replace(SOFTMAX, num_members=ENSEMBLE_SIZE, score="mutual-information")

# Monte-Carlo dropout (Gal and Ghahramani, 2016): the hull of five passes with dropout left on.
# Each drops the same features of every item, so that the prediction for an item does not depend on
# other items. ``Method.dropout`` says where.
MC_DROPOUT = replace(SOFTMAX, num_passes=5, score="mutual-information", dropout=0.3)
