"""Backbones: by name, a module, or a function that makes one."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch import nn

from credalearn.errors import CredalError
from credalearn.nets.mlp import MLP
from credalearn.nets.outside import PACKAGES, OutsideBackbone
from credalearn.nets.residual import ResNet18, WideResNet28x4
from credalearn.nets.weights import backbone_weights, load_weights, read_weights

Backbone = str | nn.Module | Callable[[], nn.Module]

# Each builds a backbone for inputs of a shape (without the items). A class that places dropout
# itself has ``places_dropout = True``, takes ``dropout`` and keeps it as an attribute.
BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "linear": partial(MLP, hidden=()),
    "mlp": MLP,
    "resnet18": ResNet18,
    "wrn-28-4": WideResNet28x4,
}

BACKBONE_NAMES = ", ".join(map(repr, (*BACKBONES, *(f"{package}:NAME" for package in PACKAGES))))


def known_backbone(name: object) -> bool:
    """Whether ``name`` names a backbone; for other packages, whether it has the right form."""
    if not isinstance(name, str):
        return False
    package, _, model = name.partition(":")
    return name in BACKBONES or (package in PACKAGES and model != "")


def check_backbone(backbone: object, weights: object, *, num_trained: int) -> None:
    """Reject what is no backbone, and one module for several networks: they would start alike."""
    name = type(backbone).__name__
    if isinstance(backbone, nn.Module) and num_trained > 1:
        raise CredalError(
            f"one {name} as backbone would start all {num_trained} networks of this method from "
            "the same weights, but an ensemble needs different ones. To fix: give a function that "
            f"makes a new module at each call, as in backbone=lambda: {name}(...)."
        )
    if not (known_backbone(backbone) or (callable(backbone) and not isinstance(backbone, str))):
        raise CredalError(
            f"backbone must be one of 'auto', {BACKBONE_NAMES} or a torch.nn.Module that returns "
            f"features, or a function that makes one; got {backbone!r}."
        )
    if weights is not None and not isinstance(backbone, str):
        raise CredalError(
            f"weights are for a backbone given by name; got weights={str(weights)!r} and {name}. "
            "To fix: load them into it yourself."
        )


def build_backbone(
    backbone: Backbone,
    input_shape: tuple[int, ...],
    *,
    dropout: float = 0.0,
    weights: str | Path | None = None,
) -> nn.Module:
    """A new backbone for items of this shape; a named one starts from the file, if there is one.

    Only backbones that place dropout themselves use it: ``Network`` puts that of others before the
    heads.
    """
    if not isinstance(backbone, str):
        made = copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()
        if not isinstance(made, nn.Module):
            raise CredalError(
                "a function as backbone must make a new torch.nn.Module at each call; got "
                f"{type(made).__name__}. To fix: backbone=lambda: Net()."
            )
        return made.cpu()
    check_backbone(backbone, weights, num_trained=1)
    path = None if weights is None else Path(weights)
    if backbone not in BACKBONES:
        return OutsideBackbone(backbone, input_shape, weights=path)
    build = BACKBONES[backbone]
    places_dropout = getattr(build, "places_dropout", False)
    built = build(input_shape, dropout=dropout) if places_dropout else build(input_shape)
    if path is not None:
        load_weights(built, backbone_weights(read_weights(path), "backbone."), source=path)
    return built
