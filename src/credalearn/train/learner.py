"""One network in training on a GPU: its stream, its recorded steps, and what they work on.

A step is recorded once for each size of batch, after a few that are not: libraries choose their
algorithms and workspaces in these. Weights and optimizer are then put back as they were.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from credalearn.errors import TrainingError
from credalearn.sets import CredalSet
from credalearn.sets.checks import map_tensors
from credalearn.train.checkpoint import describe_run, load_checkpoint, save_checkpoint
from credalearn.train.loop import (
    autocast,
    batch_sizes,
    check_loss,
    make_optimizer,
    seed_from,
    seeded,
)
from credalearn.train.training import Training

_WARM_UP_STEPS = 3


class Learner:
    """One network in training: its stream, its recorded steps, and the tensors they work on."""

    def __init__(self, training: Training) -> None:
        self.training = training
        recipe, inputs = training.recipe, training.inputs
        self.device = inputs.device
        self.stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.order_random = torch.Generator(self.device)
        self.dropout_random = torch.Generator(self.device)
        self.sizes = batch_sizes(len(inputs), recipe.batch_size)
        self.ends: list[torch.cuda.Event] = []
        network = training.network.train()
        if inputs.ndim == 4:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.forward = network.compiled() if training.compile else network
        self.rate = torch.tensor(recipe.learning_rate, device=self.device)
        self.optimizer = make_optimizer(network, recipe, self.rate, recorded=True)
        self.losses: list[float] = []
        self.failure: TrainingError | None = None
        if training.checkpoint is not None:
            self.run = describe_run(training)
            self.losses = load_checkpoint(
                training.checkpoint, run=self.run, network=network, optimizer=self.optimizer
            )
            self._adopt_loaded_state()
        self.epoch = len(self.losses)
        # What the recorded steps read and write.
        steps = recipe.epochs * len(self.sizes)
        rates = [recipe.rate_at(step / len(self.sizes)) for step in range(steps)]
        self.rates = torch.tensor(rates, device=self.device)
        self.totals = torch.zeros(recipe.epochs, dtype=torch.float64, device=self.device)
        self.place = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.step_number = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.epoch_number = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.offsets = torch.arange(max(self.sizes), device=self.device)
        self.epoch_inputs = inputs.clone()
        self.epoch_labels = map_tensors(training.labels, torch.clone)
        self.graphs = {} if self.finished else self._record()

    @property
    def finished(self) -> bool:
        """Whether all epochs were started."""
        return self.epoch >= self.training.recipe.epochs

    def start_epoch(self) -> None:
        """Shuffle and augment on the device, and set the counters."""
        training = self.training
        random_state = seed_from(
            training.recipe.random_state, self.epoch + 1
        )  # 0 is for the first weights
        self.order_random.manual_seed(random_state)
        self.dropout_random.manual_seed(seed_from(training.recipe.random_state, self.epoch + 1, 1))
        with torch.cuda.stream(self.stream):
            count = len(training.inputs)
            order = torch.randperm(count, device=self.device, generator=self.order_random)
            shuffled = training.inputs[order]
            if training.augment is not None:
                shuffled = training.augment(shuffled, self.order_random)
            self.epoch_inputs.copy_(shuffled)
            _copy(training.labels[order], self.epoch_labels)
            self.place.zero_()
            self.step_number.fill_(self.epoch * len(self.sizes))
            self.epoch_number.fill_(self.epoch)

    def step(self, step: int) -> None:
        """Start one step of this epoch."""
        with torch.cuda.stream(self.stream):
            self.graphs[self.sizes[step]].replay()

    def end_epoch(self) -> None:
        """Mark the end of the epoch on the stream."""
        end = torch.cuda.Event()  # type: ignore[no-untyped-call]
        end.record(self.stream)
        self.ends.append(end)
        self.epoch += 1

    def read_losses(self, *, upto: int) -> None:
        """Take the mean losses of the first ``upto`` epochs, once these have run."""
        missing = upto - len(self.losses)
        if missing <= 0:
            return
        if self.failure is not None:
            return
        self.ends[missing - 1].synchronize()
        del self.ends[:missing]
        totals = self.totals[len(self.losses) : upto].tolist()
        for total in totals:
            mean = total / len(self.training.inputs)
            try:
                check_loss(mean, self.training.recipe, len(self.losses))
            except TrainingError as error:
                self.failure = error
                return
            self.losses.append(mean)
            if self.training.listener is not None:
                done, of = len(self.losses), self.training.recipe.epochs
                items = len(self.training.inputs)
                self.training.listener.epoch(done, of=of, loss=mean, items=items)

    def save(self) -> None:
        """Wait for the epochs started, and keep the state after them."""
        self.stream.synchronize()
        self.read_losses(upto=self.epoch)
        if self.failure is None and self.training.checkpoint is not None and self.graphs:
            save_checkpoint(
                self.training.checkpoint,
                run=self.run,
                network=self.training.network,
                optimizer=self.optimizer,
                losses=self.losses,
            )

    def leave(self) -> None:
        """Keep the state, and give the weights the memory order that loaded ones have.

        The order in which dropout draws follows it, so predictions do not tell the two apart.
        """
        self.save()
        self.training.network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]

    def _adopt_loaded_state(self) -> None:
        """Give what was loaded the memory order and the learning rate that the steps use."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        for parameter, state in self.optimizer.state.items():
            for name, tensor in state.items():
                if isinstance(tensor, Tensor) and tensor.shape == parameter.shape:
                    state[name] = torch.empty_like(parameter).copy_(tensor)

    def _work(self, size: int) -> None:
        """One step on the next ``size`` items: what is recorded."""
        recipe = self.training.recipe
        rows = self.place + self.offsets[:size]
        inputs = self.epoch_inputs.index_select(0, rows)
        if inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        self.rate.copy_(self.rates.index_select(0, self.step_number)[0])
        with autocast(recipe, self.device):
            logits = self.forward(inputs)
        value = self.training.loss(logits.float(), self.epoch_labels[rows], self.epoch_number[0])
        self.optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.totals.index_add_(0, self.epoch_number, value.detach().double()[None] * size)
        self.place += size
        self.step_number += 1

    def _record(self) -> dict[int, torch.cuda.CUDAGraph]:
        """A graph for each size of batch; weights and optimizer end as they were."""
        before = _snapshot(self.training.network, self.optimizer)
        torch.cuda.synchronize(self.device)  # what the steps read was written on another stream
        graphs: dict[int, torch.cuda.CUDAGraph] = {}
        pool = None
        for size in sorted(set(self.sizes), reverse=True):
            with (
                seeded(self.device, self.training.recipe.random_state),
                torch.cuda.stream(self.stream),
                _whether_compiled_or_not() if self.training.compile else nullcontext(),
            ):
                for _ in range(_WARM_UP_STEPS):
                    self.place.zero_()
                    self.step_number.zero_()
                    self._work(size)
            self.optimizer.zero_grad()  # the graph must make gradients, not add to these
            graph = torch.cuda.CUDAGraph()
            with (
                _dropout_from(self.dropout_random),
                torch.cuda.graph(graph, pool=pool, stream=self.stream),
            ):
                self._work(size)
            pool = graph.pool()
            graphs[size] = graph
        torch.cuda.synchronize(self.device)
        _restore(before, self.training.network, self.optimizer)
        self.totals.zero_()
        torch.cuda.synchronize(self.device)
        return graphs


