"""Inputs brought to mean 0 and spread 1, as a layer that travels with the weights."""

import torch
from torch import Tensor, nn


class Standardise(nn.Module):
    """Subtract each feature's mean and divide by its standard deviation.

    In float64, so that seconds since 1970 keep their differences; float32 comes out. Training sets
    the two from the training inputs (:meth:`fit`); a constant feature becomes 0.

    Args:
        num_features: D; inputs are (N, D).

    Example:
        >>> layer = Standardise(1)
        >>> layer.fit(torch.tensor([[10.0], [30.0]]))
        >>> layer(torch.tensor([[10.0], [20.0], [30.0]]))
        tensor([[-1.],
                [ 0.],
                [ 1.]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(num_features, dtype=torch.float64))

    def fit(self, inputs: Tensor) -> None:
        """Take mean and spread from ``inputs`` (N, D)."""
        spread, mean = torch.std_mean(inputs.double(), dim=0, correction=0)
        # A constant feature's spread is a rounding of its size, not of 0.
        varies = spread > 1e-7 * mean.abs()
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, spread, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        """Standardised inputs, shape (N, D)."""
        return ((inputs - self.mean) / self.scale).float()
