"""Random changes to images, for a whole epoch at once and on the device that holds them.

Shapes: N images, C channels, H pixels high, W pixels wide.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

# Inputs (N, ...) changed at random, from the generator or torch's own; as many and of one shape.
Augment = Callable[[Tensor, Generator | None], Tensor]


def crop(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Each image shifted by up to an eighth of its size: :func:`crop_and_flip` without the mirror.

    Args:
        images: Shape (N, C, H, W), pixels of any type; black is 0.
        generator: Of the images' device; torch's own where none is given.

    Returns:
        Images like those given, shape (N, C, H, W).

    Example:
        >>> row = torch.arange(1, 9).expand(1, 1, 8, 8)
        >>> int(crop(row).max()) in (7, 8)  # at most one pixel is gone at a side
        True
    """
    return _shifted(images, generator, flip=False)


def crop_and_flip(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Each image shifted by up to an eighth of its size, half of them mirrored left to right.

    This is a random crop of the image with black around it: 4 px for images of 32. One gather does
    both for all images, and leaves them in channels-last order in memory.

    Args:
        images: Shape (N, C, H, W), pixels of any type; black is 0.
        generator: Of the images' device; torch's own where none is given.

    Returns:
        Images like those given, shape (N, C, H, W).

    Example:
        >>> images = torch.ones(2, 3, 32, 32, dtype=torch.uint8)
        >>> crop_and_flip(images).shape, crop_and_flip(images).dtype
        (torch.Size([2, 3, 32, 32]), torch.uint8)
    """
    return _shifted(images, generator, flip=True)


# What users call them.
AUGMENTS: dict[str, Augment | None] = {"none": None, "crop": crop, "crop-flip": crop_and_flip}


def _shifted(images: Tensor, generator: Generator | None, *, flip: bool) -> Tensor:
    count, _, height, width = images.shape
    high, wide = height // 8, width // 8
    padded = pad(images, (wide, wide, high, high))

    def below(end: int) -> Tensor:
        return torch.randint(end, (count, 1), device=images.device, generator=generator)

    rows = below(2 * high + 1) + torch.arange(height, device=images.device)
    columns = below(2 * wide + 1) + torch.arange(width, device=images.device)
    if flip:
        columns = torch.where(below(2) == 1, columns.flip(1), columns)
    items = torch.arange(count, device=images.device)
    chosen = padded[items[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2)
