"""Networks: standardized inputs, features of any backbone."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods import METHODS, Model
from credalearn.nets import (
    BACKBONES,
    MLP,
    Network,
    ResNet18,
    Standardize,
    WideResNet28x4,
    build_backbone,
    known_backbone,
    outside,
    standardize,
)
from credalearn.nets.weights import read_weights
from largest_tensor import LargestTensor

IMAGE_BACKBONES = ["resnet18", "wrn-28-4"]
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def test_standardize_handles_constant_and_large_features() -> None:
    layer = Standardize(3)
    inputs = torch.tensor([[1e6, 5.0, 0.1], [1e6 + 2, 5.0, 0.1]])
    layer.fit(inputs)
    expected = torch.tensor([[-1.0, 0, 0], [1.0, 0, 0]])
    torch.testing.assert_close(layer(inputs), expected, atol=1e-4, rtol=0)


def test_standardize_scales_narrow_features_of_float64_and_whole_numbers() -> None:
    signs = torch.tensor([[-1.0], [1.0], [1.0], [-1.0]], dtype=torch.float64)
    for place, spread in ((1e6, 0.05), (1.7e9, 100.0), (-1e7, 0.5)):
        layer = Standardize(1)
        layer.fit(place + spread * signs)
        assert_close(layer(place + spread * signs), signs.float(), atol=1e-6, rtol=0)
    layer.fit((1_700_000_000 + 3 * signs).long())
    assert layer.scale.item() == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_feature_that_is_constant_up_to_a_rounding_is_no_feature(dtype: torch.dtype) -> None:
    inputs = torch.full((4, 1), 0.1, dtype=dtype)
    inputs[2:] = torch.nextafter(inputs[2:], torch.ones(2, 1, dtype=dtype))
    layer = Standardize(1)
    layer.fit(inputs)
    assert layer.scale.item() == 1


def test_an_mlp_refuses_images() -> None:
    with pytest.raises(cl.CredalError, match=r"takes a table .* shape \(3, 8, 8\)"):
        MLP((3, 8, 8))


def test_a_backbone_must_return_features() -> None:
    with pytest.raises(cl.CredalError, match=r"one row of features an item.*Flatten gave \(6,\)"):
        Network.on(nn.Flatten(0), torch.zeros(2, 3), num_heads=1, num_classes=2)
    network = Network.on(nn.Conv2d(1, 2, 3), torch.zeros(2, 1, 5, 5), num_heads=2, num_classes=3)
    assert network(torch.zeros(4, 1, 5, 5)).shape == (4, 2, 3)


def random_images(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def test_standardize_takes_a_mean_and_a_spread_of_each_channel(generator: torch.Generator) -> None:
    images = random_images(generator, 50, 3, 6, 5)
    images[:, 1] = images[:, 1] // 9 + 7
    images[:, 2] = 200  # a constant channel becomes 0
    expected = torch.zeros(50, 3, 6, 5)
    for channel in range(2):
        values = images[:, channel].double()
        mean = values.sum() / values.numel()
        spread = ((values - mean) ** 2).sum().div(values.numel()).sqrt()
        expected[:, channel] = ((values - mean) / spread).float()
    for inputs in (images, images.float(), images.double()):
        layer = Standardize(3)
        layer.fit(inputs)
        assert torch.equal(inputs, images.to(inputs.dtype))  # they are the caller's own
        found = layer(inputs)
        assert found.dtype == torch.float32
        assert_close(found, expected, atol=2e-6, rtol=0)
    assert layer.mean.dtype == layer.scale.dtype == torch.float64
    assert layer(images.contiguous(memory_format=torch.channels_last)).is_contiguous(
        memory_format=torch.channels_last
    )


def test_standardize_fits_in_chunks_to_the_same_numbers(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = random_images(generator, 103, 3, 8, 8)
    whole, parts = Standardize(3), Standardize(3)
    whole.fit(images)
    monkeypatch.setattr(standardize, "_CHUNK", 10 * images[0].numel())
    with LargestTensor() as largest:
        parts.fit(images)
    assert_close(parts.state_dict(), whole.state_dict(), atol=0, rtol=1e-13)
    assert largest.numel <= 10 * images[0].numel()
    monkeypatch.setattr(standardize, "_CHUNK", 1)  # an item is the least
    parts.fit(images)
    assert_close(parts.state_dict(), whole.state_dict(), atol=0, rtol=1e-13)


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
    ("build", "written_out"),
    [(ResNet18, Slow.resnet18), (WideResNet28x4, Slow.wrn_28_4)],
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
    network = Network.on(
        build_backbone(name, (3, 32, 32)),
        torch.zeros(1, 3, 32, 32),
        num_heads=1,
        num_classes=10,
    )
    assert sum(weight.numel() for weight in network.parameters()) == expected


def test_first_weights_are_drawn_by_he() -> None:
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
    seen: list[bool] = []
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(
                lambda _, inputs, output: seen.append(
                    all(
                        each.is_contiguous(memory_format=torch.channels_last)
                        for each in (*inputs, output)
                    )
                )
            )
    images = images.contiguous(memory_format=torch.channels_last)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = network(images).float().square().mean()
    loss.backward()
    assert all(seen)
    assert len(seen) > 15
    assert all(
        each.grad is not None and each.grad.isfinite().all() for each in network.parameters()
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("name", IMAGE_BACKBONES)
def test_image_backbones_are_captured_in_a_cuda_graph(
    name: str, generator: torch.Generator
) -> None:
    network = build_backbone(name, (3, 8, 8), dropout=0.3).cuda()
    images = random_images(generator, 4, 3, 8, 8).cuda()

    def step() -> Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss: Tensor = network(images).float().square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    found = set()
    for _ in range(3):
        graph.replay()
        found.add(loss.item())
    assert len(found) == 3  # dropout draws anew at every replay


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, on import
def test_a_compiled_network_computes_the_same(generator: torch.Generator) -> None:
    """Here by torch's own stand-in for a compiler; test_together.py compiles on a GPU."""
    network = Network(ResNet18((3, 8, 8)), num_features=512, num_heads=2, num_classes=3).eval()
    images = torch.rand(2, 3, 8, 8, generator=generator)
    with torch.compiler.set_stance("force_eager"):
        assert_close(network.compiled()(images), network(images))


