"""What users give as backbone: a name, a module, or a function that makes one."""

from __future__ import annotations

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
    """Refuse what is no backbone, and one module for several networks that are to be trained.

    They would start from one point and stay close: an ensemble in name only.
    """
    if known_backbone(backbone):
        return
    if isinstance(backbone, nn.Module):
        if num_trained > 1:
            name = type(backbone).__name__
            raise CredalError(
                f"one {name} as backbone would start all {num_trained} networks of this method "
                "from the same weights, and an ensemble lives on different ones. To fix: give a "
                f"function that makes a new module at each call, as in backbone=lambda: {name}(...)"
                "; it may load the same trained weights at each call, if that is wanted."
            )
        return
    if not callable(backbone):
        raise CredalError(
            f"backbone must be one of {BACKBONE_NAMES} or a torch.nn.Module that returns features, "
            f"or a function that makes one; got {backbone!r}. To fix: give one of these."
        )
    with seeded(torch.device("cpu"), 0):  # random numbers outside stay as they are
        _check_made(_made(backbone), _made(backbone))


def check_weights(weights: object, backbone: object) -> None:
    """Refuse what names no file, and weights for a backbone that has its own."""
    if weights is None:
        return
    if not isinstance(weights, str | Path):
        raise CredalError(
            f"weights must be the path of a file, or None; got {type(weights).__name__}. To fix: "
            "save the state dict, and name the file."
        )
    if not isinstance(backbone, str):
        raise CredalError(
            f"weights are for a backbone given by name; got weights={str(weights)!r} and "
            f"{type(backbone).__name__}. To fix: load them into it yourself, or name one of "
            f"{BACKBONE_NAMES}."
        )


def make_backbone(
    backbone: Backbone,
    shape: tuple[int, ...],
    *,
    dropout: float,
    weights: str | Path | None = None,
) -> nn.Module:
    """A backbone of a network's own for items of this shape; a named one starts from the file."""
    if isinstance(backbone, str):
        file = None if weights is None else Path(weights)
        return build_backbone(backbone, shape, dropout=dropout, weights=file)
    return (copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()).cpu()


def _made(backbone: Callable[[], object]) -> object:
    try:
        return backbone()
    except TypeError as error:
        raise CredalError(
            f"a function as backbone is called without arguments; {backbone!r} fails: {error}. To "
            "fix: give them inside, as in backbone=lambda: Net(10)."
        ) from error


def _check_made(first: object, second: object) -> None:
    if not isinstance(first, nn.Module):
        raise CredalError(
            "a function as backbone must make a torch.nn.Module that returns features; got "
            f"{type(first).__name__}. To fix: return the module, as in backbone=lambda: Net()."
        )
    if first is second:
        raise CredalError(
            f"a function as backbone must make a new module at each call; it gave the same "
            f"{type(first).__name__} twice. To fix: make it inside, as in backbone=lambda: Net()."
        )
