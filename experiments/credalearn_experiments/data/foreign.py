"""Foreign sets: images of what no training set holds, to tell from those that it does.

All are resized to the size of the training images (Pillow's bilinear). Only images are read; what
they show does not matter.
"""

import gzip
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.images import image_files, read_images, resize
from credalearn_experiments.data.reading import naming

AT_MOST = 10_000  # images of Places365 (36,500) and ImageNet (50,000): as many as CIFAR's test


class ForeignLoader(Protocol):
    """Reads one foreign set."""

    def __call__(self, folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
        """Images, uint8, shape (N, 3, size, size); at most ``limit``, the first ones."""


def svhn(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 26,032 test images of SVHN, house numbers, from ``test_32x32.mat``.

    Raises:
        CredalError: If the file is missing or damaged.
    """
    from scipy.io import loadmat  # here, since only this set needs it

    get = "put http://ufldl.stanford.edu/housenumbers/test_32x32.mat into svhn/ of the data folder"
    path = folders.find("svhn/test_32x32.mat", "test_32x32.mat", what="SVHN", get=get)
    with naming(path, "SVHN's test images", get=get):
        pixels = loadmat(path, variable_names=["X"])["X"]  # (row, column, channel, image)
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[2] != 3:
            raise CredalError(
                f"X must be uint8 of shape (32, 32, 3, images); it is {pixels.dtype} of shape "
                f"{pixels.shape}"
            )
    return resize(pixels.transpose(3, 0, 1, 2)[:limit], size)


def fashion_mnist(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 10,000 test images of Fashion-MNIST; gray becomes RGB, 28 pixels are resized.

    Raises:
        CredalError: If the file is missing or damaged.
    """
    get = (
        "put t10k-images-idx3-ubyte.gz from https://github.com/zalandoresearch/fashion-mnist into "
        "fashion-mnist/ of the data folder"
    )
    name = "fashion-mnist/t10k-images-idx3-ubyte"
    path = folders.find(f"{name}.gz", name, what="Fashion-MNIST", get=get)
    with naming(path, "an idx file of images", get=get):
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        magic, count, height, width = np.frombuffer(content[:16], ">u4").tolist()
        if magic != 0x803 or count * height * width != len(content) - 16:
            raise CredalError(
                f"its head (0x{magic:x}, {count} images of {height} x {width}) does not fit its "
                f"{len(content)} bytes"
            )
        gray = np.frombuffer(content, np.uint8, offset=16).reshape(count, height, width)
    return resize(np.repeat(gray[:limit, :, :, None], 3, axis=3), size)


def places365(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """Photographs of Places365: ``places365/val_256``, or whatever images ``places365`` holds.

    At most 10,000, evenly spread over the sorted files.

    Raises:
        CredalError: If the folder is missing or has no image, or an image is damaged.
    """
    get = (
        "unpack http://data.csail.mit.edu/places/places365/val_256.tar into places365/ of the data "
        "folder"
    )
    folder = folders.find("places365/val_256", "places365", what="Places365", get=get)
    files = spread(image_files(folder), AT_MOST)
    return read_images(files[:limit], size, label="Places365")


def imagenet(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """Photographs of ImageNet's validation set, ``imagenet/val``, with or without class folders.

    At most 10,000, evenly spread over the sorted files: the first ones would be of a fifth of the
    classes.

    Raises:
        CredalError: If the folder is missing or has no image, or an image is damaged.
    """
    get = (
        "unpack ILSVRC2012_img_val.tar of https://image-net.org into "
        "imagenet/val/ of the data folder"
    )
    folder = folders.find("imagenet/val", what="ImageNet", get=get)
    return read_images(spread(image_files(folder), AT_MOST)[:limit], size, label="ImageNet")


def tiny_imagenet(folders: DataFolders, size: int, limit: int | None = None) -> Tensor:
    """The 10,000 validation images of Tiny-ImageNet, or a sheet of some of them.

    ``tiny-imagenet-200/val/images`` comes first. The sheet ``ood/tiny_imagenet_32px_2500.png``
    holds 2,500 at 32 pixels: row = image, column = pixel in reading order.

    Raises:
        CredalError: If neither is there, or an image is damaged.
    """
    get = "unpack http://cs231n.stanford.edu/tiny-imagenet-200.zip in the data folder"
    sheet = "ood/tiny_imagenet_32px_2500.png"
    folder = "tiny-imagenet-200/val/images"
    path = folders.find(folder, sheet, what="Tiny-ImageNet", get=get)
    if path.is_dir():
        return read_images(image_files(path)[:limit], size, label="Tiny-ImageNet")
    with naming(path, "a sheet of images", get=get), Image.open(path) as image:
        rows = np.asarray(image.convert("RGB"))
        side = round(rows.shape[1] ** 0.5)
        images = rows.reshape(len(rows), side, side, 3)
    return resize(images[:limit], size)


def spread(items: list[Path], at_most: int) -> list[Path]:
    """At most so many items, evenly spread, in their order.

    Example:
        >>> [path.name for path in spread([Path(name) for name in "abcdefgh"], 3)]
        ['a', 'c', 'f']
    """
    if len(items) <= at_most:
        return items
    return [items[number * len(items) // at_most] for number in range(at_most)]
