"""Small classifiers for CIFAR that serve as teachers, with the names of the published state dicts.

Names and structure are those of github.com/chenyaofo/pytorch-cifar-models, so that its files load
unchanged. Each maps normalized images (N, 3, 32, 32) to logits (N, K) for ``num_classes`` K.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

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


class MobileNetV2(nn.Module):
    """MobileNetV2 with half the channels (Sandler et al., 2018): seventeen inverted blocks."""

    # Of each group: how much wider a block is inside, channels, blocks, stride of the first block.
    groups = (
        (1, 8, 1, 1),
        (6, 16, 2, 1),
        (6, 16, 3, 2),
        (6, 32, 4, 2),
        (6, 48, 3, 1),
        (6, 80, 3, 2),
        (6, 160, 1, 1),
    )

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [_rectified6(conv(3, 16))]
        width_in = 16
        for expansion, width, num_blocks, first_stride in self.groups:
            for stride in (first_stride, *[1] * (num_blocks - 1)):
                layers.append(_InvertedBlock(width_in, width, expansion=expansion, stride=stride))
                width_in = width
        layers.append(_rectified6(conv(width_in, 1280, size=1)))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K)."""
        logits: Tensor = self.classifier(self.features(images).mean((2, 3)))
        return logits


class _InvertedBlock(nn.Module):
    """Wider, depthwise, narrow again without a rectifier; added to the input where it fits."""

    def __init__(self, width_in: int, width: int, *, expansion: int, stride: int) -> None:
        super().__init__()
        inside = width_in * expansion
        self.adds = stride == 1 and width_in == width
        self.conv = nn.Sequential(
            *([_rectified6(conv(width_in, inside, size=1))] if expansion > 1 else []),
            _rectified6(conv(inside, inside, stride=stride, groups=inside)),
            conv(inside, width, size=1),
            nn.BatchNorm2d(width),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.conv(inputs)
        return inputs + found if self.adds else found


def _rectified6(layer: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(layer, nn.BatchNorm2d(layer.out_channels), nn.ReLU6())


class ShuffleNetV2(nn.Module):
    """ShuffleNetV2 with half the channels (Ma et al., 2018): stages of 4, 8 and 4 units."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(*_rectified(conv(3, 24)))
        self.stage2, self.stage3, self.stage4 = (
            nn.Sequential(
                _Unit(width_in, width, halves=True),
                *(_Unit(width, width, halves=False) for _ in range(num_units - 1)),
            )
            for width_in, width, num_units in ((24, 48, 4), (48, 96, 8), (96, 192, 4))
        )
        self.conv5 = nn.Sequential(*_rectified(conv(192, 1024, size=1)))
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K)."""
        hidden = self.stage4(self.stage3(self.stage2(self.conv1(images))))
        logits: Tensor = self.fc(self.conv5(hidden).mean((2, 3)))
        return logits


class _Unit(nn.Module):
    """Half of the channels pass; or both halves come from all of them, at half the size."""

    def __init__(self, width_in: int, width: int, *, halves: bool) -> None:
        super().__init__()
        half, stride = width // 2, 2 if halves else 1
        self.halves = halves
        self.branch1 = nn.Sequential()
        if halves:
            depthwise = conv(width_in, width_in, stride=stride, groups=width_in)
            pointwise = _rectified(conv(width_in, half, size=1))
            self.branch1 = nn.Sequential(depthwise, nn.BatchNorm2d(width_in), *pointwise)
        first = _rectified(conv(width_in if halves else half, half, size=1))
        depthwise = conv(half, half, stride=stride, groups=half)
        last = _rectified(conv(half, half, size=1))
        self.branch2 = nn.Sequential(*first, depthwise, nn.BatchNorm2d(half), *last)

    def forward(self, inputs: Tensor) -> Tensor:
        left, right = (inputs, inputs) if self.halves else inputs.chunk(2, dim=1)
        # Shuffled: the channels of the two branches take turns.
        return torch.stack([self.branch1(left), self.branch2(right)], dim=2).flatten(1, 2)


def _rectified(layer: nn.Conv2d) -> tuple[nn.Module, ...]:
    return layer, nn.BatchNorm2d(layer.out_channels), nn.ReLU()
