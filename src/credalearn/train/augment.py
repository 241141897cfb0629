"""Random changes to images, for a whole epoch at once and on their device.

Shapes: N images, C channels, H pixels high, W pixels wide.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

# Inputs (N, ...), changed at random, from the generator or torch's own; the shape stays.
Augment = Callable[[Tensor, Generator | None], Tensor]


def crop(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Each image (N, C, H, W) shifted by up to an eighth of its size; what is outside is 0."""
    return _shifted(images, generator, flip=False)


def crop_and_flip(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Each image shifted as by :func:`crop`, and half of them mirrored left to right."""
    return _shifted(images, generator, flip=True)


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
