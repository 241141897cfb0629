r"""P-values and confidence bounds for an error rate, from finitely many items.

For errors that are 0 or 1 the binomial tail, exact (Clopper and Pearson, 1934). For errors in
[0, 1], such as the share of annotators who disagree, the smaller of Hoeffding's and Bentkus's
p-values (Bates et al., 2021), which is valid for every distribution on [0, 1].

Shapes: all arrays share one shape; ``errors`` is a count, or a sum of shares, among ``n`` items.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaincc, betainccinv, rel_entr

_HALVINGS = 60  # of [0, 1], down to the last bits of a float64
_SLACK = 1e-9  # a sum of shares such as 0.2 five times may exceed its whole number by rounding


def p_value(
    errors: np.ndarray, n: np.ndarray, rate: float | np.ndarray, *, binary: bool
) -> np.ndarray:
    """Probability of so few errors, or fewer, if the error rate were ``rate``."""
    if binary:
        return binomial_tail(errors, n, rate)
    observed = np.minimum(errors / n, rate)
    hoeffding = np.exp(-n * (rel_entr(observed, rate) + rel_entr(1 - observed, 1 - rate)))
    bentkus = np.e * binomial_tail(np.clip(np.ceil(errors - _SLACK), 0, n), n, rate)
    return np.asarray(np.minimum(hoeffding, bentkus)).clip(max=1)


def upper_bound(errors: np.ndarray, n: np.ndarray, *, level: float, binary: bool) -> np.ndarray:
    """The smallest rate whose p-value is ``level`` or less: exceeded with probability ``level``."""
    if not binary:
        return least_rate(lambda rate: p_value(errors, n, rate, binary=False), level, errors.shape)
    right = n - errors
    bound: np.ndarray = betainccinv(errors + 1, np.where(right > 0, right, 1), level)
    return np.where(right > 0, bound, 1.0)


def least_rate(
    p_values: Callable[[np.ndarray], np.ndarray], level: float, shape: tuple[int, ...]
) -> np.ndarray:
    """The smallest rate whose p-value, which falls with the rate, is at most the level."""
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        passes = p_values(middle) <= level
        low, high = np.where(passes, low, middle), np.where(passes, middle, high)
    return high


def interval(
    errors: np.ndarray, n: np.ndarray, *, confidence: float, binary: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the confidence interval for the rate, each missed with equal probability."""
    level = (1 - confidence) / 2
    low = 1 - upper_bound(n - errors, n, level=level, binary=binary)
    return low, upper_bound(errors, n, level=level, binary=binary)


def binomial_tail(errors: np.ndarray, n: np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """P(B <= errors); errors and n need not be whole, as in samples that are only imagined."""
    right = n - errors
    tail: np.ndarray = betaincc(errors + 1, np.where(right > 0, right, 1), rate)
    return np.where(right > 0, tail, 1.0)
