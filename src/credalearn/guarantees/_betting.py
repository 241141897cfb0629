r"""A test of an error rate that is valid for groups of items, by betting.

A group g of :math:`n_g` items contributes the mean :math:`W_g = \frac{1}{n_g} \sum_{i \in g}
\text{kept}_i (w_i - r)`, which lies in [−r, 1 − r]. Groups are independent, their items need not
be. If the error of a random kept item of a random group is r or more, the mean of W is 0 or more,
and the capital :math:`\prod_g (1 - \lambda_g W_g)` of a gambler, whose bet may depend on the groups
before, is a supermartingale. By Ville's inequality it ever reaches 1/p with probability p at most
(Waudby-Smith and Ramdas, 2024).

Shapes: G groups, T thresholds.
"""

import math

import numpy as np

_LARGEST = 0.95  # of the bet that one group of errors alone can ruin. Larger bets certify more with
# few large groups, smaller ones with many small ones: .75, .95 and .999 keep 7, 55 and 60 % with
# 100 groups of 20 items, and 58, 48 and 36 % with 300 single items.
_PRIOR_GROUPS = 5  # as many groups as the guessed variance of W counts for
_BETS = np.linspace(0.15, _LARGEST, 9)  # tried where the growth of the capital is only estimated


def betting_p_value(
    wrong: np.ndarray, kept: np.ndarray, rate: float | np.ndarray, *, risk: float
) -> np.ndarray:
    """P-value of "the error is ``rate`` or more" at each threshold (T,), from shares (G, T)."""
    # The test is most powerful at the level ``risk`` and valid at every level.
    gains = wrong - rate * kept
    number = len(gains)
    before = np.arange(number)[:, None]
    squares = np.cumsum(gains**2, axis=0) - gains**2
    guess = rate * (1 - rate) / 4
    variance = (_PRIOR_GROUPS * guess + squares) / (_PRIOR_GROUPS + before)
    bets = np.sqrt(-2 * math.log(risk) / (number * variance))
    bets = np.minimum(bets, _LARGEST / (1 - rate))
    capital = np.log1p(-bets * gains).cumsum(axis=0).max(axis=0)
    return np.asarray(np.exp(-np.maximum(capital, 0)))


def growth(wrong: np.ndarray, kept: np.ndarray, rate: float) -> np.ndarray:
    """Mean growth of the log capital per group, by the best constant bet, shape (T,)."""
    gains = wrong - rate * kept
    rates = [np.log1p(-bet / (1 - rate) * gains).mean(axis=0) for bet in _BETS]
    return np.asarray(np.max(rates, axis=0))
