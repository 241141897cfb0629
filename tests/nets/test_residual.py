"""Residual networks against their definition, written out."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d
from torch.testing import assert_close

import credalearn as cl
from credalearn.nets import Network, ResNet18, Standardize, WideResNet28x4, build_backbone
from random_sets import random_images

IMAGE_BACKBONES = ["resnet18", "wrn-28-4"]
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


class Slow:
    """Networks from their weights alone, written out: no module of the package is run."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        self.weights = weights

    def conv(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        kernel = self.weights[f"{name}.weight"]
        return conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)

    def norm(self, name: str, x: Tensor) -> Tensor:
        mean, variance = (self.weights[f"{name}.running_{part}"] for part in ("mean", "var"))
        return batch_norm(
            x, mean, variance, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        )

    def inputs(self, images: Tensor) -> Tensor:
        mean, scale = self.weights["standardize.mean"], self.weights["standardize.scale"]
        return ((images - mean[:, None, None]) / scale[:, None, None]).float()

    def resnet18(self, images: Tensor) -> Tensor:
        x = self.norm("norm", self.conv("conv", self.inputs(images))).clamp(min=0)
        for block in range(8):
            name = f"blocks.{block}"
            stride = 2 if block in (2, 4, 6) else 1
            y = self.norm(f"{name}.norm1", self.conv(f"{name}.conv1", x, stride)).clamp(min=0)
            y = self.norm(f"{name}.norm2", self.conv(f"{name}.conv2", y))
            if stride == 2:
                x = self.conv(f"{name}.shortcut.0", x, stride)
                x = self.norm(f"{name}.shortcut.1", x)
            x = (x + y).clamp(min=0)
        return x.flatten(2).mean(2)

    def wrn_28_4(self, images: Tensor) -> Tensor:
        x = self.conv("conv", self.inputs(images))
        for block in range(12):
            name = f"blocks.{block}"
            stride = 2 if block in (4, 8) else 1
            a = self.norm(f"{name}.norm1", x).clamp(min=0)
            y = self.norm(f"{name}.norm2", self.conv(f"{name}.conv1", a, stride)).clamp(min=0)
            skipped = self.conv(f"{name}.shortcut", a, stride) if block in (0, 4, 8) else x
            x = self.conv(f"{name}.conv2", y) + skipped
        return self.norm("norm", x).clamp(min=0).flatten(2).mean(2)


@pytest.mark.parametrize(
    ("build", "written_out"), [(ResNet18, Slow.resnet18), (WideResNet28x4, Slow.wrn_28_4)]
)
def test_residual_networks_equal_their_definition(
    build: type[ResNet18] | type[WideResNet28x4], written_out: object, generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    network = build((3, 12, 16))
    images = random_images(generator, 4, 3, 12, 16)
    network.standardize.fit(images)
    for layer in network.modules():  # no normalization is the identity
        if isinstance(layer, nn.BatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                assert tensor is not None
                tensor.data.uniform_(0.5, 1.5, generator=generator)
    assert callable(written_out)
    with torch.no_grad():
        expected = written_out(Slow(network.state_dict()), images)
        assert_close(network.eval()(images), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("name", "expected"), [("resnet18", 11_173_962), ("wrn-28-4", 5_849_050)])
def test_residual_networks_have_their_known_number_of_weights(name: str, expected: int) -> None:
    backbone, sample = build_backbone(name, (3, 32, 32)), torch.zeros(1, 3, 32, 32)
    network = Network.on(backbone, sample, num_heads=1, num_classes=10)
    assert sum(weight.numel() for weight in network.parameters()) == expected


def test_first_weights_follow_he_initialization() -> None:
    torch.manual_seed(0)
    for layer in ResNet18((3, 32, 32)).modules():
        if isinstance(layer, nn.Conv2d):
            fan_out = layer.out_channels * layer.weight[0, 0].numel()
            assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", IMAGE_BACKBONES)
def test_image_backbones_run_in_bfloat16_and_channels_last(
    name: str, device: str, generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    network = build_backbone(name, (3, 8, 8), dropout=0.3).to(device)
    images = random_images(generator, 4, 3, 8, 8).to(device)
    for layer in network.modules():
        if isinstance(layer, Standardize):
            layer.fit(images)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    outputs: list[Tensor] = []
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda _, __, output: outputs.append(output))
    images = images.contiguous(memory_format=torch.channels_last)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = network(images).float().square().mean()
    loss.backward()
    assert len(outputs) > 15
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in outputs)
    gradients = [each.grad for each in network.parameters()]
    assert all(each is not None and each.isfinite().all() for each in gradients)


@pytest.mark.parametrize("name", IMAGE_BACKBONES)
def test_dropout_is_in_every_block_and_not_before_the_heads(name: str) -> None:
    backbone = build_backbone(name, (3, 8, 8), dropout=0.3)
    seen: list[tuple[str, Tensor]] = []
    for path, layer in backbone.named_modules():
        if path.endswith(("conv1", "dropout", "conv2")):
            layer.register_forward_hook(
                lambda _, inputs, __, path=path: seen.append((path.split(".")[-1], inputs[0]))
            )
    backbone(torch.rand(2, 3, 8, 8))
    blocks = {"resnet18": 8, "wrn-28-4": 12}[name]
    assert [part for part, _ in seen] == ["conv1", "dropout", "conv2"] * blocks
    assert all((inputs >= 0).all() for _, inputs in seen[1::3])  # after the rectifier
    sample = torch.zeros(2, 3, 8, 8)
    network = Network.on(backbone, sample, num_heads=1, num_classes=3, dropout=0.3)
    assert network.dropout.p == 0
    assert network.dropout_rate == 0.3
    with pytest.raises(cl.CredalError, match=r"built with 0\.3"):
        Network.on(backbone, sample, num_heads=1, num_classes=3)