@pytest.mark.parametrize("name", IMAGE_BACKBONES)
def test_dropout_stands_in_every_block_and_not_before_the_heads(name: str) -> None:
    backbone = build_backbone(name, (3, 8, 8), dropout=0.3)
    blocks = [each for each in backbone.modules() if hasattr(each, "conv2")]
    assert len(blocks) == {"resnet18": 8, "wrn-28-4": 12}[name]
    for block in blocks:
        seen: list[tuple[str, Tensor]] = []
        for part in ("conv1", "dropout", "conv2"):
            block.get_submodule(part).register_forward_hook(
                lambda _, inputs, __, part=part, seen=seen: seen.append((part, inputs[0]))
            )
        first, dropout = block.get_submodule("conv1"), block.get_submodule("dropout")
        assert isinstance(first, nn.Conv2d)
        assert isinstance(dropout, nn.Dropout)
        assert dropout.p == 0.3
        block(torch.rand(2, first.in_channels, 4, 4))
        assert [part for part, _ in seen] == ["conv1", "dropout", "conv2"]
        assert (seen[1][1] >= 0).all()  # after the rectifier
    sample = torch.zeros(2, 3, 8, 8)
    network = Network.on(backbone, sample, num_heads=1, num_classes=3, dropout=0.3)
    assert network.dropout.p == 0
    assert network.dropout_rate == 0.3
    with pytest.raises(cl.CredalError, match=r"was built with 0\.3; the method needs 0\.0"):
        Network.on(backbone, sample, num_heads=1, num_classes=3)
    table = Network.on(MLP((4,)), torch.zeros(2, 4), num_heads=1, num_classes=3, dropout=0.3)
    assert table.dropout.p == table.dropout_rate == 0.3


def test_members_must_have_the_methods_dropout_wherever_it_stands() -> None:
    sample, labels = torch.zeros(2, 3, 8, 8), cl.precise(torch.eye(2))
    for rate, method, other in ((0.3, "mc-dropout", "softmax"), (0.0, "softmax", "mc-dropout")):
        backbone = ResNet18((3, 8, 8), dropout=rate)
        network = Network.on(backbone, sample, num_heads=1, num_classes=2, dropout=rate)
        model = Model.from_members(METHODS[method], [network], sample, labels, random_state=0)
        assert model.members == (network,)
        with pytest.raises(cl.CredalError, match=rf"with dropout .*; one has {rate}. To fix"):
            Model.from_members(METHODS[other], [network], sample, labels, random_state=0)


def test_passes_with_dropout_in_the_blocks_differ_and_repeat(generator: torch.Generator) -> None:
    torch.manual_seed(0)
    images = random_images(generator, 6, 3, 8, 8)
    backbone = ResNet18((3, 8, 8), dropout=0.3)
    backbone.standardize.fit(images)
    network = Network.on(backbone, images, num_heads=1, num_classes=3, dropout=0.3)
    model = Model(METHODS["mc-dropout"], (network,), {}, random_state=0)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    logits = model.outputs(images).logits
    assert logits.shape == (6, 5, 1, 3)
    assert (logits.std(1) > 0).all()
    assert_close(model.outputs(images).logits, logits, atol=0, rtol=0)
    assert_close(network.state_dict(), before)  # normalization has learned nothing


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
    monkeypatch.setattr("credalearn.methods.model._NUMBERS", 1)
    model.outputs(torch.rand(2, 3, 4, 4))
    assert sizes[4:] == [1, 1]


def test_every_backbone_is_found_by_name() -> None:
    for name in BACKBONES:
        assert known_backbone(name)
        shape = (4,) if name == "mlp" else (3, 8, 8)
        assert build_backbone(name, shape, dropout=0.2)(torch.zeros(2, *shape)).ndim == 2
    assert not any(known_backbone(name) for name in ("vgg", "timm:", "torch:x", "", None, MLP))
    with pytest.raises(cl.CredalError, match=r"'mlp', 'resnet18', .*'timm:NAME'; got 'vgg'"):
        build_backbone("vgg", (3, 8, 8))


