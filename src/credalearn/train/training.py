"""One model to train: network, data, loss and recipe in one record.

Shapes: N items, H heads, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from credalearn.nets import Network
from credalearn.sets import CredalSet
from credalearn.train.augment import Augment
from credalearn.train.progress import Listener
from credalearn.train.recipe import Recipe

# Logits (N, H, K), labels and the epoch, a number or a scalar tensor on their device, to a scalar.
Loss = Callable[[Tensor, CredalSet, int | Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """One model to train, by :func:`~credalearn.train.train` or side by side with others.

    Side by side (:func:`~credalearn.train.train_together`) network and loss must be recordable,
    without decisions on values.

    Args:
        network: Maps a batch of inputs to logits (N, H, K); trained in place on the device it is
            on. In several processes that torch.distributed joins, all must give the same network,
            data and recipe.
        inputs: All inputs, shape (N, ...); side by side they are on that device already.
        labels: One credal set an input, likewise.
        loss: Of logits, labels and the epoch (from 0), a scalar: a mean over items.
        recipe: How to train.
        augment: Changes the inputs at random, anew in each epoch.
        checkpoint: File that the state is kept in, after each epoch or, side by side, every two
            minutes and at the end. If it holds this run's state, training goes on from there; it
            stays when training ends.
        listener: Told after each epoch; of several processes, the first one's alone.
        compile: Side by side, let torch.compile fuse the backbone's layers: most of a minute once a
            machine, then steps that are a sixth faster. Where it fails, the layers stay as they
            are.

    Example:
        >>> import credalearn as cl
        >>> import torch
        >>> from credalearn.methods import METHODS
        >>> training = Training(
        ...     network=Network(torch.nn.Identity(), num_features=1, num_heads=2, num_classes=2),
        ...     inputs=torch.tensor([[-1.0], [1.0]]),
        ...     labels=cl.LowerBounds([[0.7, 0.0], [0.0, 0.9]]),
        ...     loss=METHODS["pocc"].loss,
        ...     recipe=Recipe(epochs=2),
        ... )
        >>> training.compile
        False
    """

    network: Network
    inputs: Tensor
    labels: CredalSet
    loss: Loss
    recipe: Recipe
    augment: Augment | None = None
    checkpoint: Path | None = None
    listener: Listener | None = None
    compile: bool = False
