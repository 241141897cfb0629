"""Random changes to inputs, for a whole epoch at once and on their device."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

# Inputs (N, ...), changed at random by torch's default generator; the shape stays.
Augment = Callable[[Tensor], Tensor]
# Inputs (N, ...), the partner of each (N,), and how much of itself each should keep (N,): the mixed
# inputs, and how much of itself each has kept.
Mix = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def crop(images: Tensor, *, flip: bool = False) -> Tensor:
    """Each image (N, C, H, W) shifted by up to an eighth of its size; what is outside is 0."""
    count, _, height, width = images.shape
    high, wide = height // 8, width // 8
    padded = pad(images, (wide, wide, high, high))

    def below(end: int) -> Tensor:
        return torch.randint(end, (count, 1), device=images.device)

    rows = below(2 * high + 1) + torch.arange(height, device=images.device)
    columns = below(2 * wide + 1) + torch.arange(width, device=images.device)
    if flip:
        columns = torch.where(below(2) == 1, columns.flip(1), columns)
    items = torch.arange(count, device=images.device)
    chosen = padded[items[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2)


def crop_and_flip(images: Tensor) -> Tensor:
    """Each image shifted as by :func:`crop`, and half of them mirrored left to right."""
    return crop(images, flip=True)


def mixup(inputs: Tensor, partners: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Each input averaged with its partner (Zhang et al., 2018)."""
    weight = kept.view(-1, *[1] * (inputs.ndim - 1))
    mixed = inputs[partners].float().lerp_(inputs.float(), weight)
    return (mixed if inputs.is_floating_point() else mixed.round_()).to(inputs.dtype), kept


def cutmix(inputs: Tensor, partners: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Each image with a rectangle of its partner (Yun et al., 2019); of tables, random columns."""
    count, *sizes = inputs.shape
    if len(sizes) == 3:
        sides = [_inside(size, (1 - kept).sqrt()) for size in sizes[1:]]
        cut = (sides[0][:, :, None] & sides[1][:, None, :])[:, None]
    else:
        places = torch.rand(count, sizes[0], device=inputs.device).argsort(1)
        cut = places < (sizes[0] * (1 - kept)).round()[:, None]
        cut = cut.view(count, -1, *[1] * len(sizes[1:]))
    return torch.where(cut, inputs[partners], inputs), 1 - cut.flatten(1).float().mean(1)


# What changes each image, and what mixes items afterwards.
AUGMENTS: dict[str, tuple[Augment | None, Mix | None]] = {
    "none": (None, None),
    "crop": (crop, None),
    "crop-flip": (crop_and_flip, None),
    "mixup": (crop_and_flip, mixup),
    "cutmix": (crop_and_flip, cutmix),
}


def _inside(size: int, share: Tensor) -> Tensor:
    """Which of ``size`` places are in a random stretch of about this share of them, (N, size)."""
    length = (size * share).round()
    start = (torch.rand_like(share) * (size - length + 1)).floor()
    place = torch.arange(size, device=share.device) - start[:, None]
    return (place >= 0) & (place < length[:, None])
