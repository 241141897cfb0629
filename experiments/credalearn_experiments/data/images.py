"""Images from files and arrays: RGB, one size, uint8, in an order that does not vary.

Resizing is Pillow's bilinear, which averages over the pixels it drops; sides are not kept in
proportion. Shapes: N images.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.reading import naming

_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm"}
_SECONDS_BETWEEN_LINES = 5.0
_AGAIN = "unpack the archive that it comes from again"


def resize(images: NDArray[np.uint8], size: int) -> Tensor:
    """A stack of RGB arrays at one size.

    Args:
        images: uint8, shape (N, H, W, 3).
        size: The side wanted, in pixels.

    Returns:
        uint8, shape (N, 3, size, size).

    Example:
        >>> resize(np.full((1, 28, 28, 3), 7, np.uint8), 32).unique().tolist()
        [7]
    """
    if images.shape[1:3] == (size, size):
        return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    resized = torch.empty(len(images), 3, size, size, dtype=torch.uint8)
    for row, image in enumerate(images):
        resized[row] = _pixels(Image.fromarray(image), size)
    return resized


def image_files(folder: Path) -> list[Path]:
    """Every image under a folder at any depth, sorted by its path from there.

    Hidden files are left out: they are other systems' notes (``._1.jpg``).

    Raises:
        CredalError: If there is none.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("b.JPEG", "a.png", "._a.png", "notes.txt"):
        ...     (folder / name).touch()
        >>> [path.name for path in image_files(folder)]
        ['a.png', 'b.JPEG']
    """
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")
    ]
    if not found:
        raise CredalError(
            f"{folder} must hold images ({', '.join(sorted(_SUFFIXES))}), at any depth; "
            f"it holds none. To fix: {_AGAIN}."
        )
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def read_images(files: Sequence[Path], size: int, *, label: str) -> Tensor:
    """Image files at one size, in their order, with a line on standard error now and then.

    Args:
        files: N files that Pillow reads.
        size: The side wanted, in pixels.
        label: What is being read, for the lines.

    Returns:
        uint8, shape (N, 3, size, size).

    Raises:
        CredalError: If a file is not an image, or is damaged.
    """
    images = torch.empty(len(files), 3, size, size, dtype=torch.uint8)

    def read(row: int) -> None:
        with naming(files[row], "an image", get=_AGAIN), Image.open(files[row]) as image:
            images[row] = _pixels(image, size)

    last_line = time.monotonic()
    # Pillow decodes outside the interpreter's lock: 16 cores read 10,000 photographs in seconds.
    with ThreadPoolExecutor() as pool:
        for done, _ in enumerate(pool.map(read, range(len(files))), start=1):
            if time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                print(f"{label}: {done:,} of {len(files):,} images read", file=sys.stderr)
    return images


def _pixels(image: Image.Image, size: int) -> Tensor:
    rgb = image.convert("RGB")
    if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(rgb)).permute(2, 0, 1)
