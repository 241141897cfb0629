"""The paper's teachers: public networks for CIFAR whose soft labels or features others learn from.

Their weights are the state dicts of github.com/chenyaofo/pytorch-cifar-models, from files that the
user downloads. The end of a file's name is the start of its SHA-256; other weights than the
published ones are read where ``CREDALEARN_UNVERIFIED=1`` asks for it.

Shapes: N items, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from credalearn._checks import check_choice
from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.nets.cifar_teachers import MobileNetV2, ResNet20, ShuffleNetV2
from credalearn.nets.weights import load_weights, read_weights
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.reading import refuse

_SOURCE = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download"
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTeacher:
    """A network and where its weights are.

    Args:
        build: Makes the network for so many classes.
        release: The release of the source that holds its files.
        model: What the files' names call it.
        digests: Of each data set's file, the start of its SHA-256.
    """

    build: Callable[[int], nn.Module]
    release: str
    model: str
    digests: dict[str, str]


TEACHERS: dict[str, PublishedTeacher] = {
    "resnet20": PublishedTeacher(
        build=ResNet20,
        release="resnet",
        model="resnet20",
        digests={"cifar10": "4118986f", "cifar100": "23dac2f1"},
    ),
    "shufflenetv2": PublishedTeacher(
        build=ShuffleNetV2,
        release="shufflenetv2",
        model="shufflenetv2_x0_5",
        digests={"cifar10": "1308b4e9", "cifar100": "1977720f"},
    ),
    "mobilenetv2": PublishedTeacher(
        build=MobileNetV2,
        release="mobilenetv2",
        model="mobilenetv2_x0_5",
        digests={"cifar10": "ca14ced9", "cifar100": "9f915757"},
    ),
}


@dataclass(frozen=True, slots=True)
class _Inputs:
    """How the teachers of one data set want their images: shares of 255, then normalized."""

    num_classes: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


_INPUTS = {
    "cifar10": _Inputs(10, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": _Inputs(100, (0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}


def teacher_logits(
    name: str,
    images: Tensor,
    folders: DataFolders,
    *,
    dataset: Literal["cifar10", "cifar100"],
    device: torch.device,
) -> Tensor:
    """What a teacher says of images: logits (N, K), float32, on the CPU.

    Args:
        name: A key of ``TEACHERS``.
        images: uint8, shape (N, 3, 32, 32).
        folders: Where ``teachers/`` lies.
        dataset: What it was trained on, which the images are of.
        device: Where to compute.

    Raises:
        CredalError: If a name or the images are not what they must be, or the teacher's file is
            missing, damaged or another network's.
    """
    _check_images(images)
    teacher = load_teacher(name, folders, dataset=dataset).to(device)
    return _in_batches(teacher, images, _INPUTS[dataset], device)


def teacher_features(images: Tensor, folders: DataFolders) -> Tensor:
    """What the classifier of CIFAR-10's ResNet-20 is given: features (N, 64), float32, on the CPU.

    10,000 images take 16 s on one core.

    Args:
        images: uint8, shape (N, 3, 32, 32).
        folders: Where ``teachers/`` lies.

    Raises:
        CredalError: As for :func:`teacher_logits`.
    """
    _check_images(images)
    teacher = load_teacher("resnet20", folders, dataset="cifar10")
    assert isinstance(teacher, ResNet20)
    return _in_batches(teacher.features, images, _INPUTS["cifar10"], torch.device("cpu"))


def load_teacher(
    name: str, folders: DataFolders, *, dataset: Literal["cifar10", "cifar100"]
) -> nn.Module:
    """The teacher with its published weights, in evaluation mode, on the CPU.

    Raises:
        CredalError: If there is no such teacher or data set, or the file is missing, damaged, not
            the published one or another network's.
    """
    check_choice(name, TEACHERS, name="teacher")
    check_choice(dataset, _INPUTS, name="dataset")
    path = _find(name, folders, dataset)
    _check_digest(path, name, dataset)
    network = TEACHERS[name].build(_INPUTS[dataset].num_classes)
    load_weights(network, read_weights(path), source=path)
    return network.eval()


def _check_images(images: Tensor) -> None:
    if images.dtype != torch.uint8 or tuple(images.shape[1:]) != (3, 32, 32):
        raise CredalError(
            "a teacher takes images as uint8 of shape (items, 3, 32, 32); got "
            f"{images.dtype} of {tuple(images.shape)}. To fix: give CIFAR's images as they are."
        )


def _in_batches(
    network: Callable[[Tensor], Tensor], images: Tensor, inputs: _Inputs, device: torch.device
) -> Tensor:
    """What the network says of the images, normalized as it wants them, on the CPU."""
    mean = torch.tensor(inputs.mean, device=device).view(3, 1, 1)
    std = torch.tensor(inputs.std, device=device).view(3, 1, 1)
    with torch.no_grad():
        said = [
            network((batch.to(device) / 255 - mean) / std).cpu()
            for batch in torch.split(images, _BATCH)
        ]
    return torch.cat(said)


def _find(name: str, folders: DataFolders, dataset: str) -> Path:
    """The published file; else any other of the same network, whose name states its digest too."""
    teacher = TEACHERS[name]
    start = f"{dataset}_{teacher.model}-"
    file = f"{start}{teacher.digests[dataset]}.pt"
    if folders.look(f"teachers/{file}") is None:
        for folder in folders.folders:
            for path in sorted(folder.glob(f"teachers/{start}*.pt")):
                return path
    return folders.find(
        f"teachers/{file}",
        what=f"the teacher {name} for {dataset}",
        get=_get(name, dataset),
    )


def _get(name: str, dataset: str) -> str:
    teacher = TEACHERS[name]
    file = f"{dataset}_{teacher.model}-{teacher.digests[dataset]}.pt"
    return f"download {_SOURCE}/{teacher.release}/{file} into teachers/ of the data folder"


def _check_digest(path: Path, name: str, dataset: str) -> None:
    digest = sha256_of(path)
    stated = path.stem.rpartition("-")[2]
    if len(stated) != 8 or not digest.startswith(stated):
        raise CredalError(
            f"{path} is damaged: its SHA-256 starts with {digest[:8]}, its name ends with "
            f"{stated}. To fix: {_get(name, dataset)}."
        )
    published = TEACHERS[name].digests[dataset]
    if stated != published:
        difference = f"its SHA-256 starts with {stated}, not {published}"
        refuse(path, difference, get=_get(name, dataset))
