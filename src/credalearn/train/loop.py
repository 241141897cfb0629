"""The training loop: plain PyTorch, read from top to bottom.

All randomness comes from (random_state, epoch), so a run that is killed and resumed at the last finished
epoch ends with the same weights as one that was never interrupted: bit for bit on a CPU.

Where torch.distributed is initialized, all its processes train one model together
(:mod:`credalearn.train.distributed`).

Shapes: N items, H heads, K classes.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from credalearn.errors import TrainingError
from credalearn.sets import CredalSet
from credalearn.train.checkpoint import describe_run, load_checkpoint, save_checkpoint
from credalearn.train.distributed import (
    all_or_none,
    part,
    rank,
    same_buffers,
    summed,
    world_size,
    wrap,
)
from credalearn.train.recipe import Recipe
from credalearn.train.training import Loss, Training


def train(training: Training) -> list[float]:
    """Train the network in place; the mean loss of each epoch.

    Raises:
        TrainingError: If the loss is not finite, or the checkpoint is damaged or another run's.
        CredalError: If several processes cannot share this training.

    Example:
        >>> import credalearn as cl
        >>> from credalearn.nets import Network
        >>> def cross_entropy(logits, labels, epoch):
        ...     return -(labels.reference * logits[:, 0].log_softmax(1)).sum(1).mean()
        >>> training = Training(
        ...     network=Network(nn.Identity(), num_features=1, num_heads=1, num_classes=2),
        ...     inputs=torch.tensor([[-1.0], [1.0]]),
        ...     labels=cl.precise([[1.0, 0.0], [0.0, 1.0]]),
        ...     loss=cross_entropy,
        ...     recipe=Recipe(learning_rate=0.1),
        ... )
        >>> losses = train(training)
        >>> training.network(training.inputs)[:, 0].argmax(1)
        tensor([0, 1])
    """
    network, recipe, checkpoint = training.network, training.recipe, training.checkpoint
    device = next(network.parameters()).device
    inputs, labels = training.inputs.to(device), training.labels.to(device)
    optimizer = make_optimizer(network, recipe, recipe.learning_rate)
    losses: list[float] = []
    listener = training.listener if rank() == 0 else None
    if checkpoint is not None:
        run = describe_run(replace(training, inputs=inputs, labels=labels))
        with all_or_none(device):
            losses = load_checkpoint(checkpoint, run=run, network=network, optimizer=optimizer)
        if losses and listener is not None:
            listener.resumed(len(losses), of=recipe.epochs, source=str(checkpoint))
    network.train()
    wrapped = wrap(  # the network itself, unless several processes train it
        network,
        recipe,
        num_items=len(inputs),
        smallest_batch=batch_sizes(len(inputs), recipe.batch_size)[-1],
        epochs_done=len(losses),
    )
    for epoch in range(len(losses), recipe.epochs):
        with seeded(device, recipe.random_state, epoch + 1):  # 0 is for the first weights
            order = torch.randperm(len(inputs)).to(device)
            shuffled = inputs[order]
            if training.augment is not None:
                shuffled = training.augment(shuffled, None)
            with _own_dropout(device, recipe, epoch):
                mean = _epoch(
                    wrapped, shuffled, labels[order], training.loss, recipe, optimizer, epoch
                )
        check_loss(mean, recipe, epoch)
        losses.append(mean)
        with all_or_none(device):
            if checkpoint is not None and rank() == 0:
                save_checkpoint(
                    checkpoint, run=run, network=network, optimizer=optimizer, losses=losses
                )
            if listener is not None:
                listener.epoch(epoch + 1, of=recipe.epochs, loss=mean, items=len(inputs))
    same_buffers(network)
    return losses


@contextmanager
def seeded(device: torch.device, *numbers: int) -> Iterator[None]:
    """Random numbers inside come from ``numbers`` alone; outside, nothing changes.

    Example:
        >>> cpu = torch.device("cpu")
        >>> with seeded(cpu, 0, 1):
        ...     first = torch.rand(1)
        >>> with seeded(cpu, 0, 1):
        ...     torch.rand(1) == first
        tensor([True])
    """
    random_state = seed_from(*numbers)
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        torch.default_generator.manual_seed(random_state)  # torch.manual_seed would touch every GPU
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(random_state)
        yield


def seed_from(*numbers: int) -> int:
    """One random_state of 63 bits from several numbers, such that near numbers give unrelated ones.

    Example:
        >>> seed_from(0, 1) == seed_from(0, 1), seed_from(0, 1) == seed_from(1, 0)
        (True, False)
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def batch_sizes(num_items: int, batch_size: int) -> list[int]:
    """Sizes of an epoch's batches, nearly equal and falling, at most ``batch_size``.

    None is of one item, which would break batch normalization: then one more than asked is taken.

    Example:
        >>> batch_sizes(10, 4), batch_sizes(5, 2), batch_sizes(2, 1)
        ([4, 3, 3], [3, 2], [1, 1])
    """
    num_steps = math.ceil(num_items / batch_size)
    if num_items < 2 * num_steps and batch_size > 1:
        num_steps = max(1, num_items // 2)
    size, larger = divmod(num_items, num_steps)
    return [size + (step < larger) for step in range(num_steps)]


def check_loss(mean: float, recipe: Recipe, epoch: int) -> None:
    """Refuse to go on with a loss that is not finite."""
    if math.isfinite(mean):
        return
    rate = max(recipe.rate_at(epoch), recipe.rate_at(epoch + 1))
    raise TrainingError(
        f"the loss became {mean} in epoch {epoch + 1} of {recipe.epochs}, at a learning rate of "
        f"up to {rate:.3g}. To fix: lower learning_rate, add warmup_epochs, or look for extreme "
        "values in the inputs."
    )


def _epoch(
    network: nn.Module,
    inputs: Tensor,
    labels: CredalSet,
    loss: Loss,
    recipe: Recipe,
    optimizer: Optimizer,
    epoch: int,
) -> float:
    """One pass over the data as it stands, of each batch this process's part; the mean loss."""
    sizes = batch_sizes(len(inputs), recipe.batch_size)
    total = torch.zeros((), device=inputs.device)
    start = 0
    for step, size in enumerate(sizes):
        own = part(size, rank(), world_size())
        batch, count = slice(start + own.start, start + own.stop), own.stop - own.start
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(epoch + step / len(sizes))
        with autocast(recipe, inputs.device):
            logits = network(inputs[batch])
        value = loss(logits.float(), labels[batch], epoch)
        optimizer.zero_grad()
        # The mean of the processes' gradients is that of the whole batch, however it is parted.
        share = count * world_size() / size  # exactly 1 in one process
        (value * share).backward()
        optimizer.step()
        total += value.detach() * count
        start += size
    return float(summed(total)) / len(inputs)


def _own_dropout(device: torch.device, recipe: Recipe, epoch: int) -> AbstractContextManager[None]:
    """Random numbers that differ between processes, of which each has other items."""
    if world_size() == 1:
        return nullcontext()
    # From 1: zeros at the end would give the numbers that the order was drawn from.
    return seeded(device, recipe.random_state, epoch + 1, 1 + rank())


def make_optimizer(
    network: nn.Module, recipe: Recipe, rate: float | Tensor, *, recorded: bool = False
) -> Optimizer:
    """The recipe's optimizer, at this learning rate; ``recorded`` if its steps are, on a GPU."""
    decay, fused = recipe.weight_decay, True if recorded else None
    if recipe.optimizer == "sgd":
        momentum = recipe.momentum
        return SGD(network.parameters(), rate, momentum=momentum, weight_decay=decay, fused=fused)
    return Adam(network.parameters(), rate, weight_decay=decay, fused=fused, capturable=recorded)


def autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager[None]:
    """The precision of the forward pass that the recipe asks for on this device."""
    if _uses_bfloat16(recipe, device):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def _uses_bfloat16(recipe: Recipe, device: torch.device) -> bool:
    on_gpu = device.type == "cuda"
    return recipe.precision == "bfloat16" or (recipe.precision == "auto" and on_gpu)
