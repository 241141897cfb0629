"""One model in training: its batches, steps, losses and checkpoints."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from credalearn.errors import TrainingError
from credalearn.labels.soft import taught_labels
from credalearn.sets import CredalSet
from credalearn.train._processes import all_or_none, rank, same_buffers, summed, world_size, wrap
from credalearn.train._random import RandomStream
from credalearn.train.checkpoint import describe_run, load_checkpoint, save_checkpoint
from credalearn.train.training import Recipe, Training

Forward = Callable[[Tensor], Tensor]  # from inputs to logits
_TAUGHT_AT_ONCE = 2000  # items: a ResNet-18's hidden layers take 2 GB for them


class Learner:
    """A model that the loop trains step by step, each operation run as Python comes to it."""

    unread_epochs = 0  # epochs that may still run on the device when their successor starts
    checkpoint_seconds = 0.0  # least time between two checkpoints: here, one after every epoch
    rate: Tensor | None = None  # learning rate, where recorded steps read it

    def __init__(self, training: Training) -> None:
        recipe = training.recipe
        self.training, self.network = training, training.network
        self.device = next(self.network.parameters()).device
        self.inputs, self.labels = training.inputs.to(self.device), training.labels.to(self.device)
        self.epoch_inputs, self.epoch_labels = self.inputs, [self.labels]
        self.epoch_kept = torch.ones(len(self.inputs), device=self.device)
        self.sizes = batch_sizes(len(self.inputs), recipe.batch_size)
        self.starts = list(accumulate(self.sizes, initial=0))
        steps = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        self.step_of_item = steps.to(self.device)
        self.random = RandomStream(self.device)
        self.teachers: list[Forward] = [x.to(self.device).eval() for x in training.teachers]
        self.listener = training.listener if rank() == 0 else None
        self.failure: TrainingError | None = None
        self.stopped = False
        self.optimizer = make_optimizer(self.network, recipe, rate=self.rate)
        self.losses = self._resume()
        self.epoch = self.num_saved = self.num_reported = len(self.losses)
        self.saved_at = time.monotonic()
        self.totals = torch.zeros(recipe.epochs, device=self.device)
        self.total = torch.zeros((), device=self.device)  # loss of this epoch, summed over items
        self.forward: Forward = wrap(
            self.network.train(),
            recipe,
            num_items=len(self.inputs),
            smallest_batch=self.sizes[-1],
            epochs_done=self.epoch,
        )

    @property
    def finished(self) -> bool:
        """Whether no epoch is left to start."""
        ended = self.stopped or self.failure is not None
        return ended or self.epoch >= self.training.recipe.epochs

    def begin_epoch(self) -> None:
        """Shuffle, augment and mix the items."""
        self.epoch_inputs, self.epoch_labels, self.epoch_kept = self.shuffled()
        self.total.zero_()

    def shuffled(self) -> tuple[Tensor, list[CredalSet], Tensor]:
        """This epoch's inputs; labels, two sets if mixed; and the first set's share of the loss."""
        training, random_state = self.training, self.training.recipe.random_state
        partners, kept = None, self.epoch_kept
        self.random.reseed(random_state, self.epoch + 1)  # 0 is for the first weights
        with self.random.active():
            order = torch.randperm(len(self.inputs))
            if self.device.type == "cuda":
                order = order.pin_memory()  # else the copy would wait for the steps before it
            order = order.to(self.device, non_blocking=True)
            inputs = self.inputs[order]
            if training.augment is not None:
                inputs = training.augment(inputs)
            if training.mix is not None:
                partners, kept = self._pairs()
                inputs, kept = training.mix(inputs, partners, kept)
        if world_size() > 1:  # dropout differs between processes, which have different items
            self.random.reseed(random_state, self.epoch + 1, 1 + rank())
        if training.teachers:
            return inputs, [self._taught(inputs)], kept
        labels = [self.labels[order]]
        if partners is not None:
            labels.append(self.labels[order[partners]])
        return inputs, labels, kept

    def _taught(self, inputs: Tensor) -> CredalSet:
        """Labels of the changed inputs from the teachers, in the precision of a training step."""
        batches = torch.split(inputs, _TAUGHT_AT_ONCE)
        with torch.no_grad(), autocast(self.training.recipe, self.device):
            logits = [torch.cat([each(some) for some in batches]) for each in self.teachers]
        return taught_labels(torch.cat(logits, 1).float().softmax(2))

    def _pairs(self) -> tuple[Tensor, Tensor]:
        """The partner of each item, itself for half of them, and how much each keeps."""
        own = torch.arange(len(self.inputs), device=self.device)
        others = torch.rand(len(own), device=self.device).argsort()
        partners = torch.where(torch.rand(len(own), device=self.device) < 0.5, own, others)
        # The same within a batch: its loss, whatever it is, is a mixture of two.
        kept = torch.rand(len(self.sizes), device=self.device)
        return partners, kept[self.step_of_item]

    def step(self, number: int) -> None:
        """Step ``number`` of this epoch: forward pass, loss, backward pass and update."""
        with self.random.active():
            inputs, labels, kept, epoch = self.batch(number)
            with autocast(self.training.recipe, self.device):
                logits = self.forward(inputs).float()
            values = [self.training.loss(logits, each, epoch) for each in labels]
            value = values[0] if len(values) == 1 else torch.lerp(values[1], values[0], kept)
            self.optimizer.zero_grad()
            # The mean of the processes' gradients is that of the whole batch, however it is split.
            share = len(inputs) * world_size() / self.sizes[number]
            (value if share == 1 else value * share).backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.total += value.detach() * len(inputs)

    def batch(self, number: int) -> tuple[Tensor, list[CredalSet], Tensor, int | Tensor]:
        """Inputs, labels, the share of the first ones, and the epoch: this process's part."""
        recipe = self.training.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate_at(self.epoch + number / len(self.sizes))
        start, size = self.starts[number], self.sizes[number]
        first, last = (size * each // world_size() for each in (rank(), rank() + 1))
        rows = slice(start + first, start + last)
        labels = [each[rows] for each in self.epoch_labels]
        return self.epoch_inputs[rows], labels, self.epoch_kept[start], self.epoch

    def end_epoch(self) -> None:
        """Read the losses that are known, write a checkpoint if one is due, and report."""
        self.keep_total()
        self.epoch += 1
        self.read_losses(self.epoch - self.unread_epochs)
        with all_or_none(self.device):
            if time.monotonic() - self.saved_at >= self.checkpoint_seconds:
                self.save()
            self.report()
        if self.training.stop is not None and self.failure is None:
            self.stopped = self.training.stop(self.epoch)

    def keep_total(self) -> None:
        """Note the loss of the epoch that ends."""
        self.totals[self.epoch] = summed(self.total)

    def read_losses(self, num_epochs: int) -> None:
        """Take the mean losses of the first epochs, up to one that is not finite."""
        while len(self.losses) < num_epochs and self.failure is None:
            epoch = len(self.losses)
            mean = float(self.totals[epoch]) / len(self.inputs)
            if math.isfinite(mean):
                self.losses.append(mean)
            else:
                recipe = self.training.recipe
                rate = max(recipe.rate_at(epoch), recipe.rate_at(epoch + 1))
                self.failure = TrainingError(
                    f"the loss became {mean} in epoch {epoch + 1} of {recipe.epochs}, at a "
                    f"learning rate of up to {rate:.3g}. To fix: lower learning_rate, add "
                    "warmup_epochs, or look for extreme values in the inputs."
                )

    def save(self) -> None:
        """Write a checkpoint after the epochs done, unless one is written already."""
        self.saved_at = time.monotonic()
        path, known = self.training.checkpoint, len(self.losses) == self.epoch
        if path is not None and rank() == 0 and known and self.num_saved < self.epoch:
            save_checkpoint(path, self.run, self.network, self.optimizer, self.losses)
            self.num_saved = self.epoch

    def report(self) -> None:
        """Tell the listener of the epochs whose loss is new."""
        of, items = self.training.recipe.epochs, len(self.inputs)
        while self.num_reported < len(self.losses):
            self.num_reported += 1
            if self.listener is not None:
                loss = self.losses[self.num_reported - 1]
                self.listener.epoch(self.num_reported, of=of, loss=loss, items=items)

    def finish(self) -> None:
        """Leave the network ready for use."""
        same_buffers(self.network)

    def _resume(self) -> list[float]:
        """Restore the checkpoint, if there is one; the losses of the epochs done."""
        path = self.training.checkpoint
        if path is None:
            return []
        self.run = describe_run(self.training)
        with all_or_none(self.device):
            losses = load_checkpoint(path, self.run, self.network, self.optimizer)
        if losses and self.listener is not None:
            self.listener.resumed(len(losses), of=self.training.recipe.epochs, source=str(path))
        return losses


def batch_sizes(num_items: int, batch_size: int) -> list[int]:
    """Sizes of an epoch's batches, nearly equal and falling, at most ``batch_size``."""
    num_steps = math.ceil(num_items / batch_size)
    if num_items < 2 * num_steps and batch_size > 1:  # one item breaks batch normalization
        num_steps = max(1, num_items // 2)
    size, larger = divmod(num_items, num_steps)
    return [size + (step < larger) for step in range(num_steps)]


def make_optimizer(network: nn.Module, recipe: Recipe, *, rate: Tensor | None = None) -> Optimizer:
    """The recipe's optimizer; with ``rate``, a tensor on a GPU, one whose steps can be recorded."""
    recorded = rate is not None
    fused, decay = True if recorded else None, recipe.weight_decay
    lr = recipe.learning_rate if rate is None else rate
    if recipe.optimizer == "sgd":
        momentum = recipe.momentum
        return SGD(network.parameters(), lr, momentum=momentum, weight_decay=decay, fused=fused)
    return Adam(network.parameters(), lr, weight_decay=decay, fused=fused, capturable=recorded)


def autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager[None]:
    """The precision of the forward pass that the recipe asks for on this device."""
    if recipe.precision == "bfloat16" or (recipe.precision == "auto" and device.type == "cuda"):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
