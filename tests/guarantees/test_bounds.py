"""Bounds against slow ones: sums of the binomial, and every sample of small distributions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, binomtest

from credalearn.guarantees._bounds import interval, p_value, upper_bound

COUNTS = [(0, 1), (1, 1), (0, 29), (3, 187), (7, 100), (99, 100), (100, 100), (700, 10_000)]


def each(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(("errors", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.2, 0.05, 0.05 / 17, 1e-9])
def test_upper_bound_inverts_the_binomial_tail(errors: int, n: int, level: float) -> None:
    got = upper_bound(each(errors), each(n), level=level, binary=True)[0]
    if errors == n:
        assert got == 1
    else:
        root = brentq(lambda rate: binom.cdf(errors, n, rate) - level, 0, 1, xtol=1e-14)
        assert got == pytest.approx(root, abs=1e-9)
        assert binom.cdf(errors, n, got) == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize(("errors", "n"), COUNTS)
def test_interval_is_clopper_pearson(errors: int, n: int) -> None:
    low, high = interval(each(errors), each(n), confidence=0.9, binary=True)
    expected = binomtest(errors, n).proportion_ci(confidence_level=0.9, method="exact")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)


shares = st.tuples(st.integers(1, 2000), st.floats(0, 1)).map(lambda x: (x[0] * x[1], x[0]))


@given(shares, st.floats(0.001, 0.999), st.floats(1e-6, 0.5), st.booleans())
def test_bound_agrees_with_p_value(
    errors_and_n: tuple[float, int], rate: float, level: float, binary: bool
) -> None:
    errors, n = errors_and_n
    errors = float(round(errors)) if binary else errors
    bound = upper_bound(each(errors), each(n), level=level, binary=binary)[0]
    assert errors / n <= bound + 1e-12 <= 1 + 1e-11
    if abs(rate - bound) > 1e-6:
        p = p_value(each(errors), each(n), rate, binary=binary)[0]
        assert (p <= level) == (bound <= rate)


@pytest.mark.parametrize(
    "law", [{0: 0.9, 1: 0.1}, {0: 0.8, 0.5: 0.2}, {0.1: 1.0}, {0: 0.6, 0.25: 0.4}]
)
@pytest.mark.parametrize("level", [0.05, 0.2, 0.4])
def test_p_value_of_shares_is_valid(law: dict[float, float], level: float) -> None:
    """Every sample of six items, weighted by its probability: p <= level has at most that."""
    n, mean = 6, sum(value * chance for value, chance in law.items())
    broken = 0.0
    for drawn in product(law, repeat=n):
        p = p_value(each(sum(drawn)), each(n), mean, binary=False)[0]
        broken += float(np.prod([law[value] for value in drawn])) * (p <= level)
    assert broken <= level
