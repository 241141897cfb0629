"""The training loop, for one model or for several that take turns step by step.

All randomness comes from (random_state, epoch), so a run that is killed and resumed at the last
checkpoint ends with the same weights as one that was never interrupted: bit for bit on a CPU.
"""

import time
from collections.abc import Sequence
from threading import Event

import torch

from credalearn.errors import TrainingError
from credalearn.train._learner import Learner
from credalearn.train._processes import summed, world_size
from credalearn.train._threads import on_one_thread
from credalearn.train.training import Training

Outcome = list[float] | TrainingError
_LARGE_STEP = 2**23  # items of a batch times weights: 30 ms on one core


def train(trainings: Sequence[Training], *, deadline: float | None = None) -> list[Outcome]:
    """Train the networks in place: the mean losses of each one's epochs, or why it failed.

    After the ``deadline``, a time of ``time.monotonic()``, no epoch starts but the first.
    """

    def work(stopped: Event) -> list[Outcome]:
        learners = [_learner(training) for training in trainings]
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
            active = [learner for learner in active if not learner.finished]
            over = deadline is not None and time.monotonic() >= deadline
            if active and world_size() > 1:  # all stop after the same epoch
                over = bool(summed(torch.tensor(int(over), device=active[0].device)))
            if stopped.is_set() or over:
                break
        for learner in learners:
            learner.finish()
        return [learner.failure or learner.losses for learner in learners]

    return on_one_thread(work, unless=any(map(_needs_threads, trainings)))


def _needs_threads(training: Training) -> bool:
    """Whether a step is large enough to be shared by threads, or is not done by them at all."""
    size = min(len(training.inputs), training.recipe.batch_size)
    numbers = [each.numel() for each in training.network.parameters()]
    images = training.inputs.ndim > 2  # their weights are used many times
    on_gpu = next(training.network.parameters()).device.type != "cpu"
    return on_gpu or images or world_size() > 1 or size * sum(numbers) > _LARGE_STEP


def _learner(training: Training) -> Learner:
    if training.execution == "eager":
        return Learner(training)
    from credalearn.train._cuda_graphs import RecordedLearner  # for GPUs alone

    return RecordedLearner(training)
