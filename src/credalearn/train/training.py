"""One model to train: network, data, loss and recipe in one record."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from credalearn.nets import Network
from credalearn.sets import CredalSet
from credalearn.train.augment import Augment, Mix
from credalearn.train.progress import Listener
from credalearn.train.recipe import Recipe

# Logits (N, H, K), labels and the epoch, a number or a scalar tensor on their device, to a scalar.
Loss = Callable[[Tensor, CredalSet, int | Tensor], Tensor]
Execution = Literal["eager", "recorded", "compiled"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """One model to train by :func:`~credalearn.train.train`, in place and on its device.

    If torch.distributed joins several processes, all must give the same network, data and recipe.
    """

    network: Network  # maps inputs to logits (N, H, K)
    inputs: Tensor  # shape (N, ...)
    labels: CredalSet  # one set per input
    loss: Loss
    recipe: Recipe
    augment: Augment | None = None  # again in each epoch
    # Then half of the items are mixed with another one. The loss of a mixed item is the mixture of
    # the losses on both labels, which is exact for every kind of set: support functions add.
    mix: Mix | None = None
    # Labels of augmented and mixed inputs, of the kind of ``labels``.
    teach: Callable[[Tensor], CredalSet] | None = None
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
