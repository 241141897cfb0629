"""How to train: the options, the learning rate at each step, and one model with its data."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from credalearn._options import check_options, option
from credalearn.errors import CredalError
from credalearn.nets import Network
from credalearn.sets import CredalSet
from credalearn.train.augment import Augment, Mix
from credalearn.train.progress import Listener

Optimizer = Literal["adam", "sgd"]
Schedule = Literal["cosine", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
Execution = Literal["eager", "recorded", "compiled"]
# Logits (N, H, K), labels and the epoch, a number or a scalar tensor on their device, to a scalar.
Loss = Callable[[Tensor, CredalSet, int | Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Training options, checked when made.

    The defaults of ``CredalClassifier`` and of the command are those of ``Recipe()``.

    Raises:
        CredalError: If a value is out of range.

    Example:
        Five epochs of warm-up, then a cosine from 0.1 to 0.

        >>> recipe = Recipe(epochs=200, optimizer="sgd", learning_rate=0.1, warmup_epochs=5)
        >>> [round(recipe.rate_at(epoch), 4) for epoch in (0, 2.5, 5, 102.5, 200)]
        [0.0, 0.05, 0.1, 0.05, 0.0]
    """

    epochs: int = option(50, "Passes over the training items.", least=1)
    batch_size: int = option(128, "Largest number of items per step.", least=1)
    optimizer: Optimizer = option("adam", "Optimizer: adam or sgd.")
    learning_rate: float = option(1e-3, "Largest learning rate.", above=0)
    momentum: float = option(0.9, "Momentum of SGD.", least=0)
    weight_decay: float = option(0.0, "L2 penalty in the gradient.", least=0)
    schedule: Schedule = option("cosine", "Course of the learning rate: cosine or constant.")
    warmup_epochs: float = option(0, "Epochs over which the learning rate first rises.", least=0)
    warmup_start: float = option(0.0, "Learning rate at the start of the warm-up.", least=0)
    final_learning_rate: float = option(0.0, "Learning rate at the end of the cosine.", least=0)
    precision: Precision = option(
        "auto", "Precision of the forward pass; auto is bfloat16 on a GPU, else float32."
    )
    random_state: int = option(0, "Random seed.", least=0)

    def __post_init__(self) -> None:
        check_options(self)
        for name, limit in (("final_learning_rate", "learning_rate"), ("warmup_epochs", "epochs")):
            value, most = getattr(self, name), getattr(self, limit)
            if value > most:
                raise CredalError(f"{name} must be at most {limit}, {most:g}; got {value:g}.")

    def rate_at(self, epoch: float) -> float:
        """Learning rate after this many epochs; a fraction is within an epoch."""
        if epoch < self.warmup_epochs:
            rise = epoch / self.warmup_epochs
            return self.warmup_start + rise * (self.learning_rate - self.warmup_start)
        if self.schedule == "constant":
            return self.learning_rate
        share = (epoch - self.warmup_epochs) / max(self.epochs - self.warmup_epochs, 1e-12)
        height = (1 + math.cos(math.pi * share)) / 2
        return self.final_learning_rate + height * (self.learning_rate - self.final_learning_rate)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """One model to train in place, on its device; the same in all processes that train it."""

    network: Network  # maps inputs to logits (N, H, K)
    inputs: Tensor  # shape (N, ...)
    labels: CredalSet  # one set per input
    loss: Loss
    recipe: Recipe
    augment: Augment | None = None  # again in each epoch
    # Then half of the items are mixed with another one. The loss of a mixed item is the mixture of
    # the losses on both labels, which is exact for every kind of set: support functions add.
    mix: Mix | None = None
    # Trained networks with one head whose probabilities for the augmented and mixed inputs are the
    # labels there, by ``taught_labels``, as ``labels`` are for the inputs as they are.
    teachers: tuple[Network, ...] = ()
    # Keeps the state, after each epoch; of recorded steps every two minutes and at the end. If it
    # contains the state of this run, training continues from there. It stays when training ends.
    checkpoint: Path | None = None
    listener: Listener | None = None  # called after each epoch, in the first of several processes
    # Called after each epoch with the number of epochs done; training ends if it is true. For eager
    # steps in one process.
    stop: Callable[[int], bool] | None = None
    # "eager": operation by operation. "recorded": each step is one CUDA graph, so that several
    # models share a GPU; network and loss must not make decisions on values. "compiled": recorded,
    # the layers of the backbone fused by torch.compile, which takes most of a minute once per
    # machine and makes steps a sixth faster; where that fails, they stay as they are.
    execution: Execution = "eager"
