"""The risk profile against slow references and known truths, and the study that rests on it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from torch import Tensor

from credalearn import CredalError, LowerBounds, precise
from credalearn.theory import risk_profile
from random_sets import KINDS, distributions, members


def predictions(num_items: int, num_classes: int, generator: torch.Generator) -> Tensor:
    """Random predictions without zeros."""
    logits = 2 * torch.randn(num_items, num_classes, generator=generator, dtype=torch.float64)
    return logits.softmax(1)


def test_precise_labels_give_sklearns_cross_entropy(generator: torch.Generator) -> None:
    probs = predictions(200, 4, generator)
    y = torch.randint(4, (200,), generator=generator)
    profile = risk_profile(probs, precise(torch.eye(4, dtype=torch.float64)[y]))
    expected = log_loss(y.numpy(), probs.numpy(), labels=range(4))
    assert profile.optimistic == pytest.approx(expected, abs=1e-12)
    assert profile.pessimistic == pytest.approx(expected, abs=1e-12)
    assert profile.width == pytest.approx(0, abs=1e-12)
    # Soft labels, to sklearn: every item once for each class, with its share as the weight.
    soft = distributions(200, 4, generator=generator)
    profile = risk_profile(probs, precise(soft))
    classes, rows = np.tile(range(4), 200), np.repeat(probs.numpy(), 4, axis=0)
    weighted = log_loss(classes, rows, sample_weight=soft.flatten().numpy(), labels=range(4))
    assert profile.optimistic == pytest.approx(weighted, abs=1e-9)


@given(st.sampled_from(sorted(KINDS)), st.integers(2, 6), st.integers(0, 2**31))
def test_true_risk_is_inside_if_every_set_contains_the_truth(
    kind: str, num_classes: int, random_state: int
) -> None:
    generator = torch.Generator().manual_seed(random_state)
    sets = KINDS[kind](24, num_classes, generator)
    probs, truth = predictions(24, num_classes, generator), members(sets, generator)
    cost = -probs.log()
    true = (truth * cost).sum(1)
    assert (sets.best(cost) <= true + 1e-9).all()
    assert (true <= sets.worst(cost) + 1e-9).all()
    profile = risk_profile(probs, sets, draws=1)
    assert profile.optimistic - 1e-9 <= float(true.mean()) <= profile.pessimistic + 1e-9


def test_bootstrap_equals_the_slow_one(generator: torch.Generator) -> None:
    sets, probs = KINDS["lower bounds"](40, 3, generator), predictions(40, 3, generator)
    one, same, other = (
        risk_profile(probs, sets, draws=300, random_state=random_state)
        for random_state in (1, 1, 2)
    )
    assert one == same
    assert one.pessimistic_interval != other.pessimistic_interval
    losses = sets.worst(-probs.log()).numpy()
    slow = np.random.default_rng(1)
    means = [losses[slow.integers(40, size=40)].mean() for _ in range(300)]
    low, high = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    assert one.pessimistic_interval == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_probability_zero_on_an_allowed_class_is_infinite(
    kind: str, generator: torch.Generator
) -> None:
    sets = KINDS[kind](40, 3, generator)
    probs = predictions(40, 3, generator)
    probs[:, 2] = 0
    probs = probs / probs.sum(1, keepdim=True)
    profile = risk_profile(probs, sets)
    open_items = int((sets.upper[:, 2] > 0).sum())
    assert profile.infinite_items == open_items > 0
    assert profile.pessimistic == profile.width == math.inf
    assert "The worst case is infinite" in profile.statement
    # Where no set allows the class it costs nothing.
    inside = sets.upper[:, 2] == 0
    if inside.any():
        rest = risk_profile(probs[inside], sets[inside])
        assert rest.infinite_items == 0
        assert rest.pessimistic < math.inf


def test_rejects_bad_profiles() -> None:
    labels, soft = LowerBounds([[0.5, 0.0]]), np.array([[1.0, 0.0]])
    with pytest.raises(CredalError, match=r"probs must have shape \(1, 2\); got \(2, 2\)"):
        risk_profile([[0.5, 0.5], [0.5, 0.5]], labels)
    with pytest.raises(CredalError, match="must sum to 1"):
        risk_profile([[0.5, 0.4]], labels)
    with pytest.raises(CredalError, match=r"draws must be a whole number of 1 or more; got 1.5"):
        risk_profile([[0.5, 0.5]], labels, draws=1.5)  # type: ignore[arg-type]
    with pytest.raises(CredalError, match=r"labels must be credal sets.* got ndarray. To fix"):
        risk_profile([[0.5, 0.5]], soft)  # type: ignore[arg-type]
    with pytest.raises(CredalError, match="one or more items"):
        risk_profile(torch.zeros(0, 2), labels[:0])


@pytest.mark.parametrize("items", [1, 49, 50])
def test_statement_warns_about_few_items(items: int, generator: torch.Generator) -> None:
    sets = KINDS["lower bounds"](items, 3, generator)
    statement = risk_profile(predictions(items, 3, generator), sets).statement
    assert "each with 95 % confidence" in statement
    assert ("too short for so few items" in statement) == (items < 50)
