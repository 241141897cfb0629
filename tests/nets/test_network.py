"""Networks: heads on the features of any backbone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import credalearn as cl
from credalearn.nets import MLP, Network, ResNet18


def test_a_backbone_takes_its_kind_of_input_and_returns_features() -> None:
    with pytest.raises(cl.CredalError, match="takes a table"):
        MLP((3, 8, 8))
    with pytest.raises(cl.CredalError, match="one row of features per item"):
        Network.on(nn.Flatten(0), torch.zeros(2, 3), num_heads=1, num_classes=2)
    network = Network.on(nn.Conv2d(1, 2, 3), torch.zeros(2, 1, 5, 5), num_heads=2, num_classes=3)
    assert network(torch.zeros(4, 1, 5, 5)).shape == (4, 2, 3)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, on import
def test_a_compiled_network_computes_the_same(generator: torch.Generator) -> None:
    """Here by torch's own stand-in for a compiler; test_cuda_graphs.py compiles on a GPU."""
    network = Network(ResNet18((3, 8, 8)), num_features=512, num_heads=2, num_classes=3).eval()
    images = torch.rand(2, 3, 8, 8, generator=generator)
    with torch.compiler.set_stance("force_eager"):
        assert_close(network.compiled()(images), network(images))
