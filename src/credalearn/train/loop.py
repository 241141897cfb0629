"""The training loop, for one model or for several that take turns step by step.

How a step is executed is the learner's part: operation by operation, or as a recorded CUDA graph.
All randomness comes from (random_state, epoch), so a run that is killed and resumed at the last
checkpoint ends with the same weights as one that was never interrupted: bit for bit on a CPU.

Where torch.distributed is initialized, all its processes train each model together.
"""

import time
from collections.abc import Sequence
from threading import Event

import torch

from credalearn.errors import TrainingError
from credalearn.train._cuda_graphs import RecordedLearner
from credalearn.train._learner import Learner
from credalearn.train._threads import on_one_thread
from credalearn.train.distributed import rank, summed, world_size
from credalearn.train.progress import Listener
from credalearn.train.training import Training

_LARGE_STEP = 2**23  # items of a batch times weights: 30 ms on one core


def train(
    trainings: Sequence[Training],
    *,
    listener: Listener | None = None,
    deadline: float | None = None,
) -> list[list[float] | TrainingError]:
    """Train the networks in place.

    Args:
        trainings: One or more. A training with a checkpoint continues from there.
        listener: Told how far the slowest model is, after each epoch of all models.
        deadline: Time of ``time.monotonic()`` after which no further epoch starts; one epoch is
            always trained. Then fewer losses than epochs are returned, and the checkpoints
            contain the state.

    Returns:
        For each training the mean loss of each epoch; or the error, where a loss was not finite,
        which does not stop the other models.

    Raises:
        TrainingError: If a checkpoint is damaged or belongs to another run, or a model cannot be
            executed as asked.
        CredalError: If several processes cannot share a training.
    """
    if any(_needs_threads(training) for training in trainings):
        return _train(trainings, listener, deadline, Event())
    return on_one_thread(lambda stopped: _train(trainings, listener, deadline, stopped))


def _needs_threads(training: Training) -> bool:
    """Whether a step is large enough to be shared by threads, or is not done by them at all."""
    size = min(len(training.inputs), training.recipe.batch_size)
    numbers = [each.numel() for each in training.network.parameters()]
    images = training.inputs.ndim > 2  # their weights are used many times
    on_gpu = next(training.network.parameters()).device.type != "cpu"
    return on_gpu or images or world_size() > 1 or size * sum(numbers) > _LARGE_STEP


def _train(
    trainings: Sequence[Training],
    listener: Listener | None,
    deadline: float | None,
    stopped: Event,
) -> list[list[float] | TrainingError]:
    """See :func:`train`; ends after an epoch if ``stopped`` is set."""
    learners = [_learner(training) for training in trainings]
    shown = _Shown(listener, learners)
    active = [learner for learner in learners if not learner.finished]
    while active:
        for learner in active:
            learner.begin_epoch()
        for number in range(max(len(learner.sizes) for learner in active)):
            for learner in active:
                if number < len(learner.sizes):
                    learner.step(number)
        for learner in active:
            learner.end_epoch()
            if learner.finished:  # at once: its losses are read, and others go on without it
                learner.finish()
        shown.update()
        active = [learner for learner in active if not learner.finished]
        if stopped.is_set() or (active and _is_over(deadline, active[0].device)):
            break
    for learner in learners:
        learner.finish()
    shown.update()
    return [learner.failure or learner.losses for learner in learners]


def _learner(training: Training) -> Learner:
    return Learner(training) if training.execution == "eager" else RecordedLearner(training)


def _is_over(deadline: float | None, device: torch.device) -> bool:
    """Whether the deadline of any process has passed: all stop after the same epoch."""
    passed = deadline is not None and time.monotonic() >= deadline
    if world_size() == 1:
        return passed
    return bool(summed(torch.tensor(int(passed), device=device)))


class _Shown:
    """Reports the slowest of the models to the listener of all."""

    def __init__(self, listener: Listener | None, learners: Sequence[Learner]) -> None:
        self.listener = listener if rank() == 0 else None
        self.learners = [learner for learner in learners if not learner.finished]
        self.num_shown = min((learner.epoch for learner in self.learners), default=0)
        begun = [learner for learner in learners if learner.epoch]
        if begun and self.listener is not None:
            first = min(begun, key=lambda learner: learner.epoch)
            others = f" and {len(begun) - 1} more" if len(begun) > 1 else ""
            source, of = f"{first.training.checkpoint}{others}", first.training.recipe.epochs
            self.listener.resumed(first.epoch, of=of, source=source)

    def update(self) -> None:
        """Report each epoch that all models with so many epochs have done."""
        while True:
            going = [
                learner
                for learner in self.learners
                if learner.failure is None and learner.training.recipe.epochs > self.num_shown
            ]
            slowest = min(going, key=lambda learner: len(learner.losses), default=None)
            if slowest is None or len(slowest.losses) <= self.num_shown:
                return
            self.num_shown += 1
            if self.listener is not None:
                of, loss = slowest.training.recipe.epochs, slowest.losses[self.num_shown - 1]
                items = sum(len(learner.inputs) for learner in going)
                self.listener.epoch(self.num_shown, of=of, loss=loss, items=items)
