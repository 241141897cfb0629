"""A trained model: a method, its networks, and what it learned from them afterwards."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.methods.base import Method, Outputs, State
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import seeded
from credalearn.train._linear import Inputs

_BATCH = 4096  # items at a time, but fewer large ones:
_NUMBERS = 2**22  # 1365 images of 32 px, 27 of 224 px, whose hidden layers take most memory


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Networks trained by one method, ready to predict.

    Args:
        method: The method.
        members: Its trained networks, one or several.
        state: What a post-hoc method learned from them; else empty.
        random_state: Random seed of dropout at prediction: that of the first member.

    Example:
        >>> from credalearn.methods import METHODS
        >>> network = Network(nn.Identity(), num_features=2, num_heads=2, num_classes=3)
        >>> Model(METHODS["pocc"], (network,), {}, random_state=0).predict(torch.zeros(4, 2))
        CredalPredictions(4 items, 3 classes, 2 vertices)
    """

    method: Method
    members: tuple[Network, ...]
    state: State
    random_state: int

    @classmethod
    def from_members(
        cls,
        method: Method,
        members: Sequence[Network],
        inputs: Inputs,
        labels: CredalSet,
        *,
        random_state: int,
    ) -> "Model":
        """A model on trained networks; post-hoc methods learn from the training data here."""
        wanted = (method.num_heads, labels.num_classes, method.dropout)
        for member in members:
            found = (*member.shape, member.dropout_rate)
            if found != wanted:
                raise CredalError(
                    "the members must have the (heads, classes, dropout) of the method and the "
                    f"labels, {wanted}; one has {found}."
                )
        if len(members) != method.num_members:
            raise CredalError(
                f"this method needs {method.num_members} trained members, each with another "
                f"random_state; got {len(members)}."
            )
        model = cls(method, tuple(members), {}, random_state)
        if method.post_hoc is None:
            return model
        return replace(model, state=method.post_hoc(model.outputs(inputs), labels))

    def predict(self, inputs: Inputs) -> CredalPredictions:
        """The predicted set of each input, on the CPU."""
        return self.method.predictions(self.outputs(inputs), self.state)

    def outputs(self, inputs: Inputs) -> Outputs:
        """Outputs of the networks for ``inputs``, on the CPU, computed in batches."""
        if not isinstance(inputs, Tensor):  # sparse: features would be dense
            logits = [member.sparse_logits(inputs).float() for member in self.members]
            return Outputs(torch.stack(logits, 1), torch.empty(inputs.shape[0], 0))
        size = max(1, min(_BATCH, _NUMBERS // max(1, math.prod(inputs.shape[1:]))))
        batches = [self._batch_outputs(batch) for batch in torch.split(inputs, size)]
        return Outputs(*map(torch.cat, zip(*batches, strict=True)))

    def _batch_outputs(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of every member and pass, and features of the first."""
        logits: list[Tensor] = []
        features: list[Tensor] = []
        one_pass = self.method.num_passes == 1
        for member in self.members:
            device = next(member.parameters()).device
            member.eval()
            dropping = nullcontext() if one_pass else _dropping(member, self.random_state)
            with torch.no_grad(), _whole_float32(), dropping:
                for _ in range(self.method.num_passes):
                    found = member.features(inputs.to(device))
                    logits.append(member.logits(found).float().cpu())
                    if not features:
                        features.append(found.float().cpu())
        return torch.stack(logits, 1), features[0]


@contextmanager
def _dropping(network: Network, random_state: int) -> Iterator[None]:
    """Leave dropout on, with one mask for all items of a pass; other layers stay as they are."""
    # Each batch draws the same masks: one per pass, whatever items it has.
    dropouts = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    layers = [layer for layer in network.modules() if isinstance(layer, dropouts)]
    hooks = [layer.register_forward_hook(_drop) for layer in layers]
    try:
        with seeded(torch.device("cpu"), random_state, 0, 1):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _drop(layer: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Multiply by the mask that the layer draws for one item, on the CPU: all devices agree."""
    layer.train()
    mask: Tensor = layer.forward(torch.ones(1, *output.shape[1:]))
    layer.eval()
    return output * mask.to(output)


@contextmanager
def _whole_float32() -> Iterator[None]:
    """Convolutions on a GPU in float32, where cuDNN would round their inputs to 10 bits (TF32)."""
    # cuDNN has no such option for a call: the process has it until the outputs are there.
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
