"""Backbones by name, of this package and of others, their files of weights, and heads on them."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import credalearn as cl
from credalearn.nets import BACKBONES, MLP, Network, ResNet18, build_backbone
from random_sets import random_images


def test_every_backbone_is_found_by_name() -> None:
    for name in BACKBONES:
        shape = (4,) if name in ("linear", "mlp") else (3, 8, 8)
        assert build_backbone(name, shape, dropout=0.2)(torch.zeros(2, *shape)).ndim == 2
    unknown: Any
    for unknown in ("vgg", "timm:", "torch:x", "", "mlp:", None, ["mlp"]):
        with pytest.raises(cl.CredalError, match=f"got {re.escape(repr(unknown))}"):
            build_backbone(unknown, (3, 8, 8))


@pytest.mark.parametrize("name", ["resnet18", "wrn-28-4", "torchvision:densenet121"])
def test_image_backbones_take_images_only(name: str) -> None:
    for shape in ((4,), (1, 3, 8, 8), (3, 0, 8), (32, 32, 3)):
        with pytest.raises(cl.CredalError, match=f"backbone '{name}' takes images"):
            build_backbone(name, shape)


@pytest.mark.parametrize("package", ["torchvision", "timm"])
def test_names_a_missing_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # an import of it then fails
    message = f"'{package}:resnet18' needs {package}, .*To fix: pip install {package}"
    with pytest.raises(cl.CredalError, match=message):
        build_backbone(f"{package}:resnet18", (3, 8, 8))


def test_densenet_starts_from_a_published_file(tmp_path: Path, generator: torch.Generator) -> None:
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    name, shape = "torchvision:densenet121", (3, 32, 32)
    torch.manual_seed(0)
    first = build_backbone(name, shape).eval()
    images = random_images(generator, 2, *shape)
    assert first(images).shape == (2, 1024)
    assert sum(weight.numel() for weight in first.parameters()) == 6_953_856  # 7,978,856 with fc
    # The published file has a classifier, and the names that DenseNet's layers had in 2017.
    published = {"classifier.weight": torch.zeros(1000, 1024), "classifier.bias": torch.zeros(1000)}
    for key, tensor in first.network.state_dict().items():  # type: ignore[union-attr]
        if "num_batches_tracked" in key:
            continue
        for part in ("norm1", "norm2", "conv1", "conv2"):
            if "denselayer" in key:
                key = key.replace(part, f"{part[:4]}.{part[4]}")
        published[key] = tensor
    assert "features.denseblock1.denselayer1.norm.1.weight" in published
    path = tmp_path / "densenet121.pth"
    torch.save(published, path)
    second = build_backbone(name, shape, weights=path).eval()
    assert_close(second(images), first(images), atol=0, rtol=0)
    del published["features.conv0.weight"]
    torch.save(published, path)
    with pytest.raises(cl.CredalError, match=r"densenet121\.pth do not fit DenseNet"):
        build_backbone(name, shape, weights=path)
    with pytest.raises(cl.CredalError, match=r"no file .*absent\.pth.* download .* from https"):
        build_backbone(name, shape, weights=tmp_path / "absent.pth")
    with pytest.raises(cl.CredalError, match="takes images of 3 channels; X has 1"):
        build_backbone(name, (1, 32, 32))
    with pytest.raises(cl.CredalError, match=r"no such backbone, .inception_v3."):
        build_backbone("torchvision:inception_v3", shape)


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
