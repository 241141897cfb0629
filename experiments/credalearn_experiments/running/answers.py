"""What trained networks say of images, each asked once where several runs are built on it.

Shapes: N images, M members, H heads, K classes.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from credalearn.methods import Model, Outputs
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions


@dataclass(slots=True)
class Answers:
    """Predictions, in which an ensemble takes the logits that its members have given already.

    Logits alone are kept, a megabyte for 10,000 images and two heads of ten classes: an ensemble is
    the hull of its members, and features would take 25 times as much.

    Example:
        >>> from torch import nn
        >>> from credalearn.methods import METHODS
        >>> network = Network(nn.Identity(), num_features=2, num_heads=1, num_classes=3)
        >>> model = Model(METHODS["softmax"], (network,), {}, seed=0)
        >>> Answers().predict(model, "test", torch.zeros(4, 2), shared=True)
        CredalPredictions(4 items, 3 classes, 1 vertex)
    """

    _logits: dict[tuple[Network, str], Tensor] = field(default_factory=dict)

    def predict(
        self, model: Model, place: str, images: Tensor, *, shared: bool
    ) -> CredalPredictions:
        """What a model predicts, the same as ``model.predict(images)``.

        Args:
            model: Networks and method.
            place: Name of the images, the same ones whenever one of the networks is asked.
            images: Shape (N, ...).
            shared: Whether others are built on the network, and its logits are to be kept.
        """
        if len(model.members) > 1:
            logits = [self._given(model, member, place, images) for member in model.members]
            outputs = Outputs(torch.cat(logits, 1), torch.empty(len(images), 0))
        else:
            outputs = model.outputs(images)
            if shared:
                self._logits[model.members[0], place] = outputs.logits
        return model.method.predictions(outputs, model.state)

    def forget_all_but(self, networks: Collection[Network]) -> None:
        """Drop what other networks gave."""
        held = set(networks)
        self._logits = {key: logits for key, logits in self._logits.items() if key[0] in held}

    def _given(self, model: Model, member: Network, place: str, images: Tensor) -> Tensor:
        """The logits of one member, shape (N, 1, H, K)."""
        if (member, place) not in self._logits:
            self._logits[member, place] = replace(model, members=(member,)).outputs(images).logits
        return self._logits[member, place]
