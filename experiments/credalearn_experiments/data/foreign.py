"""Foreign images: photographs, digits and clothes that no training set contains.

All are resized by Pillow's bilinear filter, without keeping proportions. Shapes: N images.
"""

import gzip
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from credalearn.app import images as application
from credalearn.errors import CredalError
from credalearn_experiments.data.folders import DataFolders, naming

AT_MOST = 10_000  # images of Places365 (36,500) and ImageNet (50,000): as many as CIFAR's test
Loader = Callable[[DataFolders, int, int | None], Tensor]


def resize(images: NDArray[np.uint8], size: int) -> Tensor:
    """RGB arrays, shape (N, H, W, 3), as uint8 of shape (N, 3, size, size)."""
    pictures, bilinear = map(Image.fromarray, images), Image.Resampling.BILINEAR
    resized = np.stack([np.asarray(each.resize((size, size), bilinear)) for each in pictures])
    return torch.from_numpy(resized).permute(0, 3, 1, 2).contiguous()


def read_images(files: Sequence[Path], size: int) -> Tensor:
    """Image files as uint8 of shape (N, 3, size, size), in their order."""
    images = torch.empty(len(files), 3, size, size, dtype=torch.uint8)
    found = (each for batch in application.read_images(files, size) for each in batch)
    for row, (file, image) in enumerate(found):
        if isinstance(image, str):
            raise CredalError(
                f"{file} could not be read as an image ({image}). To fix: unpack its archive again."
            )
        images[row] = torch.from_numpy(image[0].copy())
    return images


def svhn(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 26,032 test images of SVHN, house numbers, from ``test_32x32.mat``."""
    from scipy.io import loadmat  # only this set needs it

    get = "put http://ufldl.stanford.edu/housenumbers/test_32x32.mat into svhn/ of the data folder"
    path = folders.find("svhn/test_32x32.mat", "test_32x32.mat", what="SVHN", get=get)
    with naming(path, "SVHN's test images", get=get):
        pixels = loadmat(path, variable_names=["X"])["X"]  # (row, column, channel, image)
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[2] != 3:
            raise CredalError(f"X is {pixels.dtype} of shape {pixels.shape}")
    return resize(pixels.transpose(3, 0, 1, 2)[:limit], size)


def fashion_mnist(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 10,000 test images of Fashion-MNIST, 28 px; gray becomes RGB."""
    get = (
        "put t10k-images-idx3-ubyte.gz from https://github.com/zalandoresearch/fashion-mnist into "
        "fashion-mnist/ of the data folder"
    )
    name = "fashion-mnist/t10k-images-idx3-ubyte.gz"
    path = folders.find(name, what="Fashion-MNIST", get=get)
    with naming(path, "an idx file of images", get=get):
        content = gzip.decompress(path.read_bytes())
        magic, count, height, width = np.frombuffer(content[:16], ">u4").tolist()
        if magic != 0x803:
            raise CredalError(f"it starts with 0x{magic:x}, not 0x803")
        gray = np.frombuffer(content, np.uint8, offset=16).reshape(count, height, width)
    return resize(np.repeat(gray[:limit, :, :, None], 3, axis=3), size)


def _photographs(
    names: Sequence[str], get: str, folders: DataFolders, size: int, limit: int | None = None
) -> Tensor:
    """At most 10,000 images of a folder, evenly spread over the sorted files."""
    path = folders.find(*names, what=names[0], get=f"{get} of the data folder")
    files = application.image_files(path)
    count = min(len(files), AT_MOST)
    return read_images([files[n * len(files) // count] for n in range(count)][:limit], size)


def tiny_imagenet(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 10,000 validation images of Tiny-ImageNet, or a sheet of 2,500 with one image per row."""
    get = "unpack http://cs231n.stanford.edu/tiny-imagenet-200.zip in the data folder"
    names = ("tiny-imagenet-200/val/images", "ood/tiny_imagenet_32px_2500.png")
    path = folders.find(*names, what="Tiny-ImageNet", get=get)
    if path.is_dir():
        return read_images(application.image_files(path)[:limit], size)
    with naming(path, "a sheet of images", get=get), Image.open(path) as image:
        rows = np.asarray(image.convert("RGB"))
        side = round(rows.shape[1] ** 0.5)
        images = rows.reshape(len(rows), side, side, 3)
    return resize(images[:limit], size)


FOREIGN: dict[str, Loader] = {
    "svhn": svhn,
    "places365": partial(
        _photographs,
        ("places365/val_256", "places365"),
        "unpack http://data.csail.mit.edu/places/places365/val_256.tar into places365/",
    ),
    "fashion-mnist": fashion_mnist,
    "imagenet": partial(
        _photographs,
        ("imagenet/val",),
        "unpack ILSVRC2012_img_val.tar of https://image-net.org into imagenet/val/",
    ),
    "tiny-imagenet": tiny_imagenet,
}
"""Loaders of foreign images: given the folders, the size in pixels and the maximum number.

They return uint8 of shape (N, 3, size, size).
"""
