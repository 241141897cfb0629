"""How far observed shares lie from predicted sets, and by how much these are widened for that.

A scale is a function of the chosen distribution alone, above 0, of shape (N, 1) or (N, K). At 90 %
coverage of the votes of CIFAR-10H, softmax's mean width is .45 unscaled, .13 by ``"binomial"`` and
.11 by ``"relative-variance"`` (``benchmarks/conformal_scales.py``).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.conformal.inflation import Distance, Inflation, Scale, Stratum, rank_of
from credalearn.errors import CredalError
from credalearn.sets import Intervals
from credalearn.sets._checks import as_floats, as_votes, require, require_shape

if TYPE_CHECKING:
    from credalearn.predictions import CredalPredictions

# So that a class without any probability can be voted for, too. A floor of .001 gives 18 % narrower
# sets for 3 votes per image and 22 to 47 % wider ones for 51; one of .1 wider ones for both.
FLOOR = 0.01

# The mixture behind a few votes.
_CONCENTRATIONS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_EXPONENTS = (0.5, 1.0, 2.0, 4.0)
_LEAST = 0.001
_STEPS = 400  # of expectation maximization
_DRAWS = 30  # per item

# Every set is wider by this, so that rounding never loses the item that the radius comes from: in
# float32 a probability is off by up to 3e-8.
_SLACK = 1e-7

# What each is for: see ``Inflation``.
SCALES: dict[Scale, Callable[[Tensor], Tensor]] = {
    "relative-variance": lambda p: p * (1 - p) / p.amax(1, keepdim=True) + FLOOR,
    "binomial": lambda p: (p * (1 - p)).clamp(min=0).sqrt() + FLOOR,
    "stretched": lambda p: torch.ones_like(p[:, :1]),
    "top-probability": lambda p: 1 - p.amax(1, keepdim=True) + FLOOR,
    "none": lambda p: torch.ones_like(p[:, :1]),
}
NARROW: tuple[Scale, ...] = ("relative-variance", "binomial", "stretched")  # perhaps narrowest


def stretch_of(probs: Tensor, scale: Scale) -> Tensor:
    r"""How far each bound moves before the radius is added: :math:`\sqrt{p_k (1 - p_k)}` or 0."""
    if scale != "stretched":
        return torch.zeros_like(probs[:, :1])
    return (probs * (1 - probs)).clamp(min=0).sqrt()


def scale_of(probs: Tensor, distance: Distance, scale: Scale) -> Tensor:
    """The scale as the distance takes it, (N, K) or (N, 1); for balls (N, 1)."""
    factor = SCALES[scale](probs)
    if distance != "box" and factor.shape[1] > 1:
        return factor.sum(1, keepdim=True) / 2  # the distance of two whose classes are off by s
    return factor


def as_shares(observed: "ArrayLike", sets: Tensor) -> Tensor:
    """Votes or shares, each row divided by its sum, in float64 on the device of the ``sets``."""
    votes = as_floats(observed, name="observed", ndim=2).detach().to(sets.device, torch.float64)
    require_shape(votes, sets.shape, name="observed")
    total = votes.sum(1, keepdim=True)
    require(
        (votes >= 0) & (total > 0),
        rule="observed must be votes or shares by class, none below 0 and not all 0",
        remedy="leave out items without votes",
        observed=votes,
    )
    return votes / total


def box_distance(
    observed: Tensor, lower: Tensor, upper: Tensor, scale: Tensor, *, signed: bool = False
) -> Tensor:
    """The least r (0 or more unless signed) with q in [lower − r·s, upper + r·s], shape (N,)."""
    gap = torch.maximum(lower - observed, observed - upper)
    return ((gap if signed else gap.clamp(min=0)) / scale).amax(1)


def total_variation(observed: Tensor, probs: Tensor) -> Tensor:
    r""":math:`\frac12\sum_k |q_k - p_k|`, shape (N,)."""
    # Not half the sum: where rounded rows sum to 1.0000001, no class may be off by more than this.
    gap = observed - probs
    return torch.maximum(gap.clamp(min=0).sum(1), (-gap).clamp(min=0).sum(1))


def kullback_leibler(observed: Tensor, probs: Tensor) -> Tensor:
    r""":math:`\sum_k q_k \log(q_k / p_k)`, shape (N,); infinite where only q has a class."""
    return (torch.xlogy(observed, observed) - torch.xlogy(observed, probs)).sum(1).clamp(min=0)


BALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "total-variation": total_variation,
    "kullback-leibler": kullback_leibler,
}
"""How far an observed distribution lies from the predicted one, where the sets are balls."""


def kullback_leibler_bounds(probs: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest share of each class at most ``radius`` (N, 1) away, two of (N, K)."""
    # The nearest distribution with a given share of one class keeps the proportions of the others,
    # so this is a question about two classes; by bisection, to the last digit, outward.

    def farthest(end: float) -> Tensor:
        near, far = probs.clone(), torch.full_like(probs, end)
        for _ in range(60):
            middle = (near + far) / 2
            two = (torch.stack([each, 1 - each], -1).flatten(0, 1) for each in (middle, probs))
            inside = kullback_leibler(*two).view_as(probs) <= radius
            near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
        return far

    return farthest(0.0), farthest(1.0)


