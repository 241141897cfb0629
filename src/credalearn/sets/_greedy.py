"""Greedy extremes: members that depend on the order of the costs alone."""

from collections.abc import Callable

import torch
from torch import Tensor

# Numbers worked on at once on a CPU. Fewer stay in the cache, but where several threads share each
# operation, they wait for each other: 2^18 is slower on a busy machine, 2^20 with one thread.
_BLOCK = 2**19


def greedy(fill: Callable[..., Tensor], cost: Tensor, *of_items: Tensor, largest: bool) -> Tensor:
    """``fill(order, *of_items)``, with the dearest or the cheapest classes of ``cost`` first."""
    size = max(1, len(cost))
    if cost.device.type == "cpu":
        size = max(1, size * _BLOCK // max(1, *(each.numel() for each in (cost, *of_items))))
    blocks = zip(*(torch.split(each, size) for each in (cost, *of_items)), strict=True)
    return torch.cat([fill(_class_order(costs, largest), *rest) for costs, *rest in blocks])


def _class_order(cost: Tensor, largest: bool) -> Tensor:
    """The classes by cost (N, K), the dearest or the cheapest first; ties by index."""
    # NumPy sorts whole numbers, the bits of a cost and then its index, 20 times as fast as torch.
    plain = type(cost) is Tensor and cost.device.type == "cpu"  # subclasses have no NumPy array
    if not plain or cost.dtype != torch.float32:
        return cost.argsort(dim=1, descending=largest, stable=True)
    rising = 0.0 - cost if largest else cost + 0.0  # no −0.0, whose bits are not those of 0.0
    bits = rising.view(torch.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF  # negative numbers in the order of their values
    keys = bits.long()
    keys <<= 32
    keys |= torch.arange(cost.shape[1])
    keys.numpy().sort(axis=1)
    keys &= 0xFFFFFFFF
    return keys
