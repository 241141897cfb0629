"""Networks: standardised inputs, features of any backbone."""

import pytest
import torch
from torch import nn

import credalearn as cl
from credalearn.nets import MLP, Network, Standardise


def test_standardise_handles_constant_and_large_features() -> None:
    layer = Standardise(3)
    inputs = torch.tensor([[1e6, 5.0, 0.1], [1e6 + 2, 5.0, 0.1]])
    layer.fit(inputs)
    expected = torch.tensor([[-1.0, 0, 0], [1.0, 0, 0]])
    torch.testing.assert_close(layer(inputs), expected, atol=1e-4, rtol=0)


def test_an_mlp_refuses_images() -> None:
    with pytest.raises(cl.CredalError, match=r"takes a table .* shape \(3, 8, 8\)"):
        MLP((3, 8, 8))


def test_a_backbone_must_return_features() -> None:
    with pytest.raises(cl.CredalError, match=r"one row of features an item.*Flatten gave \(6,\)"):
        Network.on(nn.Flatten(0), torch.zeros(2, 3), num_heads=1, num_classes=2)
    network = Network.on(nn.Conv2d(1, 2, 3), torch.zeros(2, 1, 5, 5), num_heads=2, num_classes=3)
    assert network(torch.zeros(4, 1, 5, 5)).shape == (4, 2, 3)
