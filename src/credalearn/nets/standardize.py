"""Inputs standardized to mean 0 and spread 1, by a layer that is saved with the weights."""

import torch
from torch import Tensor, nn

_CHUNK = 2**22  # numbers at a time, 32 MiB in float64: 27 images of 224 px, 1365 of 32 px


class Standardize(nn.Module):
    """Subtract each feature's mean and divide by its standard deviation; of images, each channel's.

    Tables in float64, so that seconds since 1970 keep their differences; images, whose values are
    near their spread, in float32. A constant feature becomes 0.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(num_features, dtype=torch.float64))

    def fit(self, inputs: Tensor, weight: Tensor | None = None) -> None:
        """Learn from inputs (N, D) or images; rows of a table may have weights (N, 1), of sum 1."""
        if weight is not None:
            mean = (inputs * weight).sum(0)
            spread = ((inputs - mean).square() * weight).sum(0).sqrt()
        elif inputs.ndim == 2:
            spread, mean = torch.std_mean(inputs.double(), dim=0, correction=0)
        else:
            spread, mean = _of_channels(inputs)
        # A constant feature's spread is a rounding of its size, not of 0: up to 6e-8 of it in
        # float32, which images go on in, but 1.7e9 ± 100 in float64 is no rounding.
        in_float32 = inputs.ndim > 2 or (inputs.is_floating_point() and inputs.itemsize < 8)
        varies = spread > (1e-7 if in_float32 else 1e-12) * mean.abs()
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, spread, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        """Standardized inputs, of the same shape."""
        if inputs.ndim == 2:
            return ((inputs - self.mean) / self.scale).float()
        shape = (-1, *[1] * (inputs.ndim - 2))
        return (inputs.float() - self.mean.float().view(shape)) / self.scale.float().view(shape)


def _of_channels(images: Tensor) -> tuple[Tensor, Tensor]:
    """Spread and mean of each channel, in two passes over chunks of items: little memory."""
    others = (0, *range(2, images.ndim))
    chunks = torch.split(images, max(1, _CHUNK // max(1, images[0].numel())))
    count = images.numel() / images.shape[1]
    # Running sums: a list of small tensors between large ones keeps their memory from reuse.
    mean = torch.zeros(images.shape[1], dtype=torch.float64, device=images.device)
    for chunk in chunks:
        mean += chunk.double().sum(others) / count
    squares = torch.zeros_like(mean)
    place = mean.view(-1, *[1] * (images.ndim - 2))
    for chunk in chunks:
        squares += (chunk - place).square_().sum(others)  # in float64, as place is
    return (squares / count).sqrt(), mean
