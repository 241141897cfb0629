"""Backbones that return features, and the heads on top of them."""

from credalearn.nets.backbones import (
    BACKBONE_NAMES,
    BACKBONES,
    Backbone,
    build_backbone,
    build_network,
    known_backbone,
)
from credalearn.nets.mlp import MLP
from credalearn.nets.network import Network
from credalearn.nets.residual import ResNet18, WideResNet28x4
from credalearn.nets.standardize import Standardize

__all__ = [
    "BACKBONES",
    "BACKBONE_NAMES",
    "MLP",
    "Backbone",
    "Network",
    "ResNet18",
    "Standardize",
    "WideResNet28x4",
    "build_backbone",
    "build_network",
    "known_backbone",
]
