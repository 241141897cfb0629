"""The state of an unfinished training run, on disk.

One safetensors file, written whole or not at all: weights, optimiser state, the losses so far and
the fingerprint of the run that it belongs to.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from credalearn.errors import TrainingError
from credalearn.files import whole_file
from credalearn.train.recipe import Recipe


def fingerprint(
    recipe: Recipe, loss: object, network: nn.Module, data: Iterable[Tensor | None]
) -> str:
    """A digest of what decides a run's outcome: recipe, loss, first weights, inputs, labels."""
    # A method's options show in its repr; two methods may have networks alike.
    name = f"{getattr(loss, '__qualname__', '')} {getattr(loss, '__self__', '')}"
    digest = hashlib.sha256(json.dumps([asdict(recipe), name], sort_keys=True).encode())
    for tensor in (*network.state_dict().values(), *data):
        if tensor is None:
            digest.update(b"none")
            continue
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def save_checkpoint(
    path: Path, *, run: str, network: nn.Module, optimizer: Optimizer, losses: list[float]
) -> None:
    """Write the state after ``len(losses)`` epochs of the run with this fingerprint."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": x for name, x in state.items() if x is not None}
    # Copies: tied weights share memory, which the format refuses.
    tensors = {name: x.detach().cpu().clone().contiguous() for name, x in tensors.items()}
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    with whole_file(path) as partial:
        save_file(tensors, partial, metadata={"run": run})


def load_checkpoint(
    path: Path, *, run: str, network: nn.Module, optimizer: Optimizer
) -> list[float]:
    """Restore network and optimiser; the losses of the epochs done, empty if there is no file.

    Raises:
        TrainingError: If the file is damaged or belongs to another run.
    """
    if not path.exists():
        return []
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise TrainingError(
            f"{path} is damaged ({error}). To fix: delete it; training then starts anew."
        ) from error
    if metadata.get("run") != run:
        raise TrainingError(
            f"{path} belongs to another run: its data, network, method or recipe differ from "
            "this one's. To fix: delete it, or name another checkpoint."
        )
    weights: dict[str, Tensor] = {}
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part == "network":
            weights[rest] = tensor
        elif part == "optimizer":
            index, _, key = rest.partition(".")
            state.setdefault(int(index), {})[key] = tensor
    network.load_state_dict(weights)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    losses: list[float] = tensors["losses"].tolist()
    return losses
