"""Residual networks for small images: ResNet-18 and WRN-28-4.

Both standardize the images, start with a 3x3 convolution of stride 1 without max-pooling, and
average the features over the pixels. ``input_shape`` is (channels, height, width); ``dropout`` is
the probability of dropping a number between the two convolutions of every block.
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn.errors import CredalError
from credalearn.nets.standardize import Standardize


def image_channels(input_shape: tuple[int, ...], *, backbone: str) -> int:
    """The number of channels of images of this shape (without the items)."""
    rule = f"backbone {backbone!r} takes images (items, channels, height, width)"
    got = f"one item of X has shape {input_shape}"
    if len(input_shape) != 3 or 0 in input_shape:
        raise CredalError(f"{rule}; {got}. To fix: reshape X; for a table, backbone='mlp'.")
    if input_shape[2] == 3 and input_shape[0] > 4:
        fix = "X.transpose(0, 3, 1, 2) in NumPy, X.permute(0, 3, 1, 2) in torch"
        raise CredalError(f"{rule}; {got}, with its three colors last. To fix: {fix}.")
    return input_shape[0]


def conv(width_in: int, width: int, *, size: int = 3, stride: int = 1) -> nn.Conv2d:
    """A padded convolution without bias, which the normalization after it would cancel."""
    return nn.Conv2d(width_in, width, size, stride, size // 2, bias=False)


def he_init(network: nn.Module) -> None:
    """Draw the weights of every convolution from N(0, 2 / fan-out) (He et al., 2015)."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2016): eight blocks, 512 features."""

    places_dropout = True

    def __init__(self, input_shape: tuple[int, ...], *, dropout: float = 0.0) -> None:
        super().__init__()
        channels = image_channels(input_shape, backbone="resnet18")
        self.dropout = dropout
        self.standardize = Standardize(channels)
        self.conv = conv(channels, 64)
        self.norm = nn.BatchNorm2d(64)
        self.blocks = _blocks(BasicBlock, 64, (64, 128, 256, 512), depth=2, dropout=dropout)
        he_init(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, 512)."""
        stem = relu(self.norm(self.conv(self.standardize(images))), inplace=True)
        return self.blocks(stem).mean((2, 3))


class WideResNet28x4(nn.Module):
    """WRN-28-4 (Zagoruyko and Komodakis, 2016): twelve blocks, 256 features."""

    places_dropout = True

    def __init__(self, input_shape: tuple[int, ...], *, dropout: float = 0.0) -> None:
        super().__init__()
        channels = image_channels(input_shape, backbone="wrn-28-4")
        self.dropout = dropout
        self.standardize = Standardize(channels)
        self.conv = conv(channels, 16)
        self.blocks = _blocks(PreActivationBlock, 16, (64, 128, 256), depth=4, dropout=dropout)
        self.norm = nn.BatchNorm2d(256)
        he_init(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, 256)."""
        hidden = self.blocks(self.conv(self.standardize(images)))
        return relu(self.norm(hidden), inplace=True).mean((2, 3))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions, each normalized, added to a shortcut."""

    def __init__(self, width_in: int, width: int, *, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = conv(width_in, width, stride=stride)
        self.norm1 = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv(width, width)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or width_in != width:
            narrow = conv(width_in, width, size=1, stride=stride)
            self.shortcut = nn.Sequential(narrow, nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        """The sum of both paths, rectified."""
        hidden = self.dropout(relu(self.norm1(self.conv1(inputs)), inplace=True))
        return relu(self.norm2(self.conv2(hidden)) + self.shortcut(inputs), inplace=True)


class PreActivationBlock(nn.Module):
    """Normalization and rectifier before each of two 3x3 convolutions, added to a shortcut."""

    def __init__(self, width_in: int, width: int, *, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(width_in)
        self.conv1 = conv(width_in, width, stride=stride)
        self.norm2 = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv(width, width)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or width_in != width:
            self.shortcut = conv(width_in, width, size=1, stride=stride)

    def forward(self, inputs: Tensor) -> Tensor:
        """The sum of both paths."""
        active = relu(self.norm1(inputs), inplace=True)
        hidden = self.dropout(relu(self.norm2(self.conv1(active)), inplace=True))
        skipped = inputs if self.shortcut is None else self.shortcut(active)
        return self.conv2(hidden) + skipped


def _blocks(
    block: type[nn.Module], width_in: int, widths: tuple[int, ...], *, depth: int, dropout: float
) -> nn.Sequential:
    """Groups of ``depth`` blocks, one per width; each group but the first halves the image."""
    blocks: list[nn.Module] = []
    for group, width in enumerate(widths):
        for number in range(depth):
            stride = 2 if group and not number else 1
            blocks.append(block(width_in, width, stride=stride, dropout=dropout))
            width_in = width
    return nn.Sequential(*blocks)
