"""Predictions of every kind of set, and votes on their items."""

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import Tensor

from credalearn import CredalPredictions
from random_sets import distributions, intervals


def segment(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    """Hulls of two points."""
    return hull(num_items, num_classes, generator, num_vertices=2)


def hull(
    num_items: int, num_classes: int, generator: torch.Generator, *, num_vertices: int = 4
) -> CredalPredictions:
    """Hulls of points around one, some of them twice."""
    middle = distributions(num_items, 1, num_classes, generator=generator)
    around = distributions(num_items, num_vertices, num_classes, generator=generator)
    points = 0.7 * middle + 0.3 * around
    points[: num_items // 4, -1] = points[: num_items // 4, 0]
    return CredalPredictions.from_vertices(points)


def box(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    """Boxes between random bounds."""
    sets = intervals(num_items, num_classes, generator)
    return CredalPredictions(sets.center(), sets.lower, sets.upper)


def point(num_items: int, num_classes: int, generator: torch.Generator) -> CredalPredictions:
    """Single distributions."""
    return hull(num_items, num_classes, generator, num_vertices=1)


Maker = Callable[[int, int, torch.Generator], CredalPredictions]
KINDS: dict[str, Maker] = {"segment": segment, "hull": hull, "box": box, "point": point}


@st.composite
def voted_predictions(draw: st.DrawFn) -> tuple[CredalPredictions, Tensor]:
    """Predictions of some kind and votes, some of them inside the sets."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(list(KINDS)))
    num_items, num_classes = draw(st.integers(8, 40)), draw(st.integers(2, 6))
    pred = KINDS[kind](num_items, num_classes, generator)
    said = distributions(num_items, num_classes, generator=generator)
    said[::3] = 0.8 * pred.probs[::3] + 0.2 * said[::3]
    said[::7] = pred.probs[::7]
    votes = said * torch.randint(1, 60, (num_items, 1), generator=generator)
    if draw(st.booleans()):
        votes = votes.round() + (votes.round().sum(1, keepdim=True) == 0)
    return pred.to(draw(st.sampled_from([torch.float32, torch.float64]))), votes
