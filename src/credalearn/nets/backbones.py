"""Backbones: by name, a module, or a function that makes one; and files of weights for them."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.network import MLP, Network
from credalearn.nets.residual import ResNet18, WideResNet28x4
from credalearn.nets.standardize import Standardize

_ALONE = "save the state dict alone: torch.save(network.state_dict(), file)"

Backbone = str | nn.Module | Callable[[], nn.Module]

# Each builds a backbone for inputs of a shape (without the items). A class that places dropout
# itself has ``places_dropout = True``, takes ``dropout`` and keeps it as an attribute; ``Network``
# puts that of others before the heads.
BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "linear": partial(MLP, hidden=()),
    "mlp": MLP,
    "resnet18": ResNet18,
    "wrn-28-4": WideResNet28x4,
}

PACKAGES = ("torchvision", "timm")
BACKBONE_NAMES = ", ".join(map(repr, (*BACKBONES, *(f"{package}:NAME" for package in PACKAGES))))


def known_backbone(name: object) -> bool:
    """Whether ``name`` names a backbone; for other packages, whether it has the right form."""
    if not isinstance(name, str):
        return False
    package, _, model = name.partition(":")
    return name in BACKBONES or (package in PACKAGES and model != "")


def build_backbone(
    backbone: Backbone,
    input_shape: tuple[int, ...],
    *,
    dropout: float = 0.0,
    weights: str | Path | None = None,
) -> nn.Module:
    """A new backbone for items of this shape; a named one starts from the file, if there is one."""
    if not (known_backbone(backbone) or (callable(backbone) and not isinstance(backbone, str))):
        raise CredalError(
            f"backbone must be one of 'auto', {BACKBONE_NAMES} or a torch.nn.Module that returns "
            f"features, or a function that makes one; got {backbone!r}."
        )
    path = None if weights is None else Path(weights)
    if not isinstance(backbone, str):
        if path is not None:
            fix = f"load {path} into the {type(backbone).__name__} yourself"
            raise CredalError(f"weights are for a backbone given by name. To fix: {fix}.")
        made = copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()
        if not isinstance(made, nn.Module):
            got = type(made).__name__
            raise CredalError(f"a function as backbone must make a torch.nn.Module; got {got}.")
        return made.cpu()
    if backbone not in BACKBONES:
        from credalearn.nets._libraries import OutsideBackbone  # other packages, which few use

        return OutsideBackbone(backbone, input_shape, weights=path)
    build = BACKBONES[backbone]
    places_dropout = getattr(build, "places_dropout", False)
    built = build(input_shape, dropout=dropout) if places_dropout else build(input_shape)
    if path is not None:
        load_weights(built, read_weights(path, part="backbone."), source=path)
    return built


def build_network(
    backbone: Backbone,
    inputs: Tensor,
    *,
    num_heads: int,
    num_classes: int,
    dropout: float = 0.0,
    weights: str | Path | None = None,
) -> Network:
    """An untrained network that standardizes inputs like these, on the CPU."""
    built = build_backbone(backbone, tuple(inputs.shape[1:]), dropout=dropout, weights=weights)
    for layer in built.modules():
        if isinstance(layer, Standardize):
            layer.fit(inputs)
    shape = {"num_heads": num_heads, "num_classes": num_classes, "dropout": dropout}
    return Network.on(built, inputs[:2].cpu(), **shape)


def read_weights(path: Path, *, part: str = "") -> dict[str, Tensor]:
    """The tensors of a state dict; from a saved classifier, this part of its first network."""
    if not path.is_file():
        raise CredalError(f"there is no file {path}. To fix: give the path of the state dict.")
    try:
        safe = path.suffix == ".safetensors"
        found: Any = load_file(path) if safe else torch.load(path, "cpu", weights_only=True)
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
