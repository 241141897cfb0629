"""Backbones that return features, and the heads on top of them."""

from credalearn.nets.backbones import BACKBONES as BACKBONES
from credalearn.nets.backbones import Backbone as Backbone
from credalearn.nets.backbones import build_backbone as build_backbone
from credalearn.nets.backbones import build_network as build_network
from credalearn.nets.network import MLP as MLP
from credalearn.nets.network import Network as Network
from credalearn.nets.residual import ResNet18 as ResNet18
from credalearn.nets.residual import WideResNet28x4 as WideResNet28x4
from credalearn.nets.standardize import Standardize as Standardize
