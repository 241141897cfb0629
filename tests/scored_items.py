"""Calibration items with scores that rank errors, for tests of guarantees."""

import math

import numpy as np
from hypothesis import strategies as st


def scored_items(
    random_state: int, num_items: int, levels: int = 50
) -> tuple[np.ndarray, np.ndarray]:
    """Scores in steps of 1 / levels and whether each item is wrong: more often at larger scores."""
    rng = np.random.default_rng(random_state)
    score = rng.integers(0, levels, num_items) / levels
    return score, rng.random(num_items) < 0.5 * score**2


def quantiles(score: np.ndarray) -> list[float]:
    """The scores that keep half a percent, one percent, … of the items."""
    ordered = sorted(score.tolist())
    return sorted({ordered[math.ceil(k * len(ordered) / 200) - 1] for k in range(1, 201)})


def tried_in_turn(score: np.ndarray, rate: float, risk: float) -> list[float]:
    """The quantiles that learn-then-test tries, from the first that keeps enough items."""
    n, quarter = len(score), rate / 4
    divergence = quarter * math.log(quarter / rate)
    divergence += (1 - quarter) * math.log((1 - quarter) / (1 - rate))
    first = max(min(-math.log(risk) / divergence, n / 2), math.log(risk) / math.log(1 - rate))
    first = min(max(first, 0.2 * n), n)
    return [limit for limit in quantiles(score) if (score <= limit).sum() >= first - 1e-9 * n]


Case = tuple[int, int, int]
cases = st.tuples(st.integers(0, 10_000), st.integers(1, 400), st.sampled_from([1, 3, 50, 10**6]))