def _copy(source: CredalSet, target: CredalSet) -> None:
    """Overwrite one batch of sets by another of the same kind and size."""
    kept = iter(_tensors(target))
    for tensor in _tensors(source):
        next(kept).copy_(tensor)


def _tensors(labels: CredalSet) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(labels, keep)
    return found


_State = tuple[dict[str, Tensor], dict[Tensor, dict[str, Tensor]]]


def _snapshot(network: nn.Module, optimizer: Optimizer) -> _State:
    weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    states = {
        parameter: {name: x.clone() for name, x in state.items() if isinstance(x, Tensor)}
        for parameter, state in optimizer.state.items()
    }
    return weights, states


def _restore(before: _State, network: nn.Module, optimizer: Optimizer) -> None:
    """Put back in place what a snapshot holds; state that was not there yet starts at 0."""
    weights, states = before
    for name, tensor in network.state_dict().items():
        tensor.copy_(weights[name])
    for parameter, state in optimizer.state.items():
        for name, tensor in state.items():
            if not isinstance(tensor, Tensor):
                continue
            kept = states.get(parameter, {}).get(name)
            tensor.zero_() if kept is None else tensor.copy_(kept)


def _whether_compiled_or_not() -> AbstractContextManager[None]:
    """Go on with the layers as they are where torch.compile fails; torch logs why."""
    from torch._dynamo import config  # seconds, and needed nowhere else

    suppressed: AbstractContextManager[None] = config.patch(suppress_errors=True)
    return suppressed


@contextmanager
def _dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Record dropout as drawing from this generator: each model's own, seeded anew each epoch."""
    own = torch.cuda.default_generators[generator.device.index or 0]
    before = own.graphsafe_get_state()
    own.graphsafe_set_state(generator.graphsafe_get_state())
    try:
        yield
    finally:
        own.graphsafe_set_state(before)
