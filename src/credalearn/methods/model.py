"""A trained model: a method, its networks, and what it learned from them afterwards.

Shapes: N items, M members or passes, H heads, D features, K classes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.modules.dropout import _DropoutNd

from credalearn.errors import CredalError
from credalearn.methods.base import Method, Outputs, State
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import Augment, Progress, Recipe, Training, seeded, train

_BATCH = 4096  # items at a time, but fewer of large ones:
_NUMBERS = 2**22  # 1365 images of 32 px, 27 of 224 px, whose hidden layers are the larger part


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Networks trained by one method, ready to predict.

    Args:
        method: The method.
        members: Its trained networks, one or several.
        state: What a post-hoc method learned from them; else empty.
        random_state: The random_state of the first member, which dropout at prediction starts from too.
        losses: Mean loss of each epoch of each member that was trained here.

    Example:
        >>> from torch import nn
        >>> from credalearn.methods import METHODS
        >>> network = Network(nn.Identity(), num_features=2, num_heads=2, num_classes=3)
        >>> Model(METHODS["pocc"], (network,), {}, random_state=0).predict(torch.zeros(4, 2))
        CredalPredictions(4 items, 3 classes, 2 vertices)
    """

    method: Method
    members: tuple[Network, ...]
    state: State
    random_state: int
    losses: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def fit(
        cls,
        method: Method,
        build: Callable[[], Network],
        inputs: Tensor,
        labels: CredalSet,
        recipe: Recipe,
        *,
        device: torch.device,
        augment: Augment | None = None,
        name: str = "model",
        checkpoint: Path | None = None,
        verbose: bool = False,
    ) -> "Model":
        """Train a method's networks, then learn what it learns from them afterwards.

        Args:
            method: What to train.
            build: Makes an untrained network; the random numbers it draws are the member's own.
            inputs: All inputs, shape (N, ...).
            labels: One credal set an input.
            recipe: How to train; member i has its random_state plus i.
            device: Where to train.
            augment: Changes the inputs at random, anew in each epoch.
            name: What progress calls it.
            checkpoint: File that keeps an unfinished run; several members number theirs.
            verbose: Show progress.
        """
        members, losses = [], []
        for number in range(method.num_members):
            own = replace(recipe, random_state=recipe.random_state + number)
            with seeded(device, own.random_state, 0):
                network = build().to(device)
            alone = method.num_members == 1
            path = checkpoint
            if checkpoint is not None and not alone:
                path = checkpoint.with_name(f"{checkpoint.stem}-{number}{checkpoint.suffix}")
            label = name if alone else f"{name} {number + 1}/{method.num_members}"
            progress = Progress(label) if verbose else None
            with progress or nullcontext():
                training = Training(
                    network=network,
                    inputs=inputs,
                    labels=labels,
                    loss=method.loss,
                    recipe=own,
                    augment=augment,
                    checkpoint=path,
                    listener=progress,
                )
                losses.append(tuple(train(training)))
            members.append(network)
        model = cls.from_members(method, members, inputs, labels, random_state=recipe.random_state)
        return replace(model, losses=tuple(losses))

    @classmethod
    def from_members(
        cls,
        method: Method,
        members: Sequence[Network],
        inputs: Tensor,
        labels: CredalSet,
        *,
        random_state: int,
    ) -> "Model":
        """A model on networks that are trained already; only post-hoc methods look at the data.

        Raises:
            CredalError: If there are not as many members, or heads, as the method needs.
        """
        for member in members:
            if member.dropout_rate != method.dropout:
                raise CredalError(
                    f"the members must have been trained with dropout {method.dropout}; one has "
                    f"{member.dropout_rate}. To fix: give networks of a method with that dropout."
                )
            if member.shape != (method.num_heads, labels.num_classes):
                raise CredalError(
                    f"the members must have {method.num_heads} heads of {labels.num_classes} "
                    f"classes; one has {member.shape[0]} of {member.shape[1]}. To fix: give "
                    "networks of a method with as many heads, trained on these classes."
                )
        if len(members) != method.num_members:
            raise CredalError(
                f"this method needs {method.num_members} trained members; got {len(members)}. To "
                f"fix: give {method.num_members}, each trained from a random_state of its own."
            )
        model = cls(method, tuple(members), {}, random_state)
        if method.post_hoc is None:
            return model
        return replace(model, state=method.post_hoc(model.outputs(inputs), labels))

    def predict(self, inputs: Tensor) -> CredalPredictions:
        """The predicted set of each input, on the CPU."""
        return self.method.predictions(self.outputs(inputs), self.state)

    def outputs(self, inputs: Tensor) -> Outputs:
        """What the networks say of ``inputs``, on the CPU, in batches."""
        size = items_at_once(inputs.shape[1:])
        batches = [self._batch_outputs(batch) for batch in torch.split(inputs, size)]
        return Outputs(
            torch.cat([each.logits for each in batches]),
            torch.cat([each.features for each in batches]),
        )

    def _batch_outputs(self, inputs: Tensor) -> Outputs:
        logits: list[Tensor] = []
        features: Tensor | None = None
        for member in self.members:
            device = next(member.parameters()).device
            member.eval()
            if self.method.num_passes > 1:  # normalization layers stay as they are
                for layer in member.modules():
                    if isinstance(layer, _DropoutNd):
                        layer.train()
            with torch.no_grad(), seeded(device, self.random_state, 0, 1), _whole_float32():
                for _ in range(self.method.num_passes):
                    found = member.features(inputs.to(device))
                    logits.append(member.logits(found).float().cpu())
                    features = found.float().cpu() if features is None else features
            member.eval()
        assert features is not None
        return Outputs(torch.stack(logits, 1), features)


def items_at_once(shape: Sequence[int]) -> int:
    """How many items of this shape the networks take together.

    What Monte-Carlo dropout says of an item depends on its place among them: the same items in
    batches of this size get the same answers.

    Example:
        >>> items_at_once((20,)), items_at_once((3, 224, 224))
        (4096, 27)
    """
    return max(1, min(_BATCH, _NUMBERS // max(1, math.prod(shape))))


@contextmanager
def _whole_float32() -> Iterator[None]:
    """Convolutions on a GPU in float32, where cuDNN would round their inputs to 10 bits (TF32)."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
