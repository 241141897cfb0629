"""The limits that the benchmarks print hold here too."""

from collections.abc import Callable

import core
import pytest


@pytest.mark.parametrize("measure", core.ALL, ids=lambda measure: measure.__name__)
def test_the_limits_hold(measure: Callable[[], list[core.Measurement]]) -> None:
    lines = measure()
    assert lines
    broken = [line for line in lines if not line.holds]
    assert not broken
