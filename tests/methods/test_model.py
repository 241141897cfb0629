"""Models: members, batches, and dropout at prediction."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods import METHODS, Model
from credalearn.nets import MLP, Network, ResNet18


def test_members_must_have_the_dropout_of_the_method() -> None:
    sample, labels = torch.zeros(2, 3, 8, 8), cl.precise(torch.eye(2))
    for rate, method, other in ((0.3, "mc-dropout", "softmax"), (0.0, "softmax", "mc-dropout")):
        backbone = ResNet18((3, 8, 8), dropout=rate)
        network = Network.on(backbone, sample, num_heads=1, num_classes=2, dropout=rate)
        model = Model.from_members(METHODS[method], [network], sample, labels, random_state=0)
        assert model.members == (network,)
        with pytest.raises(cl.CredalError, match=rf"must have .*; one has \(1, 2, {rate}\)"):
            Model.from_members(METHODS[other], [network], sample, labels, random_state=0)


def test_predictions_are_made_in_whole_float32() -> None:
    """Where cuDNN would round the inputs of convolutions, two ways to predict would differ."""
    seen = []

    class Watching(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            seen.append(torch.backends.cudnn.allow_tf32)
            return inputs

    network = Network(Watching(), num_features=3, num_heads=1, num_classes=2)
    before = torch.backends.cudnn.allow_tf32
    Model(METHODS["softmax"], (network,), {}, random_state=0).predict(torch.zeros(4, 3))
    assert (seen, torch.backends.cudnn.allow_tf32) == ([False], before)


def test_large_items_are_predicted_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    network = Network(nn.Flatten(), num_features=48, num_heads=1, num_classes=2)
    network.backbone.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    model = Model(METHODS["softmax"], (network,), {}, random_state=0)
    whole = model.outputs(torch.rand(10, 3, 4, 4)).logits
    assert sizes == [10]
    monkeypatch.setattr("credalearn.methods.model._NUMBERS", 4 * 48)
    assert model.outputs(torch.rand(10, 3, 4, 4)).logits.shape == whole.shape
    assert sizes[1:] == [4, 4, 2]


@pytest.mark.catches(
    "methods/model.py", "torch.ones(1, *output.shape[1:])", "torch.ones(*output.shape)", case="mlp"
)
@pytest.mark.parametrize("backbone", ["mlp", "resnet18", "channels"])
def test_dropout_does_not_depend_on_the_batch(
    backbone: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item alone, among others, in another order and in other batches: the same prediction."""
    shape = (4,) if backbone == "mlp" else (3, 8, 8)
    inputs = torch.rand(7, *shape, generator=generator)
    torch.manual_seed(0)
    if backbone == "mlp":
        network = Network(MLP((4,)), num_features=128, num_heads=1, num_classes=3, dropout=0.3)
    elif backbone == "resnet18":
        resnet = ResNet18((3, 8, 8), dropout=0.3)
        network = Network.on(resnet, inputs, num_heads=1, num_classes=3, dropout=0.3)
    else:
        layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout2d(0.5), nn.Flatten())
        network = Network.on(layers, inputs, num_heads=1, num_classes=3, dropout=0.3)
    model = Model(METHODS["mc-dropout"], (network,), {}, random_state=0)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    whole = model.outputs(inputs).logits
    assert_close(model.outputs(inputs).logits, whole, atol=0, rtol=0)
    assert (whole.std(1) > 0).all()  # the passes differ
    alone = torch.cat([model.outputs(inputs[i : i + 1]).logits for i in range(7)])
    assert_close(alone, whole, rtol=1e-4, atol=1e-5)
    assert_close(model.outputs(inputs.flip(0)).logits.flip(0), whole, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr("credalearn.methods.model._BATCH", 3)
    assert_close(model.outputs(inputs).logits, whole, rtol=1e-4, atol=1e-5)
    assert_close(network.state_dict(), before)  # normalization has learned nothing
    assert not network.training
    assert not any(layer._forward_hooks for layer in network.modules())
