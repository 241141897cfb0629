"""A small training that is always the same, for tests of the loop."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import Recipe, Training, seeded, train

CPU = torch.device("cpu")


def noisy() -> nn.Module:
    """A backbone with its own randomness and running statistics, which a resume must restore."""
    first = (nn.Linear(3, 8), nn.BatchNorm1d(8))
    return nn.Sequential(*first, nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8))


class Heard:
    """A listener that keeps what it receives, and stops training after an epoch."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.epochs: list[tuple[int, int, float, int]] = []
        self.done_before: list[int] = []

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        self.epochs.append((number, of, loss, items))
        if number == self.stop_after:
            raise KeyboardInterrupt

    def resumed(self, done: int, *, of: int, source: str) -> None:
        self.done_before.append(done)


def small_training(recipe: Recipe, method: str = "pocc", **options: Any) -> Training:
    """Ninety-seven items of four classes, on the CPU."""
    with seeded(CPU, 5, 0):
        inputs = torch.randn(97, 3)
        labels = cl.from_votes(torch.randint(1, 5, (97, 4)))
        heads = METHODS[method].num_heads
        network = Network(noisy(), num_features=8, num_heads=heads, num_classes=4)
    loss = METHODS[method].loss
    parts: dict[str, Any] = {"inputs": inputs, "labels": labels, "loss": loss, **options}
    return Training(network=network, recipe=recipe, **parts)


class Watch(nn.Module):
    """A backbone that returns its inputs, and keeps them batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen.append(inputs)
        return inputs


def own_training(
    backbone: nn.Module, inputs: Tensor, recipe: Recipe, *, num_classes: int = 2, **options: Any
) -> Training:
    """A softmax training on the inputs that a backbone returns; by default all are of class 0."""
    network = Network(backbone, num_features=inputs.shape[1], num_heads=1, num_classes=num_classes)
    labels = cl.precise(torch.eye(num_classes)[:1].repeat(len(inputs), 1))
    parts: dict[str, Any] = {"labels": labels, "loss": METHODS["softmax"].loss, **options}
    return Training(network=network, inputs=inputs, recipe=recipe, **parts)


def losses_of(training: Training) -> list[float]:
    """The losses of a training alone, whose error is raised."""
    (end,) = train([training])
    if isinstance(end, cl.TrainingError):
        raise end
    return end


def run(
    recipe: Recipe, *, checkpoint: Path | None = None, stop_after: int | None = None
) -> dict[str, Tensor]:
    """The weights after training the small problem; an exception stops it after some epochs."""
    training = small_training(recipe, checkpoint=checkpoint, listener=Heard(stop_after))
    losses_of(training)
    return training.network.state_dict()


def same_weights(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether two state dicts are equal bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
