"""Recipes: learning rates, and values that are rejected."""

import math
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

import credalearn as cl
from credalearn.train import Recipe


@pytest.mark.catches("train/training.py", "math.cos(math.pi * share)", "math.cos(share)")
def test_rates_of_the_papers_recipes() -> None:
    plain = Recipe(epochs=150, optimizer="sgd", learning_rate=0.1)
    assert plain.rate_at(0) == 0.1
    assert plain.rate_at(75) == pytest.approx(0.05)
    assert plain.rate_at(150) == pytest.approx(0)
    warmup: dict[str, Any] = {"warmup_epochs": 5, "warmup_start": 0.001}
    warm = Recipe(epochs=200, learning_rate=0.1, final_learning_rate=1e-6, **warmup)
    assert warm.rate_at(0) == 0.001
    assert warm.rate_at(2.5) == pytest.approx(0.0505)
    assert warm.rate_at(5) == 0.1
    assert warm.rate_at(200) == pytest.approx(1e-6)
    rates = [warm.rate_at(epoch / 10) for epoch in range(50, 2001)]
    assert all(a >= b for a, b in pairwise(rates))
    constant = Recipe(epochs=60, learning_rate=1e-5, schedule="constant")
    assert {constant.rate_at(epoch) for epoch in range(60)} == {1e-5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a number"),
        ({"warmup_epochs": 9, "epochs": 3}, "warmup_epochs must be at most epochs, 3; got 9"),
        ({"final_learning_rate": 1.0}, r"at most learning_rate, 0\.001; got 1"),
        ({"optimizer": "lion"}, "optimizer must be one of 'adam', 'sgd'; got 'lion'"),
    ],
)
def test_rejects_values_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        Recipe(**options)


def test_the_classifier_has_the_recipes_defaults() -> None:
    params = cl.CredalClassifier().get_params()
    assert {each.name: params[each.name] for each in fields(Recipe)} == {
        each.name: each.default for each in fields(Recipe)
    }
