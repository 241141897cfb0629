"""Random credal sets and slow, obvious references for them."""

from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch import Tensor

import credalearn as cl

Maker = Callable[[int, int, torch.Generator], cl.CredalSet]


def distributions(*shape: int, generator: torch.Generator) -> Tensor:
    """From nearly one-hot to nearly uniform, with exact zeros and ties among them."""
    power = 4 * torch.rand(*shape[:-1], 1, generator=generator, dtype=torch.float64)
    mass = torch.rand(*shape, generator=generator, dtype=torch.float64) ** power
    coarse = (8 * mass).floor() / 8 + 1e-300  # an eighth apart: ties, and zeros but for a dust
    mass = torch.where(torch.rand(*shape[:-1], 1, generator=generator) < 0.3, coarse, mass)
    mass = mass / mass.sum(-1, keepdim=True)
    return torch.where(mass < 1e-200, 0, mass)


def lower_bounds(num_items: int, num_classes: int, generator: torch.Generator) -> cl.LowerBounds:
    """A random share of a random distribution, from nothing to all of it."""
    soft = distributions(num_items, num_classes, generator=generator)
    kept = torch.rand(num_items, num_classes, generator=generator, dtype=torch.float64)
    kept[: num_items // 8], kept[num_items // 8 : num_items // 4] = 0, 1
    return cl.LowerBounds(soft * kept)


def intervals(num_items: int, num_classes: int, generator: torch.Generator) -> cl.Intervals:
    """Around a random distribution, from a single point to the whole simplex."""
    center = distributions(num_items, num_classes, generator=generator)
    shape = (num_items, num_classes)
    radius = torch.rand(num_items, 1, generator=generator, dtype=torch.float64) ** 2
    radius[: num_items // 8], radius[num_items // 8 : num_items // 4] = 0, 1
    down, up = (radius * torch.rand(*shape, generator=generator).double() for _ in range(2))
    return cl.Intervals((center - down).clamp(min=0), (center + up).clamp(max=1))


def vertices(num_items: int, num_classes: int, generator: torch.Generator) -> cl.Vertices:
    """One to six random points, some of them twice."""
    num_vertices = int(torch.randint(1, 7, (), generator=generator))
    points = distributions(num_items, num_vertices, num_classes, generator=generator)
    points[: num_items // 4, -1] = points[: num_items // 4, 0]
    return cl.Vertices(points)


def balls(num_items: int, num_classes: int, generator: torch.Generator) -> cl.TotalVariationBall:
    """Around a random distribution, from a single point to the whole simplex."""
    radius = torch.rand(num_items, generator=generator, dtype=torch.float64) ** 2
    radius[: num_items // 8], radius[num_items // 8 : num_items // 4] = 0, 1
    q = distributions(num_items, num_classes, generator=generator)
    return cl.TotalVariationBall(q, radius)


def possibilities(num_items: int, num_classes: int, generator: torch.Generator) -> cl.Possibility:
    """Random levels with ties and zeros, from a single class to the whole simplex."""
    levels = distributions(num_items, num_classes, generator=generator)
    levels = levels / levels.amax(1, keepdim=True)
    levels[: num_items // 8] = (levels[: num_items // 8] == 1).double()
    levels[num_items // 8 : num_items // 4] = 1
    return cl.Possibility(levels)


def mean_intervals(
    num_items: int, num_classes: int, generator: torch.Generator
) -> cl.MeanIntervals:
    """One to four boxes per item, of unequal weight, some without any."""
    people = int(torch.randint(1, 5, (), generator=generator))
    boxes = [intervals(num_items, num_classes, generator) for _ in range(people)]
    weight = torch.randint(0, 3, (num_items, people), generator=generator)
    weight[:, 0] += (weight.sum(1) == 0).long()
    lower, upper = (torch.stack([getattr(x, at) for x in boxes], 1) for at in ("lower", "upper"))
    return cl.MeanIntervals(lower, upper, weight)


KINDS: dict[str, Maker] = {
    "lower bounds": lower_bounds,
    "intervals": intervals,
    "mean intervals": mean_intervals,
    "vertices": vertices,
    "balls": balls,
    "possibilities": possibilities,
}


def outcomes(num_votes: int, num_classes: int) -> np.ndarray:
    """Every way to spread the votes over the classes, shape (outcomes, K)."""
    if num_classes == 1:
        return np.array([[num_votes]])
    parts = []
    for first in range(num_votes + 1):
        rest = outcomes(num_votes - first, num_classes - 1)
        parts.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(parts)


def members(sets: cl.CredalSet, generator: torch.Generator) -> Tensor:
    """A random member of every set: a mixture of its middle and five extremes, shape (N, K)."""
    costs = torch.randn(5, *sets.shape, generator=generator, dtype=torch.float64)
    points = torch.stack([sets.center(), *(sets.worst_target(cost) for cost in costs)])
    weights = distributions(len(sets), 6, generator=generator)
    return torch.einsum("nv,vnk->nk", weights, points)


def events(num_classes: int) -> list[Tensor]:
    """The indicator (K,) of every set of classes that is neither empty nor all of them."""
    rows = [torch.tensor(row).double() for row in product([0, 1], repeat=num_classes)]
    return rows[1:-1]


def corners(lower: Tensor, upper: Tensor) -> Tensor:
    """Every vertex of one box (K,): each class at a bound but one, which takes up the rest."""
    found = []
    low, high = lower.tolist(), upper.tolist()
    for free in range(len(low)):
        bounds = [[0.0] if k == free else [low[k], high[k]] for k in range(len(low))]
        for point in map(list, product(*bounds)):
            point[free] = 1 - sum(point)
            if low[free] - 1e-12 <= point[free] <= high[free] + 1e-12:
                found.append(point)
    return torch.tensor(found, dtype=torch.float64).clamp(min=0)


def bits(points: Tensor) -> Tensor:
    """Entropy the obvious way, over the last dimension."""
    logs = torch.where(points > 0, points.clamp(min=1e-300).log2(), 0)
    return -(points * logs).sum(-1)


def random_images(generator: torch.Generator, *shape: int) -> Tensor:
    """Images of random bytes."""
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
