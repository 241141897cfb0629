"""Backbones by name."""

from collections.abc import Callable
from pathlib import Path

from torch import nn

from credalearn.errors import CredalError
from credalearn.nets.mlp import MLP
from credalearn.nets.outside import PACKAGES, OutsideBackbone
from credalearn.nets.resnet import ResNet18
from credalearn.nets.weights import load_weights, of_saved_model, read_weights
from credalearn.nets.wide_resnet import WideResNet28x4

# A backbone's name: what builds it for inputs of this shape (without the items). One that places
# dropout itself says so, ``places_dropout = True``, takes it as ``dropout`` and keeps it so.
BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "resnet18": ResNet18,
    "wrn-28-4": WideResNet28x4,
}

# What a message says of the names there are.
BACKBONE_NAMES = ", ".join(map(repr, (*BACKBONES, *(f"{package}:NAME" for package in PACKAGES))))


def known_backbone(name: object) -> bool:
    """Whether ``name`` names a backbone; of other packages' names, whether it is such a name.

    Example:
        >>> known_backbone("resnet18"), known_backbone("timm:resnet50"), known_backbone("vgg")
        (True, True, False)
    """
    if not isinstance(name, str):
        return False
    package, _, model = name.partition(":")
    return name in BACKBONES or (package in PACKAGES and model != "")


def build_backbone(
    name: str, input_shape: tuple[int, ...], *, dropout: float = 0.0, weights: Path | None = None
) -> nn.Module:
    """A backbone for inputs of one shape, untrained or with the weights of a file.

    Args:
        name: A key of ``BACKBONES``; or ``torchvision:NAME`` or ``timm:NAME``, a network of these
            packages without its classifier.
        input_shape: Of one item: (features,) or (channels, height, width).
        dropout: For backbones that place it themselves, between the convolutions of a block; the
            others ignore it, and ``Network`` puts it before the heads.
        weights: File of the state dict that it starts from: of a network of another package as
            published, of the others the backbone's own; or ``model.safetensors`` of a saved
            classifier with this backbone. Without it the weights are random. Nothing is downloaded.

    Raises:
        CredalError: If there is no such backbone, it does not take such inputs, or the weights are
            missing or do not fit.

    Example:
        >>> import torch
        >>> build_backbone("wrn-28-4", (1, 8, 8))(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 256])
    """
    if not known_backbone(name):
        raise CredalError(f"backbone must be one of {BACKBONE_NAMES}; got {name!r}.")
    if name not in BACKBONES:
        return OutsideBackbone(name, input_shape, weights=weights)
    build = BACKBONES[name]
    places_dropout = getattr(build, "places_dropout", False)
    backbone = build(input_shape, dropout=dropout) if places_dropout else build(input_shape)
    if weights is not None:
        found = of_saved_model(read_weights(weights), "backbone.")
        hint = f"; {name!r} is credalearn's own, others are torchvision:NAME and timm:NAME"
        load_weights(backbone, found, source=weights, hint=hint)
    return backbone
