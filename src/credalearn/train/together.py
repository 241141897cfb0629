"""Several models trained side by side on one GPU, each step of each a single CUDA graph.

A small network leaves most of a large GPU idle, and the host that starts its kernels one by one is
the limit. Here a whole step (batch, forward, loss, backward, optimizer) is recorded once and then
replayed as one launch; the data, their augmentation, the learning rates and the losses stay on the
device; and every model has a stream of its own, so that the gaps of one are filled by the others.

The batches, the learning rates, the loss and the checkpoints are those of the plain loop
(:mod:`credalearn.train.loop`); the random numbers are others, from the same (random_state, epoch).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from credalearn.errors import TrainingError
from credalearn.train.learner import Learner
from credalearn.train.progress import Listener
from credalearn.train.training import Training

_SECONDS_BETWEEN_CHECKPOINTS = 120.0  # 90 MB a ResNet-18 with its momentum: a second for eight


def train_together(
    trainings: Sequence[Training],
    *,
    progress: Listener | None = None,
    deadline: float | None = None,
) -> list[list[float] | TrainingError]:
    """Train all networks in place; of each the mean loss of each epoch, or why it stopped.

    Args:
        trainings: One or more, all on the same GPU. Those with a checkpoint go on from there.
        progress: Told after each epoch of all.
        deadline: Time of ``time.monotonic()`` after which no epoch is started: the state is kept
            in the checkpoints, and fewer losses than epochs come back.

    Returns:
        One an entry of ``trainings``: the losses; or the error, where a loss was not finite, which
        does not stop the others.

    Raises:
        TrainingError: If there is no GPU, or a checkpoint is damaged or another run's.

    Example:
        >>> from torch import nn
        >>> import credalearn as cl
        >>> from credalearn.methods import METHODS
        >>> from credalearn.nets import Network
        >>> from credalearn.train import Recipe
        >>> def training(random_state, device):
        ...     network = Network(nn.Identity(), num_features=1, num_heads=1, num_classes=2)
        ...     return Training(
        ...         network=network.to(device),
        ...         inputs=torch.tensor([[-1.0], [1.0]], device=device),
        ...         labels=cl.precise([[0.7, 0.3], [0.1, 0.9]]).to(device),
        ...         loss=METHODS["softmax"].loss,
        ...         recipe=Recipe(epochs=2, random_state=random_state),
        ...     )
        >>> if torch.cuda.is_available():
        ...     first, second = train_together([training(0, "cuda"), training(1, "cuda")])
        ...     assert len(first) == len(second) == 2
    """
    device = trainings[0].inputs.device
    if device.type != "cuda":
        raise TrainingError(
            f"models are trained side by side on a GPU; the inputs are on {device}."
        )
    with _fastest_convolutions():
        learners = [Learner(training) for training in trainings]
        active = [learner for learner in learners if not learner.finished]
        if progress is not None:
            _tell_resumed(progress, learners)
        saved = time.monotonic()
        while active and (deadline is None or time.monotonic() < deadline):
            _one_epoch(active)
            # The epoch before is read while this one runs: the GPU never waits for the host.
            for learner in active:
                learner.read_losses(upto=learner.epoch - 1)
            active = [learner for learner in active if learner.failure is None]
            if progress is not None and active:
                _tell(progress, active)
            if time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                for learner in active:
                    learner.save()
                saved = time.monotonic()
            active = [learner for learner in active if not learner.finished]
        for learner in learners:
            learner.leave()
    return [learner.failure or learner.losses for learner in learners]


def _one_epoch(learners: list[Learner]) -> None:
    """Start the steps of all learners in turn; nothing waits for them to end."""
    for learner in learners:
        learner.start_epoch()
    for step in range(max(len(learner.sizes) for learner in learners)):
        for learner in learners:
            if step < len(learner.sizes):
                learner.step(step)
    for learner in learners:
        learner.end_epoch()


def _tell(progress: Listener, learners: list[Learner]) -> None:
    """Say how far the slowest is, and how many items all pass in an epoch."""
    slowest = min(learners, key=lambda learner: learner.epoch)
    if slowest.losses:
        items = sum(len(learner.training.inputs) for learner in learners)
        of = slowest.training.recipe.epochs
        progress.epoch(len(slowest.losses), of=of, loss=slowest.losses[-1], items=items)


def _tell_resumed(progress: Listener, learners: list[Learner]) -> None:
    """Say once, for all that were begun before, how far the slowest was."""
    begun = [learner for learner in learners if learner.epoch]
    if begun:
        slowest = min(begun, key=lambda learner: learner.epoch)
        others = f" and {len(begun) - 1} more" if len(begun) > 1 else ""
        source = f"{slowest.training.checkpoint}{others}"
        progress.resumed(slowest.epoch, of=slowest.training.recipe.epochs, source=source)


@contextmanager
def _fastest_convolutions() -> Iterator[None]:
    """Let cuDNN time its algorithms at the first step of each shape."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
