"""MobileNetV2-0.5x for CIFAR (Sandler et al., 2018), under the published state dicts' names.

The names and the structure are those of github.com/chenyaofo/pytorch-cifar-models: stem and second
group keep the image's size.
"""

from torch import Tensor, nn

_STEM = 16
# Of each group: how much wider a block is inside, channels, blocks, stride of the first block. Half
# of MobileNetV2's channels, in eighths: 24 becomes 16.
_GROUPS = (
    (1, 8, 1, 1),
    (6, 16, 2, 1),
    (6, 16, 3, 2),
    (6, 32, 4, 2),
    (6, 48, 3, 1),
    (6, 80, 3, 2),
    (6, 160, 1, 1),
)
_LAST = 1280


class MobileNetV2(nn.Module):
    """A stem, seventeen inverted residual blocks, a last convolution and a classifier.

    Args:
        num_classes: K.

    Example:
        >>> import torch
        >>> MobileNetV2(10).eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, _STEM, size=3)]
        width_in = _STEM
        for expansion, width, num_blocks, stride in _GROUPS:
            for number in range(num_blocks):
                own_stride = 1 if number else stride
                layers.append(_Block(width_in, width, expansion=expansion, stride=own_stride))
                width_in = width
        self.features = nn.Sequential(*layers, _convolution(width_in, _LAST, size=1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(_LAST, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K), of normalized images (N, 3, 32, 32)."""
        logits: Tensor = self.classifier(self.features(images).mean((2, 3)))
        return logits


class _Block(nn.Module):
    """Wider, depthwise, narrow again without a rectifier; added to the input where it fits."""

    def __init__(self, width_in: int, width: int, *, expansion: int, stride: int) -> None:
        super().__init__()
        inside = width_in * expansion
        self.adds = stride == 1 and width_in == width
        self.conv = nn.Sequential(
            *([_convolution(width_in, inside, size=1)] if expansion > 1 else []),
            _convolution(inside, inside, size=3, stride=stride, groups=inside),
            nn.Conv2d(inside, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.conv(inputs)
        return inputs + found if self.adds else found


def _convolution(
    width_in: int, width: int, *, size: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width), nn.ReLU6())
