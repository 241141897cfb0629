"""ResNet-20 for CIFAR (He et al., 2016), under the published state dicts' names.

The names and the structure are those of github.com/chenyaofo/pytorch-cifar-models, so that its
files load as they are.
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn.nets.convolutions import conv3x3, he_init


class ResNet20(nn.Module):
    """Three groups of three residual blocks of 16, 32 and 64 channels, and a classifier.

    Args:
        num_classes: K.

    Example:
        >>> import torch
        >>> ResNet20(10)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = conv3x3(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _group(16, 16, stride=1)
        self.layer2 = _group(16, 32, stride=2)
        self.layer3 = _group(32, 64, stride=2)
        self.fc = nn.Linear(64, num_classes)
        he_init(self)

    def features(self, images: Tensor) -> Tensor:
        """What the classifier is given, shape (N, 64), of normalized images (N, 3, 32, 32)."""
        hidden = relu(self.bn1(self.conv1(images)))
        features: Tensor = self.layer3(self.layer2(self.layer1(hidden))).mean((2, 3))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K), of normalized images (N, 3, 32, 32)."""
        logits: Tensor = self.fc(self.features(images))
        return logits


class _Block(nn.Module):
    def __init__(self, width_in: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = conv3x3(width_in, width, stride=stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv3x3(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if stride != 1 or width_in != width:
            conv = nn.Conv2d(width_in, width, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = relu(self.bn1(self.conv1(inputs)))
        return relu(self.bn2(self.conv2(hidden)) + self.downsample(inputs))


def _group(width_in: int, width: int, *, stride: int) -> nn.Sequential:
    first = _Block(width_in, width, stride=stride)
    return nn.Sequential(first, *(_Block(width, width, stride=1) for _ in range(2)))
