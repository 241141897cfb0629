"""A method: pure functions and a few numbers, in one record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import Loss

State = dict[str, Tensor]  # learned by a post-hoc method from a trained network


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Outputs of trained networks for N items, without augmentation, in evaluation mode.

    Args:
        logits: Of every member, or of every pass of a single one, shape (N, M, H, K).
        features: Of the first member's backbone, shape (N, D).

    Example:
        >>> import torch
        >>> Outputs(torch.zeros(5, 1, 2, 3), torch.zeros(5, 8)).logits.shape
        torch.Size([5, 1, 2, 3])
    """

    logits: Tensor
    features: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to learn from credal labels: an entry of ``METHODS``, or one of your own.

    Args:
        loss: Training loss, a scalar, of logits (N, H, K), labels and the epoch (from 0).
        predictions: Maps outputs, and the post-hoc state where there is one, to predictions.
        num_heads: Heads of K logits that a network needs.
        num_members: Networks, trained with consecutive random seeds.
        num_passes: Passes through a network at prediction; dropout is on if there are several.
        score: The uncertainty score that belongs to the method, a key of ``SCORES``.
        dropout: Probability of dropping a feature: in every residual block of a backbone that has
            them (``places_dropout``), else before the heads.
        learns_sets: Whether the loss depends on the whole set of a label, and not on its
            ``reference`` alone.
        post_hoc: Learns a state from the outputs of the trained network for the training items and
            from their labels, without training the network further.
        teachers: Softmax networks whose predictions are what the network learns: an
            ``"ensemble"``, or ``"cross-fitted"`` ones that each left out a fifth of the items.

    Example:
        >>> from credalearn.methods import METHODS
        >>> METHODS["pocc"].num_heads, METHODS["deep-ensemble"].num_members
        (2, 5)
    """

    loss: Loss
    predictions: Callable[[Outputs, State], CredalPredictions]
    num_heads: int = 1
    num_members: int = 1
    num_passes: int = 1
    score: str = "top-probability"
    dropout: float = 0.0
    learns_sets: bool = False
    post_hoc: Callable[[Outputs, CredalSet], State] | None = None
    teachers: Literal["ensemble", "cross-fitted"] | None = None


def hull_of_outputs(outputs: Outputs, state: State) -> CredalPredictions:  # noqa: ARG001
    """The hull of all heads of all members and passes; their mean gives class and probabilities."""
    return CredalPredictions.from_vertices(outputs.logits.flatten(1, 2).softmax(2))
