"""What a method is: pure functions and a few numbers, in one record.

Shapes: N items, M members or passes, H heads, D features, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import Loss

State = dict[str, Tensor]  # what a post-hoc method learns from a trained network


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What trained networks say of N items, without augmentation, in evaluation mode.

    Args:
        logits: Shape (N, M, H, K): of every member, or of every pass of a single one.
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
    """A way to learn from credal labels: a line in ``METHODS``, or given to ``CredalClassifier``.

    Args:
        loss: Training loss of logits (N, H, K), labels and the epoch (from 0): a scalar.
        predictions: What outputs, and the post-hoc state where there is one, say of each item.
        num_heads: Heads of K logits that a network needs.
        num_members: Networks, trained one after the other on seeds that follow each other.
        num_passes: Passes through a network at prediction, with dropout on where more than one.
        score: The uncertainty score that the method is known by, a key of ``SCORES``.
        dropout: Probability of dropping a feature: in every residual block of a backbone that has
            them (``places_dropout``), else before the heads.
        post_hoc: What is learned from the trained network's outputs on the training items and
            their labels, without training it further.

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
    post_hoc: Callable[[Outputs, CredalSet], State] | None = None

    @property
    def learns_sets(self) -> bool:
        """Whether it learns from a label's whole set, and not from its ``reference`` alone.

        The worst and the best case take a head each; one head has one distribution to learn.
        """
        return self.num_heads > 1


def hull_of_outputs(outputs: Outputs, state: State) -> CredalPredictions:  # noqa: ARG001
    """The hull of all heads of all members and passes; their mean for class and probabilities.

    Example:
        >>> import torch
        >>> hull_of_outputs(Outputs(torch.zeros(1, 5, 2, 3), torch.zeros(1, 8)), {})
        CredalPredictions(1 item, 3 classes, 10 vertices)
    """
    return CredalPredictions.from_vertices(outputs.logits.flatten(1, 2).softmax(2))


def dirichlet(concentration: Tensor) -> CredalPredictions:
    """A Dirichlet distribution (N, K) an item: its mean, which is its own set.

    Example:
        >>> import torch
        >>> dirichlet(torch.tensor([[3.0, 1.0]])).upper
        tensor([[0.7500, 0.2500]])
    """
    mean = concentration / concentration.sum(1, keepdim=True)
    return CredalPredictions(mean, mean, mean, concentration=concentration)
