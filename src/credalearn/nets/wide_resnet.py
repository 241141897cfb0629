"""WRN-28-4, a wide residual network for small images (Zagoruyko and Komodakis, 2016).

Shapes: N items, C channels.
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn.nets.convolutions import conv3x3, he_init, image_channels
from credalearn.nets.standardize import Standardize

_STEM = 16
_WIDTHS = (64, 128, 256)  # of the three groups, 4 times 16, 32, 64
_BLOCKS = 4  # in each group: 28 = 4 + 6 * 4 layers


class WideResNet28x4(nn.Module):
    """Standardized images through a stem and twelve residual blocks, averaged over the pixels.

    Args:
        input_shape: (C, height, width).
        dropout: Probability of dropping a number between the two convolutions of every block.

    Raises:
        CredalError: If the inputs are no images.

    Example:
        >>> import torch
        >>> WideResNet28x4((3, 8, 8))(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 256])
    """

    places_dropout = True

    def __init__(self, input_shape: tuple[int, ...], *, dropout: float = 0.0) -> None:
        super().__init__()
        channels = image_channels(input_shape, backbone="wrn-28-4")
        self.dropout = dropout
        self.standardize = Standardize(channels)
        self.conv = conv3x3(channels, _STEM)
        blocks: list[nn.Module] = []
        width_in = _STEM
        for group, width in enumerate(_WIDTHS):
            for number in range(_BLOCKS):
                stride = 2 if group and not number else 1
                blocks.append(PreActivationBlock(width_in, width, stride=stride, dropout=dropout))
                width_in = width
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(width_in)
        he_init(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, 256)."""
        hidden = self.blocks(self.conv(self.standardize(images)))
        features: Tensor = relu(self.norm(hidden), inplace=True).mean((2, 3))
        return features


class PreActivationBlock(nn.Module):
    """Normalization and rectifier before each of two 3x3 convolutions, added to a shortcut.

    The shortcut is the input itself, or a 1x1 convolution of the rectified input where the shape
    changes.
    """

    def __init__(self, width_in: int, width: int, *, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(width_in)
        self.conv1 = conv3x3(width_in, width, stride=stride)
        self.norm2 = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv3x3(width, width)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or width_in != width:
            self.shortcut = nn.Conv2d(width_in, width, 1, stride=stride, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Of (N, width_in, height, width), what the block makes."""
        active = relu(self.norm1(inputs), inplace=True)
        hidden = self.dropout(relu(self.norm2(self.conv1(active)), inplace=True))
        skipped = inputs if self.shortcut is None else self.shortcut(active)
        found: Tensor = self.conv2(hidden) + skipped
        return found
