"""Calibration items with scores that rank errors, for tests of guarantees."""

import numpy as np
from hypothesis import strategies as st


def scored_items(
    random_state: int, num_items: int, levels: int = 50
) -> tuple[np.ndarray, np.ndarray]:
    """Scores in steps of 1 / levels and whether each item is wrong: more often at larger scores."""
    rng = np.random.default_rng(random_state)
    score = rng.integers(0, levels, num_items) / levels
    return score, rng.random(num_items) < 0.5 * score**2


Case = tuple[int, int, int]
cases = st.tuples(st.integers(0, 10_000), st.integers(1, 400), st.sampled_from([1, 3, 50, 10**6]))
