"""Backbones that give features, and the heads on top of them."""

from collections.abc import Callable

from torch import nn

from credalearn.nets.mlp import MLP
from credalearn.nets.network import Network
from credalearn.nets.standardise import Standardise

# A backbone's name: what builds it for inputs of this shape (without the items).
BACKBONES: dict[str, Callable[[tuple[int, ...]], nn.Module]] = {"mlp": MLP}

__all__ = ["BACKBONES", "MLP", "Network", "Standardise"]