def calibrate(
    predicted: "CredalPredictions",
    observed: "ArrayLike",
    asked: Inflation,
    *,
    strata: Sequence[str] | None = None,
    random_state: int = 0,
) -> Inflation:
    """The inflation that is asked for, with the radius that covers new items like these."""
    coverage, distance, scale = asked.coverage, asked.distance, asked.scale
    observations: Iterable[Tensor] = [as_shares(observed, predicted.lower)]
    sets = (predicted.lower, predicted.upper, predicted.probs)
    low, high, inside = (each.detach().double() for each in sets)
    if asked.target == "distribution":
        votes = as_votes(observed, name="observed").to(inside)
        observations = plausible_distributions(votes, inside, random_state=random_state)
    factor, stretch = scale_of(inside, distance, scale), stretch_of(inside, scale)

    def nonconformity(shares: Tensor) -> Tensor:
        if distance == "box":
            signed = scale == "stretched"
            return box_distance(shares, low - stretch, high + stretch, factor, signed=signed)
        return BALLS[distance](shares, inside) / factor[:, 0]

    off = torch.stack([nonconformity(each) for each in observations])
    if strata is None:
        return replace(asked, radius=_radius(off, coverage))
    if len(strata) != len(predicted):
        raise CredalError(f"strata must name one stratum for each of {len(predicted)} items.")
    names = np.array([str(name) for name in strata])
    parts = tuple(
        Stratum(name, _radius(off[:, names == name], coverage), int((names == name).sum()))
        for name in sorted(set(names.tolist()))
    )
    return replace(asked, radius=max(each.radius for each in parts), strata=parts)


def widened_bounds(
    predicted: "CredalPredictions", inflation: Inflation, strata: Sequence[str] | None
) -> tuple[Tensor, Tensor]:
    """Reachable bounds of the widened sets, or of boxes around balls; ``probs`` stays inside."""
    low, high = _box(predicted, inflation, strata)
    tight, inside = Intervals(low.clamp(0, 1), high.clamp(0, 1)), predicted.probs.double()
    low = (tight.lower - _SLACK).clamp(min=0).minimum(inside)
    high = (tight.upper + _SLACK).clamp(max=1).maximum(inside)
    return low.to(predicted.lower.dtype), high.to(predicted.upper.dtype)


def covered(
    predicted: "CredalPredictions",
    observed: "ArrayLike",
    inflation: Inflation,
    strata: Sequence[str] | None,
) -> Tensor:
    """Whether each item's observed distribution lies in its widened set, shape (N,), bool."""
    shares = as_shares(observed, predicted.lower)
    if inflation.distance == "box":
        low, high = _box(predicted, inflation, strata)
        return ((shares >= low) & (shares <= high)).all(1)
    far = BALLS[inflation.distance](shares, predicted.probs.double())
    return far <= _room(predicted.probs, inflation, strata)[:, 0]


def _box(
    predicted: "CredalPredictions", inflation: Inflation, strata: Sequence[str] | None
) -> tuple[Tensor, Tensor]:
    """Both bounds, widened, around ``probs``; in float64."""
    inside, room = predicted.probs.double(), _room(predicted.probs, inflation, strata)
    if inflation.distance == "kullback-leibler":
        return kullback_leibler_bounds(inside, room)
    if inflation.distance == "total-variation":
        return inside - room, inside + room
    room = stretch_of(inside, inflation.scale) + room
    lower, upper = predicted.lower.double() - room, predicted.upper.double() + room
    return lower.minimum(inside), upper.maximum(inside)


