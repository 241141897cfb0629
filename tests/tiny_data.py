"""Tiny generated files of every layout that the benchmark reads, for tests without real data.

CIFAR's files and the teachers cannot have the official digests: set ``CREDALEARN_UNVERIFIED=1`` to
read them.
"""

import gzip
import io
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from credalearn import CredalError
from credalearn_experiments.data import DataFolders
from credalearn_experiments.data.teachers import TEACHERS, WEIGHTS, Dataset

CIFAR10_FILES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
DCIC_CLASSES = {
    "MiceBone": ["g", "nr", "ug"],
    "Treeversity#1": ["bark", "bud", "flower", "fruit", "leaf", "whole_plant"],
}
CIFAR_CLASSES: dict[Dataset, int] = {"cifar10": 10, "cifar100": 100}


def write_tiny_data(folder: Path, *, items: int = 40) -> None:
    """Write every task, foreign set and teacher; so many images in each file or set."""
    rng = np.random.default_rng(20261115)
    for name in CIFAR10_FILES:
        y = np.arange(items) % 10
        pixels = tinted(rng, y, 10, 32).reshape(items, 3072)
        write_cifar10(folder, name, pixels, y)
    for name in ("train", "test"):
        y = rng.integers(0, 100, items)
        write_cifar100(folder, name, tinted(rng, y, 100, 32).reshape(items, 3072), y)
    counts = rng.multinomial(51, np.eye(10) * 0.9 + 0.01, size=(items, 10))[:, 3]
    write(folder / "cifar10h/cifar10h-counts.npy", b"")
    np.save(folder / "cifar10h/cifar10h-counts.npy", counts)
    people = {f"random_label{person}": rng.integers(0, 10, 5 * items) for person in (1, 2, 3)}
    clean = np.concatenate([np.arange(items) % 10] * 5)
    people |= {"aggre_label": clean, "worse_label": clean, "clean_label": clean}
    write(folder / "cifar10n/cifar10n.npz", b"")
    np.savez(folder / "cifar10n/cifar10n.npz", **people)  # type: ignore[arg-type]
    for name, classes in DCIC_CLASSES.items():
        write_dcic(folder, name, classes, images_a_fold=max(2, items // 5), rng=rng)
    write_foreign(folder, items, rng)
    write_teachers(folder)


def real_data(*names: str) -> DataFolders:
    """The user's data folders with these files, or a skipped test that says what is missing."""
    try:
        folders = DataFolders.named()
        for name in names:
            folders.find(name, what="a real file for this test", get="see the message")
    except CredalError as error:
        pytest.skip(str(error))
    return folders


def tinted(rng: np.random.Generator, y: NDArray[np.int64], classes: int, size: int) -> NDArray[Any]:
    """Noise with the class's own brightness of red, so that something can be learned."""
    images = rng.integers(0, 200, (len(y), 3, size, size), dtype=np.uint8)
    images[:, 0] = (images[:, 0] // 4 + (200 * y / classes)[:, None, None]).astype(np.uint8)
    return images


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_cifar10(folder: Path, name: str, pixels: NDArray[Any], y: NDArray[Any]) -> None:
    """One binary batch; pixels of shape (items, 3072)."""
    rows = np.concatenate([y[:, None].astype(np.uint8), pixels], axis=1)
    write(folder / "cifar-10-batches-bin" / f"{name}.bin", rows.tobytes())


def write_cifar100(folder: Path, name: str, pixels: NDArray[Any], y: NDArray[Any]) -> None:
    """One binary file; the coarse label is a fifth of the fine one."""
    rows = np.concatenate([np.stack([y // 5, y], 1).astype(np.uint8), pixels], axis=1)
    write(folder / "cifar-100-binary" / f"{name}.bin", rows.tobytes())


def write_dcic(
    folder: Path, name: str, classes: list[str], *, images_a_fold: int, rng: np.random.Generator
) -> None:
    """Three annotators, one of whom now and then says nothing or something else."""
    sets: list[dict[str, Any]] = [
        {"name": f"pass {person}", "dataset_name": name, "annotations": []} for person in range(3)
    ]
    for fold in range(1, 6):
        for row in range(images_a_fold):
            path = f"{name}/fold{fold}/{row:03d}.png"
            y = row % len(classes)
            write_image(folder / path, tinted(rng, np.array([y]), len(classes), 20)[0])
            for person, each in enumerate(sets):
                label = classes[(y + (person == 2 and row % 3 == 1)) % len(classes)]
                said = None if person == 2 and row % 3 == 2 else label
                note = {"image_path": path, "class_label": said, "created_at": "2022-01-01"}
                each["annotations"].append(note)
    write(folder / name / "annotations.json", json.dumps(sets).encode())


def write_foreign(folder: Path, items: int, rng: np.random.Generator) -> None:
    """SVHN, Places365, Fashion-MNIST, ImageNet and Tiny-ImageNet (images and sheet)."""
    images = rng.integers(0, 256, (items, 3, 32, 32), dtype=np.uint8)
    (folder / "svhn").mkdir(parents=True, exist_ok=True)
    labels = np.ones((items, 1), np.uint8)
    savemat(folder / "svhn/test_32x32.mat", {"X": images.transpose(2, 3, 1, 0), "y": labels})
    clothes = gzip.compress(idx(images[:, 0, :28, :28]))
    write(folder / "fashion-mnist/t10k-images-idx3-ubyte.gz", clothes)
    for row, image in enumerate(images):
        write_image(folder / f"places365/val_256/Places365_val_{row:08d}.jpg", image)
        write_image(folder / f"imagenet/val/n{row % 3:08d}/ILSVRC2012_val_{row:08d}.JPEG", image)
        write_image(folder / f"tiny-imagenet-200/val/images/val_{row}.JPEG", image)
    sheet = images.transpose(0, 2, 3, 1).reshape(items, 1024, 3)
    (folder / "ood").mkdir(exist_ok=True)
    Image.fromarray(sheet).save(folder / "ood/tiny_imagenet_32px_2500.png")


def write_teachers(folder: Path) -> None:
    (folder / "teachers").mkdir(parents=True, exist_ok=True)
    for name, content in teachers().items():
        (folder / "teachers" / name).write_bytes(content)


@cache
def teachers() -> dict[str, bytes]:
    """Every teacher with random weights, under the published names of its tensors and its file."""
    found = {}
    for random_state, (name, build) in enumerate(TEACHERS.items()):
        for dataset, num_classes in CIFAR_CLASSES.items():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(random_state)
                network = build(num_classes)
                # Without means and variances of some images it says the same of all of them.
                for layer in network.modules():
                    if isinstance(layer, torch.nn.BatchNorm2d):
                        layer.momentum = 1.0
                network(torch.randn(16, 3, 32, 32))
            partial = io.BytesIO()
            torch.save(network.state_dict(), partial)
            found[Path(WEIGHTS[name, dataset]).name] = partial.getvalue()
    return found


def write_image(path: Path, image: NDArray[Any]) -> None:
    """One image of shape (3, height, width)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image.transpose(1, 2, 0)).save(path)


def idx(images: NDArray[Any]) -> bytes:
    """An idx file of gray images, shape (items, height, width)."""
    return struct.pack(">IIII", 0x803, *images.shape) + images.tobytes()