@pytest.mark.parametrize("name", [*IMAGE_BACKBONES, "torchvision:densenet121"])
def test_image_backbones_take_images_only(name: str) -> None:
    rule = rf"backbone '{name}' takes images \(items, channels, height, width\); one item of X has "
    for shape in ((4,), (8, 8), (1, 3, 8, 8), (3, 0, 8)):
        with pytest.raises(cl.CredalError, match=rule):
            build_backbone(name, shape)
    with pytest.raises(cl.CredalError, match=rule + r".*colors last.*transpose\(0, 3, 1, 2\)"):
        build_backbone(name, (32, 32, 3))


@pytest.mark.parametrize("package", ["torchvision", "timm"])
def test_a_package_that_is_not_there_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "find_spec", lambda name: None)
    message = f"'{package}:resnet18' needs {package}, which is not installed.*pip install {package}"
    with pytest.raises(cl.CredalError, match=message):
        build_backbone(f"{package}:resnet18", (3, 8, 8))


def test_a_torchvision_for_another_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(outside, "find_spec", lambda name: object())
    monkeypatch.setattr(outside, "import_module", fails)
    message = "does not import beside torch .*nms does not exist.*install the torchvision that"
    for package in ("torchvision", "timm"):
        with pytest.raises(cl.CredalError, match=message):
            build_backbone(f"{package}:resnet18", (3, 8, 8))


def test_densenet_is_timms_where_torchvision_does_not_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"timm"}

    def imported(name: str) -> object:
        if name not in there:
            raise RuntimeError("operator torchvision::nms does not exist")
        return object()

    monkeypatch.setattr(outside, "find_spec", lambda name: object())
    monkeypatch.setattr(outside, "import_module", imported)
    name = "torchvision:densenet121"
    assert outside.at_hand(name) == "timm:densenet121"
    assert outside.at_hand("torchvision:resnet18") == "torchvision:resnet18"
    there.add("torchvision")
    assert outside.at_hand(name) == name
    there.clear()
    assert outside.at_hand(name) == name
    message = r"needs torchvision, .*nms does not exist.*, or timm: timm:densenet121 is the same"
    with pytest.raises(cl.CredalError, match=message):
        build_backbone(name, (3, 8, 8))
    monkeypatch.setattr(outside, "find_spec", lambda name: None)
    with pytest.raises(cl.CredalError, match="pip install torchvision, or timm: timm:densenet121"):
        build_backbone(name, (3, 8, 8))


def need(*packages: str) -> None:
    """Skip the test where a package is missing."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed; pip install --no-deps {package} is enough")


def test_densenet_starts_from_a_published_file(tmp_path: Path, generator: torch.Generator) -> None:
    need("torchvision")
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
    message = r"there is no file .*absent\.pth\. To fix: download .* from https://.*densenet121"
    with pytest.raises(cl.CredalError, match=message):
        build_backbone(name, shape, weights=tmp_path / "absent.pth")
    with pytest.raises(cl.CredalError, match="takes images of 3 channels; X has 1"):
        build_backbone(name, (1, 32, 32))
    for unknown in ("torchvision:fasterrcnn_resnet50_fpn", "torchvision:inception_v3"):
        with pytest.raises(cl.CredalError, match=r"no classifier .* that serves as backbone"):
            build_backbone(unknown, shape)


def test_timm_gives_features_of_any_number_of_channels(
    tmp_path: Path, generator: torch.Generator
) -> None:
    need("torchvision", "timm")
    images = random_images(generator, 2, 1, 32, 32)
    torch.manual_seed(0)
    first = build_backbone("timm:resnet10t", (1, 32, 32)).eval()
    assert first(images).shape == (2, 512)
    weights = first.network.state_dict()  # type: ignore[union-attr]
    path = tmp_path / "resnet10t.pt"
    torch.save({**weights, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}, path)
    second = build_backbone("timm:resnet10t", (1, 32, 32), weights=path).eval()
    assert_close(second(images), first(images), atol=0, rtol=0)
    with pytest.raises(cl.CredalError, match="timm has no model 'nonsense'"):
        build_backbone("timm:nonsense", (3, 8, 8))


class Surprise:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code ran",)


def test_weights_are_read_without_running_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "weights.pt"
    for content, message in (
        (Surprise(), "damaged or holds more than tensors"),
        ([torch.zeros(1)], "holds list, not the tensors of a state dict"),
        ({"epoch": 3}, "holds dict, not the tensors of a state dict"),
    ):
        torch.save(content, path)
        with pytest.raises(cl.CredalError, match=message):
            read_weights(path)
    assert not capsys.readouterr().out
    torch.save(nn.Linear(2, 2).state_dict(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(cl.CredalError, match=r"weights\.pt is damaged"):
        read_weights(path)
    with pytest.raises(cl.CredalError, match=r"there is no file .*absent\.pt"):
        read_weights(tmp_path / "absent.pt")
