"""Shortfalls: enough items certify the target, and the reachable error is certified."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from credalearn import certify
from credalearn.guarantees import CertifyMethod, Shortfall
from present import present
from scored_items import scored_items

METHODS: tuple[CertifyMethod, ...] = get_args(CertifyMethod)
PROMISING: tuple[CertifyMethod, ...] = ("sgr", "learn-then-test")


def shortfall(
    score: ArrayLike, wrong: ArrayLike, max_error: float, method: CertifyMethod
) -> Shortfall:
    return present(certify(score, wrong, max_error=max_error, method=method).shortfall)


@pytest.mark.parametrize("method", PROMISING)
@pytest.mark.parametrize("random_state", [0, 2, 3, 4, 6, 7, 8])  # 1 and 5: no number would do
def test_items_needed_are_enough_and_not_many_more(
    method: CertifyMethod, random_state: int
) -> None:
    """A tenth more items of the same kind certify the target; a fifth fewer do not."""
    score, wrong = scored_items(random_state, 150, levels=10**6)
    needed = present(shortfall(score, wrong, 0.02, method).items_needed)
    rows = np.arange(2 * needed) % 150  # each about as often as the others
    for factor, expected in ((1.1, True), (0.8, False)):
        chosen = rows[: int(factor * needed)]
        found = certify(score[chosen], wrong[chosen], max_error=0.02, method=method)
        assert found.certified == expected


@pytest.mark.parametrize("method", METHODS)
@given(random_state=st.integers(0, 1000), num_items=st.integers(1, 200))
def test_the_reachable_error_is_the_smallest_that_is_certified(
    method: CertifyMethod, random_state: int, num_items: int
) -> None:
    score, wrong = scored_items(random_state, num_items)
    short = certify(score, wrong, max_error=0.02, method=method).shortfall
    if short is None or short.reachable_error is None:
        return
    reached = certify(score, wrong, max_error=short.reachable_error, method=method)
    assert reached.certified
    assert reached.coverage == short.reachable_coverage
    less = round(short.reachable_error - 0.001, 6)
    if less > 0.02:
        assert not certify(score, wrong, max_error=less, method=method).certified


@pytest.mark.parametrize(("method", "fewest"), [("sgr", 93), ("learn-then-test", 29)])
def test_fewest_items_without_an_error(method: CertifyMethod, fewest: int) -> None:
    """SGR's first test keeps half, at 0.05 / 7; the other keeps all, at 0.05."""
    assert 0.9**47 <= 0.05 / 7 < 0.9**46
    assert 0.9**29 <= 0.05 < 0.9**28
    right = np.zeros(fewest, bool)
    assert certify(np.arange(fewest), right, max_error=0.1, method=method).coverage == 1
    needed = shortfall(np.arange(fewest - 1), right[1:], 0.1, method).items_needed
    assert needed in (fewest, fewest + 1)  # an estimate


def test_says_that_no_number_of_items_would_do() -> None:
    short = shortfall(np.arange(500), np.arange(500) % 2, 0.1, "sgr")
    assert short.items_needed is None
    assert str(short).startswith("No number of calibration items like these would do. In place")
