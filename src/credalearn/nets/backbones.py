"""Backbones by name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch import nn

from credalearn.errors import CredalError
from credalearn.nets.mlp import MLP
from credalearn.nets.outside import PACKAGES, OutsideBackbone
from credalearn.nets.residual import ResNet18, WideResNet28x4
from credalearn.nets.weights import backbone_weights, load_weights, read_weights

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


def build_backbone(
    name: str, input_shape: tuple[int, ...], *, dropout: float = 0.0, weights: Path | None = None
) -> nn.Module:
    """A backbone for inputs of one shape.

    Args:
        name: A key of ``BACKBONES``; or ``torchvision:NAME`` or ``timm:NAME``, a network of these
            packages without its classifier.
        input_shape: Of one item: (features,) or (channels, height, width).
        dropout: For backbones that place it themselves; the others ignore it, and ``Network`` puts
            it before the heads.
        weights: File with a state dict to start from, or ``model.safetensors`` of a saved
            classifier with this backbone; else weights are random.
    """
    if not known_backbone(name):
        raise CredalError(f"backbone must be one of {BACKBONE_NAMES}; got {name!r}.")
    if name not in BACKBONES:
        return OutsideBackbone(name, input_shape, weights=weights)
    build = BACKBONES[name]
    places_dropout = getattr(build, "places_dropout", False)
    backbone = build(input_shape, dropout=dropout) if places_dropout else build(input_shape)
    if weights is not None:
        found = backbone_weights(read_weights(weights), "backbone.")
        load_weights(backbone, found, source=weights)
    return backbone
