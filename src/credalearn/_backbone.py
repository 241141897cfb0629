"""The backbone of a classifier: a name, a module, or a function that makes one."""

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from credalearn.errors import CredalError
from credalearn.nets import BACKBONE_NAMES, build_backbone, known_backbone
from credalearn.train import seeded

Backbone = str | nn.Module | Callable[[], nn.Module]


def check_backbone(backbone: object, *, num_trained: int) -> None:
    """Reject anything else, and one module for several networks that are to be trained.

    Those would start from the same weights and stay close: not an ensemble.
    """
    if isinstance(backbone, nn.Module):
        if num_trained > 1:
            name = type(backbone).__name__
            raise CredalError(
                f"one {name} as backbone would start all {num_trained} networks of this method "
                "from the same weights, but an ensemble needs different ones. To fix: give a "
                "function that makes a new module at each call, as in "
                f"backbone=lambda: {name}(...)."
            )
    elif not known_backbone(backbone):
        if not callable(backbone):
            raise CredalError(
                f"backbone must be one of {BACKBONE_NAMES} or a torch.nn.Module that returns "
                f"features, or a function that makes one; got {backbone!r}."
            )
        with seeded(torch.device("cpu"), 0):  # random numbers outside stay as they are
            _check_made(backbone)


def check_weights(weights: object, backbone: object) -> None:
    """Reject weights for a backbone that has its own."""
    if weights is not None and not isinstance(backbone, str):
        raise CredalError(
            f"weights are for a backbone given by name; got weights={str(weights)!r} and "
            f"{type(backbone).__name__}. To fix: load them into it yourself, or use one of "
            f"{BACKBONE_NAMES}."
        )


def make_backbone(
    backbone: Backbone, shape: tuple[int, ...], *, dropout: float, weights: str | Path | None = None
) -> nn.Module:
    """A new backbone for items of this shape; a named one starts from the file, if there is one."""
    if isinstance(backbone, str):
        file = None if weights is None else Path(weights)
        return build_backbone(backbone, shape, dropout=dropout, weights=file)
    return (copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()).cpu()


def _check_made(backbone: Callable[[], object]) -> None:
    try:
        first, second = backbone(), backbone()
    except TypeError as error:
        raise CredalError(
            f"a function as backbone is called without arguments; {backbone!r} fails: {error}. To "
            "fix: put them inside, as in backbone=lambda: Net(10)."
        ) from error
    if not isinstance(first, nn.Module) or first is second:
        module = isinstance(first, nn.Module)
        got = f"the same {type(first).__name__} twice" if module else type(first).__name__
        raise CredalError(
            "a function as backbone must make a new torch.nn.Module that returns features at each "
            f"call; got {got}. To fix: make it inside, as in backbone=lambda: Net()."
        )
