"""One model on several devices: what the training loop needs under torchrun.

Every process has all the data and draws the same order and augmentation. Of each batch it takes
its own part, and DistributedDataParallel averages the gradients: the same batches, and the same
model, as in one process. Batch normalization sees the whole batch on GPUs (SyncBatchNorm); on CPUs,
for which torch has no such layer, and in layers that are not torch's own, the process's part.
"""

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from credalearn.errors import CredalError, TrainingError
from credalearn.train.training import Recipe

_SYNCHRONIZED = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def world_size() -> int:
    """How many processes train one model together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0; the first one writes files and shows progress."""
    return dist.get_rank() if world_size() > 1 else 0


def find_device(name: str) -> torch.device:
    """The device of this name; for ``"auto"`` a GPU where there is one, else the CPU."""
    wanted = name
    if name == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).item()  # "meta" is a device, but has no values
        return torch.device(wanted)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CredalError(
            f"device {name!r} is not available here: {error}. To fix: use 'auto'."
        ) from error


def own_gpu(device: str) -> torch.device:
    """The GPU of this process among those of its machine."""
    if device not in ("auto", "cuda"):
        raise CredalError(
            f"torchrun gives each process a GPU of its own; got device {device!r}. To fix: use "
            "'auto', and name the GPUs in CUDA_VISIBLE_DEVICES."
        )
    processes, gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
    if processes > gpus:
        raise CredalError(
            f"torchrun started {processes} processes here, and torch sees {gpus} GPU"
            f"{'s' * (gpus != 1)}. To fix: start one process per GPU, or use the device 'cpu'."
        )
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(own)
    return own


def tell(message: Any) -> None:
    """Send a message from the first process to the others, which wait for it in :func:`hear`."""
    if world_size() > 1:
        dist.broadcast_object_list([message], src=0, device=torch.device("cpu"))


def hear() -> Any:
    """Wait for a message from the first process; a RuntimeError means that it has ended."""
    messages: list[Any] = [None]
    dist.broadcast_object_list(messages, src=0, device=torch.device("cpu"))
    return messages[0]


def summed(value: Tensor) -> Tensor:
    """The sum of a tensor over all processes, in place."""
    if world_size() > 1:
        dist.all_reduce(value)
    return value


@contextmanager
def all_or_none(device: torch.device) -> Iterator[None]:
    """If one process stops inside, all do: none is left waiting for another."""
    if world_size() == 1:
        yield
        return
    failure: Exception | None = None
    try:
        yield
    except Exception as error:  # whatever it is, the others must hear of it
        failure = error
    stopped = int(summed(torch.tensor(int(failure is not None), device=device)))
    if failure is not None:
        raise failure
    if stopped:
        raise TrainingError(
            f"{stopped} of {world_size()} processes that train together stopped. To fix: look at "
            "their messages; all must see the same checkpoint, or none."
        )


def wrap(
    network: nn.Module, recipe: Recipe, *, num_items: int, smallest_batch: int, epochs_done: int
) -> nn.Module:
    """The network itself or, in several processes, a wrapper that averages its gradients."""
    if world_size() == 1:
        return network
    device = next(network.parameters()).device
    facts = {"items": num_items, "recipe": recipe, "epochs_done": epochs_done}
    everywhere: list[Any] = [None] * world_size()
    dist.all_gather_object(everywhere, facts)
    differ = [name for name in facts if any(each[name] != facts[name] for each in everywhere)]
    if differ:
        raise CredalError(
            "all processes must train the same model on the same data from the same checkpoint; "
            f"they differ in: {', '.join(differ)}. To fix: give each the same random_state, "
            "options, data and folder."
        )
    shared = _synchronized(network) if device.type == "cuda" else network
    alone = any(
        isinstance(x, _BatchNorm) and type(x) is not nn.SyncBatchNorm for x in shared.modules()
    )
    least = 2 if alone else 1  # batch normalization needs two items
    if smallest_batch < least * world_size():
        raise CredalError(
            f"each of {world_size()} processes must have {least} or more items of every batch; the "
            f"smallest batch has {smallest_batch}. To fix: start fewer processes, or use a larger "
            "batch_size or more items."
        )
    return DistributedDataParallel(shared)


def same_buffers(network: nn.Module) -> None:
    """Give all processes the first one's running statistics."""
    if world_size() > 1:
        for buffer in network.buffers():
            dist.broadcast(buffer, src=0)


def _synchronized(network: nn.Module) -> nn.Module:
    """A copy on the same parameters and buffers, with batch normalization over all processes."""
    # Torch's own layers alone: others, such as timm's, contain an activation and would lose it.
    tensors = [*network.parameters(), *network.buffers()]
    copied = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
    for module in list(copied.modules()):
        for name, child in module.named_children():
            if type(child) in _SYNCHRONIZED:
                convert: Any = nn.SyncBatchNorm.convert_sync_batchnorm  # torch leaves it untyped
                setattr(module, name, convert(child))
    return copied
