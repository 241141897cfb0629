"""The paper's teachers: public networks for CIFAR whose outputs or features others learn from.

Names and structure are those of github.com/chenyaofo/pytorch-cifar-models, so that its files load
unchanged. Each maps normalized images (N, 3, 32, 32) to logits (N, K) for K classes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from credalearn._checks import check_choice
from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.nets.backbones import imported, load_weights, read_weights
from credalearn.nets.residual import conv, he_init
from credalearn_experiments.data.folders import DataFolders, refuse

_SOURCE = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download"
_BATCH = 500
Dataset = Literal["cifar10", "cifar100"]
Triple = tuple[float, float, float]


class ResNet20(nn.Module):
    """ResNet-20 (He et al., 2016): three groups of three blocks of 16, 32 and 64 channels."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = conv(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(
                _BasicBlock(width_in, width, stride=1 if width_in == width else 2),
                *(_BasicBlock(width, width, stride=1) for _ in range(2)),
            )
            for width_in, width in ((16, 16), (16, 32), (32, 64))
        )
        self.fc = nn.Linear(64, num_classes)
        he_init(self)

    def features(self, images: Tensor) -> Tensor:
        """The inputs of the classifier, shape (N, 64)."""
        hidden = relu(self.bn1(self.conv1(images)))
        return self.layer3(self.layer2(self.layer1(hidden))).mean((2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (N, K)."""
        return self.fc(self.features(images))


class _BasicBlock(nn.Module):
    def __init__(self, width_in: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(width_in, width, stride=stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if width_in != width:
            narrow = conv(width_in, width, size=1, stride=stride)
            self.downsample = nn.Sequential(narrow, nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = relu(self.bn1(self.conv1(inputs)))
        return relu(self.bn2(self.conv2(hidden)) + self.downsample(inputs))


def mobilenet_v2(num_classes: int) -> nn.Module:
    """MobileNetV2 (Sandler et al., 2018): half the channels, three halvings instead of five."""
    # Of each group: how much wider a block is inside, channels, blocks, stride of the first block.
    groups = (
        *((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    )
    models = imported("torchvision", "mobilenetv2").models
    network = models.MobileNetV2(num_classes, 0.5, [*map(list, groups)])
    network.features[0][0].stride = (1, 1)
    return network


def shufflenet_v2(num_classes: int) -> nn.Module:
    """ShuffleNetV2 (Ma et al., 2018): half the channels, without the first two halvings."""
    models = imported("torchvision", "shufflenetv2").models
    network = models.ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], num_classes)
    network.conv1[0].stride = (1, 1)
    network.maxpool = nn.Identity()
    return network


TEACHERS: dict[str, Callable[[int], nn.Module]] = {
    "resnet20": ResNet20,
    "shufflenetv2": shufflenet_v2,
    "mobilenetv2": mobilenet_v2,
}
# Release and file of the published weights; the name ends in the start of their SHA-256.
WEIGHTS: dict[tuple[str, Dataset], str] = {
    ("resnet20", "cifar10"): "resnet/cifar10_resnet20-4118986f.pt",
    ("resnet20", "cifar100"): "resnet/cifar100_resnet20-23dac2f1.pt",
    ("shufflenetv2", "cifar10"): "shufflenetv2/cifar10_shufflenetv2_x0_5-1308b4e9.pt",
    ("shufflenetv2", "cifar100"): "shufflenetv2/cifar100_shufflenetv2_x0_5-1977720f.pt",
    ("mobilenetv2", "cifar10"): "mobilenetv2/cifar10_mobilenetv2_x0_5-ca14ced9.pt",
    ("mobilenetv2", "cifar100"): "mobilenetv2/cifar100_mobilenetv2_x0_5-9f915757.pt",
}
# Number of classes, and mean and standard deviation of each channel as shares of 255.
_INPUTS: dict[str, tuple[int, Triple, Triple]] = {
    "cifar10": (10, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": (100, (0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}


def teacher_logits(
    name: str, images: Tensor, folders: DataFolders, *, dataset: Dataset, device: torch.device
) -> Tensor:
    """Logits (N, K), float32, on the CPU, of a teacher that was trained on ``dataset``."""
    teacher = load_teacher(name, folders, dataset=dataset).to(device)
    return _in_batches(teacher, images, dataset, device)


def teacher_features(images: Tensor, folders: DataFolders) -> Tensor:
    """Inputs (N, 64) of the classifier of CIFAR-10's ResNet-20, float32, on the CPU."""
    teacher = load_teacher("resnet20", folders, dataset="cifar10")
    assert isinstance(teacher, ResNet20)
    return _in_batches(teacher.features, images, "cifar10", torch.device("cpu"))


class CifarBackbone(nn.Module):
    """Features (N, 64) of a ResNet-20 of pixels 0 to 255; from scratch if there are no folders."""

    def __init__(self, folders: DataFolders | None) -> None:
        super().__init__()
        known = folders and load_teacher("resnet20", folders, dataset="cifar10")
        self.network = known or ResNet20(10)
        _, *scale = _INPUTS["cifar10"]
        self.register_buffer("scale", torch.tensor(scale).view(2, 3, 1, 1))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.train()

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, 64)."""
        assert isinstance(self.network, ResNet20)
        assert isinstance(self.scale, Tensor)
        mean, std = self.scale
        given = (images / 255 - mean) / std
        return self.network.features(given.contiguous(memory_format=torch.channels_last))


def load_teacher(name: str, folders: DataFolders, *, dataset: Dataset) -> nn.Module:
    """The teacher with its published weights, in evaluation mode, on the CPU."""
    check_choice(name, TEACHERS, name="teacher")
    file = Path(WEIGHTS[name, dataset])
    get = f"download {_SOURCE}/{file.as_posix()} into teachers/ of the data folder"
    path = folders.find(f"teachers/{file.name}", what=f"the teacher {name} for {dataset}", get=get)
    digest, official = sha256_of(path)[:8], file.stem[-8:]
    if digest != official:
        refuse(path, f"its SHA-256 starts with {digest}, not {official}", get=get)
    network = TEACHERS[name](_INPUTS[dataset][0])
    load_weights(network, read_weights(path), source=path)
    return network.eval()


def _in_batches(
    network: Callable[[Tensor], Tensor], images: Tensor, dataset: Dataset, device: torch.device
) -> Tensor:
    """Outputs of the network for normalized images, on the CPU."""
    if images.dtype != torch.uint8 or tuple(images.shape[1:]) != (3, 32, 32):
        raise CredalError(
            "the images of a teacher must be uint8 of shape (items, 3, 32, 32); got "
            f"{images.dtype} of {tuple(images.shape)}. To fix: pass CIFAR's images as they are."
        )
    _, *scale = _INPUTS[dataset]
    mean, std = (torch.tensor(each, device=device).view(3, 1, 1) for each in scale)
    with torch.no_grad():
        batches = torch.split(images, _BATCH)
        return torch.cat([network((x.to(device) / 255 - mean) / std).cpu() for x in batches])
