"""Small classifiers for CIFAR that serve as teachers, with the names of the published state dicts.

Names and structure are those of github.com/chenyaofo/pytorch-cifar-models, so that its files load
unchanged. Each maps normalized images (N, 3, 32, 32) to logits (N, K) for ``num_classes`` K.
"""

from importlib import import_module
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn.errors import CredalError
from credalearn.nets.residual import conv, he_init


class ResNet20(nn.Module):
    """ResNet-20 (He et al., 2016): three groups of three blocks of 16, 32 and 64 channels."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = conv(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(
                _BasicBlock(width_in, width, stride=1 if width_in == width else 2),
                *(_BasicBlock(width, width, stride=1) for _ in range(2)),
            )
            for width_in, width in ((16, 16), (16, 32), (32, 64))
        )
        self.fc = nn.Linear(64, num_classes)
        he_init(self)

    def features(self, images: Tensor) -> Tensor:
        """The inputs of the classifier, shape (N, 64)."""
        hidden = relu(self.bn1(self.conv1(images)))
        features: Tensor = self.layer3(self.layer2(self.layer1(hidden))).mean((2, 3))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K)."""
        logits: Tensor = self.fc(self.features(images))
        return logits


class _BasicBlock(nn.Module):
    def __init__(self, width_in: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(width_in, width, stride=stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if width_in != width:
            narrow = conv(width_in, width, size=1, stride=stride)
            self.downsample = nn.Sequential(narrow, nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = relu(self.bn1(self.conv1(inputs)))
        return relu(self.bn2(self.conv2(hidden)) + self.downsample(inputs))


def mobilenet_v2(num_classes: int) -> nn.Module:
    """MobileNetV2 (Sandler et al., 2018): half the channels, three halvings instead of five."""
    # Of each group: how much wider a block is inside, channels, blocks, stride of the first block.
    groups = (
        *((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    )
    network = _torchvision().MobileNetV2(num_classes, 0.5, [*map(list, groups)])
    network.features[0][0].stride = (1, 1)
    found: nn.Module = network
    return found


def shufflenet_v2(num_classes: int) -> nn.Module:
    """ShuffleNetV2 (Ma et al., 2018): half the channels, without the first two halvings."""
    network = _torchvision().ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], num_classes)
    network.conv1[0].stride = (1, 1)
    network.maxpool = nn.Identity()
    found: nn.Module = network
    return found


def _torchvision() -> Any:
    try:
        return import_module("torchvision.models")
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
        raise CredalError(
            f"this teacher needs torchvision, which cannot be imported ({error}). To fix: install "
            "the build for this torch."
        ) from error
