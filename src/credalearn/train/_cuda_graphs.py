"""Steps recorded as CUDA graphs, for models that share a GPU.

A small network leaves most of a large GPU idle, because the host starts its kernels one by one.
Here a whole step (batch, forward pass, loss, backward pass, optimizer) is recorded once for each
size of batch and then replayed as one launch. Data, augmentation and losses stay on the device,
nothing in an epoch waits for the device, and each model has its own stream, so that several models
fill the GPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields

import torch
from torch import Tensor

from credalearn.errors import TrainingError
from credalearn.sets import CredalSet
from credalearn.sets._checks import map_tensors
from credalearn.train._learner import Learner
from credalearn.train._processes import world_size
from credalearn.train.checkpoint import state_tensors
from credalearn.train.training import Training

_WARM_UP_STEPS = 3  # in which libraries choose their algorithms and workspaces


class RecordedLearner(Learner):
    """A model whose steps are CUDA graphs on a stream of its own."""

    unread_epochs = 1  # the loss is read while the next epoch runs: the GPU never waits
    checkpoint_seconds = 120.0  # 90 MB per ResNet-18 with its momentum: a second for eight models

    def __init__(self, training: Training) -> None:
        device = next(training.network.parameters()).device
        if device.type != "cuda" or world_size() > 1:
            raise TrainingError(
                f"execution={training.execution!r} needs one process on a GPU; the network is on "
                f"{device}, in {world_size()} processes. To fix: execution='eager'."
            )
        self.rate: Tensor = torch.tensor(training.recipe.learning_rate, device=device)
        super().__init__(training)
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.ends: dict[int, torch.cuda.Event] = {}  # epoch: when its steps are done
        self.is_image = self.inputs.ndim == 4
        networks = (self.network, *training.teachers)
        if self.is_image:
            for each in networks:
                each.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        compiled = training.execution == "compiled"  # which predicts half again as fast
        self.forward, *self.teachers = [x.compiled() if compiled else x for x in networks]
        # What was loaded gets the memory order and the learning rate that the steps use.
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        for parameter, state in self.optimizer.state.items():
            for name, tensor in state.items():
                if isinstance(tensor, Tensor) and tensor.shape == parameter.shape:
                    state[name] = torch.empty_like(parameter).copy_(tensor)
        # What the recorded steps read and write.
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self.epoch_number = torch.zeros((), dtype=torch.int64, device=device)
        self.offsets = torch.arange(max(self.sizes), device=device)
        self.epoch_inputs = self.inputs.clone()
        mixed = training.mix is not None and not training.teachers
        self.epoch_labels = [map_tensors(self.labels, torch.clone) for _ in range(1 + mixed)]
        self.graphs = {} if self.finished else self._record()

    def begin_epoch(self) -> None:
        """Shuffle, augment and mix on the device, into the tensors that recorded steps read."""
        fast = self._fast_libraries() if self.teachers else nullcontext()
        with torch.cuda.stream(self.stream), fast:
            inputs, labels, kept = self.shuffled()
            self.epoch_inputs.copy_(inputs)
            self.epoch_kept.copy_(kept)
            for source, target in zip(labels, self.epoch_labels, strict=True):
                for each in fields(target):
                    kept_tensor = getattr(target, each.name)
                    if isinstance(kept_tensor, Tensor):
                        kept_tensor.copy_(getattr(source, each.name))
            self.total.zero_()
            self.place.zero_()
            self.epoch_number.fill_(self.epoch)

    def batch(self, number: int) -> tuple[Tensor, list[CredalSet], Tensor, int | Tensor]:
        """The next items, wherever in the epoch the recorded step is replayed."""
        rows = self.place + self.offsets[: self.sizes[number]]
        kept = self.epoch_kept.index_select(0, self.place)[0]
        self.place += self.sizes[number]
        inputs = self.epoch_inputs.index_select(0, rows)
        if self.is_image:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return inputs, [each[rows] for each in self.epoch_labels], kept, self.epoch_number

    def step(self, number: int) -> None:
        """Start step ``number`` of this epoch."""
        with torch.cuda.stream(self.stream):
            self.rate.fill_(self.training.recipe.rate_at(self.epoch + number / len(self.sizes)))
            self.graphs[self.sizes[number]].replay()

    def keep_total(self) -> None:
        """Note the loss once the steps of the epoch are done."""
        with torch.cuda.stream(self.stream):
            super().keep_total()
            self.ends[self.epoch] = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.ends[self.epoch].record(self.stream)

    def read_losses(self, num_epochs: int) -> None:
        """Wait for the first epochs, and take their mean losses."""
        end = self.ends.pop(num_epochs - 1, None)
        if end is not None:
            end.synchronize()
        super().read_losses(num_epochs)

    def save(self) -> None:
        """Wait for the epochs started, and write a checkpoint after them."""
        self.read_losses(self.epoch)
        super().save()

    def finish(self) -> None:
        """Wait for the last epoch, and leave the weights in the memory order of loaded ones."""
        self.save()
        self.report()
        self.network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]

    def _record(self) -> dict[int, torch.cuda.CUDAGraph]:
        """One graph per size of batch; weights and optimizer end as they were."""
        live = state_tensors(self.network, self.optimizer)
        before = {name: tensor.clone() for name, tensor in live.items()}
        torch.cuda.synchronize(self.device)  # what the steps read was written on another stream
        graphs: dict[int, torch.cuda.CUDAGraph] = {}
        pool = None
        with self._fast_libraries():
            for size in sorted(set(self.sizes), reverse=True):
                number = self.sizes.index(size)
                with torch.cuda.stream(self.stream):
                    for _ in range(_WARM_UP_STEPS):
                        self.place.zero_()
                        super().step(number)
                    self.optimizer.zero_grad()  # the graph must make gradients, not add to these
                graph = torch.cuda.CUDAGraph()
                # The graph draws from the generator that is the default when recording begins.
                with self.random.active(), torch.cuda.graph(graph, pool=pool, stream=self.stream):
                    super().step(number)
                pool = graph.pool()
                graphs[size] = graph
        torch.cuda.synchronize(self.device)
        for name, tensor in state_tensors(self.network, self.optimizer).items():
            # In place, as the graphs have its address; state of the optimizer starts at 0.
            tensor.copy_(before[name]) if name in before else tensor.zero_()
        torch.cuda.synchronize(self.device)
        return graphs

    @contextmanager
    def _fast_libraries(self) -> Iterator[None]:
        """Let cuDNN time its algorithms; where torch.compile fails, keep the layers as they are."""
        suppressed: nullcontext[None] = nullcontext()
        if self.training.execution == "compiled":
            from torch._dynamo import config  # takes seconds to import, and is needed nowhere else

            suppressed = config.patch(suppress_errors=True)
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = True
        try:
            with suppressed:
                yield
        finally:
            torch.backends.cudnn.benchmark = before
