"""Shared parts of the networks for images: the check of inputs, convolutions, first weights."""

from torch import nn

from credalearn.errors import CredalError


def image_channels(input_shape: tuple[int, ...], *, backbone: str) -> int:
    """The number of channels of images of this shape (without the items)."""
    rule = f"backbone {backbone!r} takes images (items, channels, height, width)"
    if len(input_shape) != 3 or 0 in input_shape:
        raise CredalError(
            f"{rule}; one item of X has shape {input_shape}. To fix: reshape X, or use the "
            "backbone 'mlp' for a table."
        )
    if input_shape[2] == 3 and input_shape[0] > 4:
        raise CredalError(
            f"{rule}; one item of X has shape {input_shape}, with its three colors last. To fix: "
            "X.transpose(0, 3, 1, 2) in NumPy, X.permute(0, 3, 1, 2) in torch."
        )
    return input_shape[0]


def conv(
    width_in: int, width: int, *, size: int = 3, stride: int = 1, groups: int = 1
) -> nn.Conv2d:
    """A padded convolution without bias, which the normalization after it would cancel."""
    return nn.Conv2d(width_in, width, size, stride, size // 2, groups=groups, bias=False)


def he_init(network: nn.Module) -> None:
    """Draw the weights of every convolution from N(0, 2 / fan-out) (He et al., 2015)."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
