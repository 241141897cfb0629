"""Weights to start from, read from a local file without running code from it."""

from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from credalearn.errors import CredalError


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a state dict, on the CPU, by name.

    Args:
        path: A ``.safetensors`` file, or what ``torch.save`` wrote of a state dict. Of the latter
            tensors alone are read: a file that holds other objects is refused.

    Raises:
        CredalError: If the file is missing, damaged or no state dict.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "weights.pt"
        >>> torch.save(nn.Linear(2, 3).state_dict(), path)
        >>> sorted(read_weights(path))
        ['bias', 'weight']
    """
    if not path.is_file():
        raise CredalError(f"there is no file {path}. To fix: name the state dict to read.")
    try:
        found: Any
        if path.suffix == ".safetensors":
            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file fails in a dozen ways, a hostile one in others
        raise CredalError(
            f"{path} is damaged or holds more than tensors, which is not read "
            f"({type(error).__name__}). To fix: get the file again, or save the state dict alone: "
            "torch.save(network.state_dict(), file)."
        ) from error
    if not isinstance(found, dict) or not all(isinstance(each, Tensor) for each in found.values()):
        raise CredalError(
            f"{path} holds {type(found).__name__}, not the tensors of a state dict. To fix: save "
            "the state dict alone: torch.save(network.state_dict(), file)."
        )
    return {str(name): tensor for name, tensor in found.items()}


def of_saved_model(weights: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """Of a model that credalearn saved, this part of its first network; other weights as they are.

    Example:
        >>> saved = {"member0.backbone.conv": torch.zeros(1), "member0.heads": torch.ones(1)}
        >>> of_saved_model(saved, "backbone."), list(of_saved_model({"conv": torch.zeros(1)}, "x."))
        ({'conv': tensor([0.])}, ['conv'])
    """
    start = f"member0.{part}"
    own = {name.removeprefix(start): x for name, x in weights.items() if name.startswith(start)}
    return own or weights


def load_weights(
    network: nn.Module, weights: dict[str, Tensor], *, source: Path, hint: str = ""
) -> None:
    """Give ``network`` these weights, every one of them.

    Args:
        network: What is given them.
        weights: By name.
        source: Named where they do not fit.
        hint: What else may be to do then.

    Raises:
        CredalError: If a tensor is missing, of another shape, or has no place.

    Example:
        >>> layer = nn.Linear(1, 1)
        >>> weights = {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}
        >>> load_weights(layer, weights, source=Path("weights.pt"))
        >>> layer(torch.tensor([[3.0]])).item()
        7.0
    """
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        why = shorten(str(error), 300)  # torch lists every tensor, a line each
        raise CredalError(
            f"the weights in {source} do not fit {type(network).__name__}: {why} To fix: name the "
            f"state dict of this very network{hint}."
        ) from error
