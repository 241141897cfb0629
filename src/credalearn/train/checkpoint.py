"""Checkpoints: weights, optimizer, losses and a description of the run, in one safetensors file."""

import hashlib
import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from credalearn._tensors import by_part, damaged, digest_of, read_tensors, write_tensors
from credalearn.errors import CredalError, TrainingError
from credalearn.train.training import Training

Described = dict[str, object]  # whatever decides the outcome of a run
_DELETE = "delete it; training then starts over"


class CheckpointError(TrainingError):
    """A checkpoint that training cannot continue from."""


def describe_run(training: Training) -> Described:
    """Recipe, functions and device of a run in words, network and data as digests."""
    network, inputs, labels = training.network, training.inputs, training.labels
    names = [each.name for each in fields(labels)]
    parts = {name: x for name in names if (x := getattr(labels, name)) is not None}
    return {
        **asdict(training.recipe),
        "method": _name(training.loss),
        "augment": None if training.augment is None else _name(training.augment),
        "mix": None if training.mix is None else _name(training.mix),
        "device": next(network.parameters()).device.type,
        "network": hashlib.sha256(repr(network).encode()).hexdigest(),  # layers without weights too
        "first weights": digest_of(network.state_dict()),
        "inputs": f"{tuple(inputs.shape)} {inputs.dtype} {digest_of({'inputs': inputs})}",
        "labels": f"{type(labels).__name__} {tuple(labels.shape)} {digest_of(parts)}",
    }


def state_tensors(network: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The tensors that training changes, by name: the live ones, not copies."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": x for name, x in state.items() if x is not None}
    return tensors


def save_checkpoint(
    path: Path, run: Described, network: nn.Module, optimizer: Optimizer, losses: list[float]
) -> None:
    """Write the state after ``len(losses)`` epochs of this run."""
    live = state_tensors(network, optimizer)
    tensors = {name: x.cpu() for name, x in live.items()}  # once, for the digest and the file
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    text = json.dumps(run, default=np.generic.item)  # parameter grids contain NumPy's numbers
    metadata = {"run": text, "digest": digest_of(tensors)}
    write_tensors(path, tensors, metadata=metadata, other=None)


def load_checkpoint(
    path: Path, run: Described, network: nn.Module, optimizer: Optimizer
) -> list[float]:
    """Restore network and optimizer; the losses of the epochs done, none if there is no file."""
    if not path.exists():
        return []
    tensors = _read_checkpoint(path, run)
    parts = by_part(tensors)
    network.load_state_dict(parts["network"])
    state = {int(index): each for index, each in by_part(parts["optimizer"]).items()}
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    return tensors["losses"].tolist()


def check_checkpoint(training: Training) -> None:
    """Raise CheckpointError if this training cannot continue from its checkpoint."""
    if training.checkpoint is not None and training.checkpoint.exists():
        _read_checkpoint(training.checkpoint, describe_run(training))


def _read_checkpoint(path: Path, run: Described) -> dict[str, Tensor]:
    """The tensors of a checkpoint that belongs to this run; else what differs."""
    if path.is_dir():
        raise TrainingError(f"{path} is a folder. To fix: name a file as checkpoint.")
    try:
        tensors, metadata = read_tensors(path, fix=_DELETE)
        there, digest = json.loads(metadata["run"]), metadata["digest"]
    except CredalError as error:
        raise CheckpointError(str(error)) from error
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of this version. To fix: {_DELETE}."
        ) from error
    differ = [name for name in run if there.get(name) != run[name]]
    if differ:
        digests = ("network", "first weights", "inputs", "labels")
        listed = ", ".join(
            name if name in digests else f"{name} ({there.get(name)!r} there, {run[name]!r} here)"
            for name in differ
        )
        hint = "delete it or name another checkpoint"
        if differ == ["first weights"]:
            hint = "seed torch before you build the backbone, or load the weights that it had"
        raise CheckpointError(
            f"{path} belongs to another run: {listed} differ. To fix: {hint}; in cross-validation "
            "use none, since every fold is a run of its own."
        )
    if digest != digest_of(tensors):  # a flipped bit would only make the weights wrong
        raise CheckpointError(str(damaged(path, "its content has changed", fix=_DELETE)))
    return tensors


def _name(function: object) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
