"""A simulation where the true label distributions are known: risk profile and true risk.

Items in the plane, p0 = softmax of a known function of them, labels from votes drawn from p0 or
made around p0 and broken on purpose; POCC learns from them, and its averaged prediction is judged.

Shapes: N items, K = 4 classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn.labels.votes import VoteRule
from credalearn.theory import risk_profile

RULES: tuple[VoteRule, ...] = ("relax", "idm", "clopper-pearson")
VOTES = (1, 3, 10, 50)
BROKEN = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SHIFT, FREE = 0.3, 0.05  # of broken labels: how far they exclude the truth; of all: the free mass
NUM_TRAINING, NUM_FRESH = 300, 4000  # few to learn from, so that one vote per item is overfitted
_STEPS = 150  # of training, each on all items: a quarter of a second

Place = Literal["inside", "above", "below"]


@dataclass(frozen=True, slots=True)
class Found:
    """A network's risk profile on some items next to its true risk, in nats.

    Args:
        optimistic: R₊.
        true: R₀, which only a simulation knows.
        pessimistic: R₋.
        place: Where R₀ is, by more than two standard errors of the mean difference.
        items_inside: Share of the items whose own true risk is between their own two ends.
    """

    optimistic: float
    true: float
    pessimistic: float
    place: Place
    items_inside: float


@dataclass(frozen=True, slots=True)
class Case:
    """One way to make labels, and what came of training on them.

    Args:
        rule: Rule of the labels.
        amount: Votes per item, or the share of broken labels.
        coverage: Share of fresh items whose set holds the truth.
        diameter: Mean of the fresh labels'.
        training: On the items trained on.
        fresh: On new items, with new votes or labels broken alike.
        allowance: How far outside R₀ can be at most: the mean of (range of log p) · (total
            variation from the set to p0).
        accuracy: Share of fresh items whose most probable class is predicted.
    """

    rule: str
    amount: float
    coverage: float
    diameter: float
    training: Found
    fresh: Found
    allowance: float
    accuracy: float


def true_distributions(items: np.ndarray) -> Tensor:
    """p0(x) = softmax of 1.6 times x along four directions at right angles, shape (N, 4)."""
    directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    return torch.from_numpy(1.6 * items @ directions.T).softmax(1)


def excluding(p0: Tensor, share: float, generator: np.random.Generator) -> cl.LowerBounds:
    """Sets (1 − FREE)·p0 + FREE·Δ around the truth, a share of them moved off it.

    There the first class is said to be more probable than it is by SHIFT (or up to 1 − FREE), the
    others less in proportion: annotators who all lean the same way.
    """
    first = (p0[:, :1] + SHIFT).clamp(max=1 - FREE)
    moved = torch.cat([first, p0[:, 1:] * (1 - FREE - first) / (1 - p0[:, :1])], 1)
    chosen = torch.from_numpy(generator.random(len(p0)) < share)[:, None]
    return cl.LowerBounds(torch.where(chosen, moved, (1 - FREE) * p0))


def by_votes() -> Iterator[Case]:
    """Every rule on every number of votes drawn from p0."""
    generator = np.random.default_rng(0)
    training, fresh = _items(generator)
    for votes in VOTES:
        counts = [_draw(votes, true_distributions(each), generator) for each in (training, fresh)]
        for rule in RULES:  # all three are lower bounds
            labels = [cl.LowerBounds(cl.from_votes(each, rule=rule).lower) for each in counts]
            yield _case(rule, votes, training, fresh, *labels)


def by_share() -> Iterator[Case]:
    """Every share of broken labels."""
    generator = np.random.default_rng(1)
    training, fresh = _items(generator)
    for share in BROKEN:
        labels = [excluding(true_distributions(x), share, generator) for x in (training, fresh)]
        yield _case("around p0", share, training, fresh, *labels)


def found(probs: Tensor, labels: cl.LowerBounds, p0: Tensor) -> Found:
    """The profile of predictions (N, K) on labels, next to the risk under p0."""
    profile = risk_profile(probs, labels, draws=1)  # the intervals are not asked for
    cost = -probs.log()
    best, true, worst = labels.best(cost), (p0 * cost).sum(1), labels.worst(cost)
    rounding = 1e-9
    inside = (best <= true + rounding) & (true <= worst + rounding)
    place: Place = "inside"
    if _positive(true - worst):
        place = "above"
    elif _positive(best - true):
        place = "below"
    share = float(inside.double().mean())
    return Found(profile.optimistic, float(true.mean()), profile.pessimistic, place, share)


def _items(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return generator.normal(size=(NUM_TRAINING, 2)), generator.normal(size=(NUM_FRESH, 2))


def _draw(votes: int, p0: Tensor, generator: np.random.Generator) -> Tensor:
    return torch.from_numpy(generator.multinomial(votes, p0.numpy())).double()


def _case(
    rule: str,
    amount: float,
    training: np.ndarray,
    fresh: np.ndarray,
    labels: cl.LowerBounds,
    fresh_labels: cl.LowerBounds,
) -> Case:
    """Train POCC on one set of labels and look at the averaged prediction."""
    clf = cl.CredalClassifier(
        "pocc",
        epochs=_STEPS,
        batch_size=NUM_TRAINING,
        learning_rate=5e-3,
        random_state=0,
        device="cpu",
    )
    clf.fit(training, labels)
    seen, unseen = (clf.predict_credal(items).probs.double() for items in (training, fresh))
    p0 = true_distributions(fresh)
    logs = unseen.log()
    distance = (fresh_labels.lower - p0).clamp(min=0).sum(1)  # total variation to q ≥ lower
    return Case(
        rule=rule,
        amount=amount,
        coverage=float(fresh_labels.contains(p0).double().mean()),
        diameter=float(fresh_labels.diameter().mean()),
        training=found(seen, labels, true_distributions(training)),
        fresh=found(unseen, fresh_labels, p0),
        allowance=float(((logs.amax(1) - logs.amin(1)) * distance).mean()),
        accuracy=float((unseen.argmax(1) == p0.argmax(1)).double().mean()),
    )


def _positive(difference: Tensor) -> bool:
    """Whether a mean over items is above 0 by more than two standard errors."""
    error = float(difference.std()) / math.sqrt(len(difference))
    return float(difference.mean()) > 2 * error + 1e-9
