"""The backbone of a classifier: a name, a module, or a function that makes one."""

import copy
from collections.abc import Callable
from pathlib import Path

from torch import nn

from credalearn.errors import CredalError
from credalearn.nets import BACKBONE_NAMES, build_backbone, known_backbone

Backbone = str | nn.Module | Callable[[], nn.Module]


def check_backbone(backbone: object, weights: object, *, num_trained: int) -> None:
    """Reject anything else, and one module for several networks: they would start alike."""
    if isinstance(backbone, nn.Module) and num_trained > 1:
        name = type(backbone).__name__
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
            f"weights are for a backbone given by name; got weights={str(weights)!r} and "
            f"{type(backbone).__name__}. To fix: load them into it yourself."
        )


def make_backbone(
    backbone: Backbone, shape: tuple[int, ...], *, dropout: float, weights: str | Path | None = None
) -> nn.Module:
    """A new backbone for items of this shape; a named one starts from the file, if there is one."""
    if isinstance(backbone, str):
        file = None if weights is None else Path(weights)
        return build_backbone(backbone, shape, dropout=dropout, weights=file)
    made = copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()
    if not isinstance(made, nn.Module):
        raise CredalError(
            "a function as backbone must make a new torch.nn.Module at each call; got "
            f"{type(made).__name__}. To fix: backbone=lambda: Net()."
        )
    return made.cpu()
