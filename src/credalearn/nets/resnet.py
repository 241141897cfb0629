"""ResNet-18 for small images (He et al., 2016): a 3x3 stem with stride 1 and no max-pool.

Shapes: N items, C channels.
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn.nets.convolutions import conv3x3, he_init, image_channels
from credalearn.nets.standardize import Standardize

_WIDTHS = (64, 128, 256, 512)  # of the four groups; the last is the number of features


class ResNet18(nn.Module):
    """Standardized images through a stem and eight residual blocks, averaged over the pixels.

    Args:
        input_shape: (C, height, width).
        dropout: Probability of dropping a number between the two convolutions of every block.

    Raises:
        CredalError: If the inputs are no images.

    Example:
        >>> import torch
        >>> ResNet18((3, 8, 8))(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 512])
    """

    places_dropout = True

    def __init__(self, input_shape: tuple[int, ...], *, dropout: float = 0.0) -> None:
        super().__init__()
        channels = image_channels(input_shape, backbone="resnet18")
        self.dropout = dropout
        self.standardize = Standardize(channels)
        self.conv = conv3x3(channels, _WIDTHS[0])
        self.norm = nn.BatchNorm2d(_WIDTHS[0])
        blocks: list[nn.Module] = []
        width_in = _WIDTHS[0]
        for group, width in enumerate(_WIDTHS):
            blocks.append(BasicBlock(width_in, width, stride=2 if group else 1, dropout=dropout))
            blocks.append(BasicBlock(width, width, dropout=dropout))
            width_in = width
        self.blocks = nn.Sequential(*blocks)
        he_init(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, 512)."""
        stem = relu(self.norm(self.conv(self.standardize(images))), inplace=True)
        features: Tensor = self.blocks(stem).mean((2, 3))
        return features


class BasicBlock(nn.Module):
    """Two 3x3 convolutions, each normalized, added to a shortcut.

    The shortcut is the input itself, or a normalized 1x1 convolution where the shape changes.
    """

    def __init__(self, width_in: int, width: int, *, stride: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = conv3x3(width_in, width, stride=stride)
        self.norm1 = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv3x3(width, width)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or width_in != width:
            conv = nn.Conv2d(width_in, width, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        """Of (N, width_in, height, width), what the block makes."""
        hidden = self.dropout(relu(self.norm1(self.conv1(inputs)), inplace=True))
        return relu(self.norm2(self.conv2(hidden)) + self.shortcut(inputs), inplace=True)