def _room(probs: Tensor, inflation: Inflation, strata: Sequence[str] | None) -> Tensor:
    """By how much each bound moves, shape (N, 1) or (N, K)."""
    unit = scale_of(probs.double(), inflation.distance, inflation.scale)
    if not inflation.strata:
        if strata is not None:
            raise CredalError("these sets have no strata. To fix: leave out strata.")
        return inflation.radius * unit + _SLACK
    if strata is None or len(strata) != len(probs):
        raise CredalError(
            f"these sets have strata ({inflation.by or 'by name'}). To fix: pass the stratum of "
            f"each of the {len(probs)} items."
        )
    radius_of = {each.name: each.radius for each in inflation.strata}
    # An item of a stratum that was not calibrated may be anything.
    radii = [radius_of.get(str(name), math.inf) for name in strata]
    return unit.new_tensor(radii)[:, None] * unit + _SLACK


def narrowest_scale(
    predicted: "CredalPredictions",
    observed: "ArrayLike",
    *,
    coverage: float,
    strata: Sequence[str] | None = None,
    among: Sequence[Scale] = NARROW,
) -> Scale:
    """The scale whose boxes are narrowest on average, on items that calibrate nothing else."""

    def width(scale: Scale) -> float:
        found = predicted.inflation(observed, coverage=coverage, scale=scale, strata=strata)
        wide = predicted.conformalize(found, strata=strata)
        return float((wide.upper - wide.lower).mean())

    return min(among, key=width)


def _radius(off: Tensor, coverage: float) -> float:
    """The radius that covers items with these nonconformities (R, N), R draws per item."""
    draws, items = off.shape
    rank = rank_of(items, coverage)
    return float(off.flatten().sort().values[rank * draws - 1]) if rank <= items else math.inf


def plausible_distributions(votes: Tensor, probs: Tensor, *, random_state: int) -> Iterator[Tensor]:
    """Thirty draws from the distribution behind each item's votes, each of shape (N, K)."""
    # The shares of three votes scatter far more than the distribution they are drawn from, so sets
    # that cover such shares are wider than the distribution needs. How distributions scatter around
    # a prediction p is taken as a mixture of Dirichlet distributions with the parameters
    # a p^τ / Σ p^τ + 0.001, over a grid of a and τ, weighted by largest likelihood given the
    # votes. From n votes per item only the first n moments can be known; the rest is the model's.
    grid = probs.new_tensor(list(product(_CONCENTRATIONS, _EXPONENTS)))  # (G, 2)
    fits = torch.stack([_log_likelihood(votes, _parameters(probs, *each)) for each in grid], 1)
    fits = (fits - fits.amax(1, keepdim=True)).exp()  # (N, G)
    weights = torch.ones_like(fits[0]) / len(grid)
    for _ in range(_STEPS):
        shares = fits * weights
        weights = (shares / shares.sum(1, keepdim=True)).mean(0)
    ends = (fits * weights).cumsum(1).numpy(force=True)
    random = np.random.default_rng(random_state)
    for _ in range(_DRAWS):
        places = random.uniform(size=(len(votes), 1)) * ends[:, -1:]
        part = (ends < places).sum(1).clip(max=len(grid) - 1)
        chosen = _parameters(probs, *grid[part].T[..., None]) + votes
        drawn = random.standard_gamma(chosen.numpy(force=True))
        yield torch.from_numpy(drawn / drawn.sum(1, keepdims=True)).to(probs)


def _parameters(probs: Tensor, concentration: Tensor, exponent: Tensor) -> Tensor:
    """Dirichlet parameters (N, K); the two numbers may also have one value per item, (N, 1)."""
    sharp = probs**exponent
    return concentration * sharp / sharp.sum(1, keepdim=True) + _LEAST


def _log_likelihood(votes: Tensor, parameters: Tensor) -> Tensor:
    """Log-likelihood of votes (N, K) given Dirichlet parameters (N, K), up to a constant, (N,)."""
    total, count = parameters.sum(1), votes.sum(1)
    each = ((parameters + votes).lgamma() - parameters.lgamma()).sum(1)
    return each + total.lgamma() - (total + count).lgamma()
