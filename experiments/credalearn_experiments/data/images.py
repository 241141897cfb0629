"""Images from files and arrays: RGB, one size, uint8, in a fixed order.

Images are resized by Pillow's bilinear filter, without keeping proportions. Shapes: N images.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from credalearn.app import images as application
from credalearn.errors import CredalError


def resize(images: NDArray[np.uint8], size: int) -> Tensor:
    """RGB arrays, shape (N, H, W, 3), as uint8 of shape (N, 3, size, size)."""
    resized = torch.empty(len(images), size, size, 3, dtype=torch.uint8)
    for row, image in enumerate(images):
        small = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
        resized[row] = torch.from_numpy(np.array(small))
    return resized.permute(0, 3, 1, 2).contiguous()


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
