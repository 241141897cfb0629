"""One model to train: network, data, loss and recipe in one record.

Shapes: N items, H heads, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from credalearn.nets import Network
from credalearn.sets import CredalSet
from credalearn.train.augment import Augment
from credalearn.train.progress import Listener
from credalearn.train.recipe import Recipe

# Logits (N, H, K), labels and the epoch, a number or a scalar tensor on their device, to a scalar.
Loss = Callable[[Tensor, CredalSet, int | Tensor], Tensor]
Execution = Literal["eager", "recorded", "compiled"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """One model to train by :func:`~credalearn.train.train`.

    Args:
        network: Maps a batch of inputs to logits (N, H, K); trained in place on the device it is
            on. If torch.distributed joins several processes, all must give the same network, data
            and recipe.
        inputs: All inputs, shape (N, ...).
        labels: One credal set per input.
        loss: Maps logits, labels and the epoch (from 0) to a scalar, a mean over items.
        recipe: Training options.
        augment: Changes the inputs at random, again in each epoch.
        teach: Makes the labels of augmented inputs, in the place of ``labels``; of the same kind.
        checkpoint: File that keeps the state, written after each epoch; of recorded steps every two
            minutes and at the end. If it contains the state of this run, training continues from
            there. It stays when training ends.
        listener: Told after each epoch; of several processes, only that of the first.
        stop: Called after each epoch with the number of epochs done; training ends if it is true.
            For eager steps in one process.
        execution: How steps run. ``"eager"``: operation by operation, on any device.
            ``"recorded"``: each step is one CUDA graph, which lets several models share a GPU;
            network and loss must not make decisions on values. ``"compiled"``: recorded, with the
            layers of the backbone fused by torch.compile, which takes most of a minute once per
            machine and makes steps a sixth faster; where it fails, the layers stay as they are.
    """

    network: Network
    inputs: Tensor
    labels: CredalSet
    loss: Loss
    recipe: Recipe
    augment: Augment | None = None
    teach: Callable[[Tensor], CredalSet] | None = None
    checkpoint: Path | None = None
    listener: Listener | None = None
    stop: Callable[[int], bool] | None = None
    execution: Execution = "eager"
