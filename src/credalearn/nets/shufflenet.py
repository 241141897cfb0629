"""ShuffleNetV2-0.5x for CIFAR (Ma et al., 2018), under the published state dicts' names.

The names and the structure are those of github.com/chenyaofo/pytorch-cifar-models: the stem keeps
the image's size, and no max-pool follows it.
"""

import torch
from torch import Tensor, nn

from credalearn.nets.convolutions import conv3x3


class ShuffleNetV2(nn.Module):
    """A stem, three stages of 4, 8 and 4 units that halve the image, and a classifier.

    Args:
        num_classes: K.

    Example:
        >>> ShuffleNetV2(10)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(conv3x3(3, 24), nn.BatchNorm2d(24), nn.ReLU())
        self.stage2 = _stage(24, 48, num_units=4)
        self.stage3 = _stage(48, 96, num_units=8)
        self.stage4 = _stage(96, 192, num_units=4)
        self.conv5 = nn.Sequential(*_pointwise(192, 1024))
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K), of normalized images (N, 3, 32, 32)."""
        hidden = self.stage4(self.stage3(self.stage2(self.conv1(images))))
        logits: Tensor = self.fc(self.conv5(hidden).mean((2, 3)))
        return logits


class _Unit(nn.Module):
    """Half of the channels pass (or both halves come from all of them, at half the size)."""

    def __init__(self, width_in: int, width: int, *, halves: bool) -> None:
        super().__init__()
        half = width // 2
        stride = 2 if halves else 1
        self.halves = halves
        self.branch1 = nn.Sequential()
        if halves:
            first = _depthwise(width_in, stride=stride)
            self.branch1 = nn.Sequential(*first, *_pointwise(width_in, half))
        self.branch2 = nn.Sequential(
            *_pointwise(width_in if halves else half, half),
            *_depthwise(half, stride=stride),
            *_pointwise(half, half),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        left, right = (inputs, inputs) if self.halves else inputs.chunk(2, dim=1)
        # Shuffled: the channels of the two branches take turns.
        return torch.stack([self.branch1(left), self.branch2(right)], dim=2).flatten(1, 2)


def _stage(width_in: int, width: int, *, num_units: int) -> nn.Sequential:
    rest = (_Unit(width, width, halves=False) for _ in range(num_units - 1))
    return nn.Sequential(_Unit(width_in, width, halves=True), *rest)


def _pointwise(width_in: int, width: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(width_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()


def _depthwise(width: int, *, stride: int) -> tuple[nn.Module, ...]:
    conv = nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=width, bias=False)
    return conv, nn.BatchNorm2d(width)
