"""The rules that turn votes into sets: one function per rule, and the table of them.

Shapes: N items, K classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.special import betaincinv
from torch import Tensor

from credalearn._checks import check_choice, check_number
from credalearn.errors import CredalError
from credalearn.labels.soft import relax_at, relax_ties
from credalearn.sets import CredalSet, Intervals, LowerBounds, TotalVariationBall

VoteRule = Literal[
    "relax",
    "relax-ties",
    "precise",
    "idm",
    "clopper-pearson",
    "clopper-pearson-intervals",
    "total-variation",
    "hull",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The arguments of every rule."""

    counts: Tensor  # votes of each class, fractions allowed, shape (N, K)
    total: Tensor  # their sum M, shape (N, 1)
    shares: Tensor  # the soft label, shape (N, K)
    s: float  # strength of the imprecise Dirichlet model
    confidence: float  # of the rules with a guarantee

    @property
    def num_classes(self) -> int:
        """Number of classes K."""
        return self.counts.shape[1]


def _relax(votes: Tally) -> LowerBounds:
    return _at_least(relax_at(votes.shares, votes.counts.argmax(1)).lower, votes)


def _relax_ties(votes: Tally) -> LowerBounds:
    return _at_least(relax_ties(votes.shares).lower, votes)


def _precise(votes: Tally) -> LowerBounds:
    return _at_least(votes.shares, votes)


def _at_least(lower: Tensor, votes: Tally) -> LowerBounds:
    """Lower bounds (N, K) of items with votes; all distributions for the others."""
    return LowerBounds(torch.where(votes.total > 0, lower, 0), soft=votes.shares)


def _idm(votes: Tally) -> LowerBounds:
    return LowerBounds(votes.counts / (votes.total + votes.s), soft=votes.shares)


def _clopper_pearson(votes: Tally) -> LowerBounds:
    level = (1 - votes.confidence) / votes.num_classes
    return LowerBounds(lower_limits(votes.counts, votes.total, level=level), soft=votes.shares)


def _clopper_pearson_intervals(votes: Tally) -> Intervals:
    level = (1 - votes.confidence) / (2 * votes.num_classes)
    lower = lower_limits(votes.counts, votes.total, level=level)
    upper = upper_limits(votes.counts, votes.total, level=level)
    return Intervals(lower, upper, soft=votes.shares)


def _total_variation(votes: Tally) -> TotalVariationBall:
    level = 1 - votes.confidence
    radius = variation_radius(votes.total[:, 0], votes.num_classes, level=level)
    return TotalVariationBall(votes.shares, radius)


def _hull(votes: Tally) -> Intervals:
    possible = (votes.counts > 0) | (votes.total == 0)
    return Intervals(torch.zeros_like(votes.shares), possible.to(votes.shares), soft=votes.shares)


VOTE_RULES: dict[VoteRule, Callable[[Tally], CredalSet]] = {
    "relax": _relax,
    "relax-ties": _relax_ties,
    "precise": _precise,
    "idm": _idm,
    "clopper-pearson": _clopper_pearson,
    "clopper-pearson-intervals": _clopper_pearson_intervals,
    "total-variation": _total_variation,
    "hull": _hull,
}

# They contain the distribution of independent votes with the given confidence.
PROMISING: tuple[VoteRule, ...] = (
    "clopper-pearson",
    "clopper-pearson-intervals",
    "total-variation",
)

# An option: its default, and the rules that use it.
OPTIONS: dict[str, tuple[float, tuple[VoteRule, ...]]] = {
    "s": (1.0, ("idm",)),
    "confidence": (0.95, PROMISING),
}


def options_of(rule: VoteRule, *, s: float, confidence: float) -> dict[str, float]:
    """Those of the two options that the rule uses."""
    given = {"s": s, "confidence": confidence}
    return {name: value for name, value in given.items() if rule in OPTIONS[name][1]}


def check_options(rule: VoteRule, *, s: float, confidence: float) -> None:
    """Raise if the rule is unknown, or an option is out of its range or not used by the rule."""
    check_choice(rule, VOTE_RULES, name="rule")
    check_number(s, name="s", above=0)
    check_number(confidence, name="confidence", above=0, below=1)
    for name, value in (("s", s), ("confidence", confidence)):
        default, rules = OPTIONS[name]
        if rule not in rules and value != default:
            raise CredalError(
                f"the rule {rule!r} does not use {name}; got {name}={value!r}. To fix: leave it "
                f"out, or use the rule {' or '.join(map(repr, rules))}."
            )


def lower_limits(counts: Tensor, total: Tensor, *, level: float) -> Tensor:
    """Clopper and Pearson's (1934) lower limits, shape (N, K): quantiles of Beta(n, M − n + 1)."""
    others = (total - counts).double().numpy(force=True)
    above_zero = counts.double().clamp(min=np.finfo(np.float64).tiny)  # as Beta needs
    limits = torch.from_numpy(betaincinv(above_zero.numpy(force=True), others + 1, level))
    return torch.where(counts > 0, limits.to(counts), 0)


def upper_limits(counts: Tensor, total: Tensor, *, level: float) -> Tensor:
    """Clopper and Pearson's upper limits, shape (N, K)."""
    return 1 - lower_limits(total - counts, total, level=level)


def variation_radius(total: Tensor, num_classes: int, *, level: float) -> Tensor:
    """Total-variation distance that vote shares exceed with probability ``level`` at most, (N,)."""
    if num_classes == 1:
        return torch.zeros_like(total)
    events = num_classes * math.log(2) + math.log1p(-(2.0 ** (1 - num_classes)))  # log(2^K − 2)
    # Without votes the root is infinite, and the radius 1 contains every distribution.
    return ((events - math.log(level)) / (2 * total)).sqrt().clamp(max=1)
