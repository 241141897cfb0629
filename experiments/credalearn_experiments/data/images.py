"""Images from files and arrays: RGB, one size, uint8, in a fixed order.

Images are resized by Pillow's bilinear filter, without keeping proportions. Shapes: N images.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.folders import naming

_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm"}
_GET = "unpack its archive again"


def resize(images: NDArray[np.uint8], size: int) -> Tensor:
    """RGB arrays, shape (N, H, W, 3), as uint8 of shape (N, 3, size, size)."""
    if images.shape[1:3] == (size, size):
        return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    resized = torch.empty(len(images), 3, size, size, dtype=torch.uint8)
    for row, image in enumerate(images):
        resized[row] = _pixels(Image.fromarray(image), size)
    return resized


def image_files(folder: Path) -> list[Path]:
    """Every image below a folder but hidden files, sorted by its relative path."""
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")
    ]
    if not found:
        raise CredalError(f"{folder} must contain images; it has none. To fix: {_GET}.")
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def read_images(files: Sequence[Path], size: int) -> Tensor:
    """Image files as uint8 of shape (N, 3, size, size), in their order."""
    images = torch.empty(len(files), 3, size, size, dtype=torch.uint8)

    def read(row: int) -> None:
        with naming(files[row], "an image", get=_GET), Image.open(files[row]) as image:
            images[row] = _pixels(image, size)

    # Pillow decodes outside the interpreter's lock: 16 cores read 10,000 photographs in seconds.
    with ThreadPoolExecutor() as pool:
        list(pool.map(read, range(len(files))))
    return images


def _pixels(image: Image.Image, size: int) -> Tensor:
    rgb = image.convert("RGB")
    if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(rgb)).permute(2, 0, 1)
