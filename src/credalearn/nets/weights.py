"""Weights to start from, read from a local file without running code from it."""

from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from credalearn.errors import CredalError

_ALONE = "save the state dict alone: torch.save(network.state_dict(), file)"


def read_weights(path: Path, *, part: str = "") -> dict[str, Tensor]:
    """The tensors of a state dict; from a saved classifier, this part of its first network."""
    if not path.is_file():
        raise CredalError(f"there is no file {path}. To fix: give the path of the state dict.")
    try:
        found: Any
        if path.suffix == ".safetensors":
            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file fails in a dozen ways, a hostile one in others
        raise CredalError(
            f"{path} is damaged or contains more than tensors, which is not read "
            f"({type(error).__name__}). To fix: get the file again, or {_ALONE}."
        ) from error
    if not isinstance(found, dict) or not all(isinstance(each, Tensor) for each in found.values()):
        kind = f"{type(found).__name__}, not the tensors of a state dict"
        raise CredalError(f"{path} contains {kind}. To fix: {_ALONE}.")
    weights, start = {str(name): tensor for name, tensor in found.items()}, f"member0.{part}"
    own = {name.removeprefix(start): x for name, x in weights.items() if name.startswith(start)}
    return own or weights


def load_weights(network: nn.Module, weights: dict[str, Tensor], *, source: Path) -> None:
    """Load these weights, which were read from ``source``; all of them must fit."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        why = shorten(str(error), 300)  # torch lists every tensor, a line each
        raise CredalError(
            f"the weights in {source} do not fit {type(network).__name__}: {why} To fix: give the "
            "state dict of this very network."
        ) from error
