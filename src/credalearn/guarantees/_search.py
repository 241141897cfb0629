"""Searches by name: Geifman and El-Yaniv's SGR and conformal risk control.

A test of a threshold asks whether the p-value of "the error among the kept items is max_error or
more" is at most the level of the test. The thresholds are the calibration scores themselves: the
promise of SGR is proved for a score without ties whose error does not fall as more items are kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from credalearn.guarantees._sample import Sample
from credalearn.guarantees.bounds import p_value, upper_bound


@dataclass(frozen=True, slots=True)
class Certifier:
    """A search (sample, max_error, δ → index or None) and its bound (sample, index, δ → rate)."""

    search: Callable[[Sample, float, float], int | None]
    bound: Callable[[Sample, int, float], float]


def selective_guaranteed_risk(sample: Sample, max_error: float, risk: float) -> int | None:
    r"""Geifman and El-Yaniv's SGR (2017): halve the items between what passed and what failed.

    At most :math:`\lceil \log_2(N + 1) \rceil` tests share the risk. The first keeps half: with
    max_error 10 % and δ = 5 % it takes 93 items to certify anything.
    """
    level = _sgr_level(sample, risk)
    passed, failed = 0.0, sample.kept[-1]
    best = None
    while passed < failed:
        group = int(np.searchsorted(sample.kept, (passed + failed) / 2))
        errors, kept = sample.errors[group : group + 1], sample.kept[group : group + 1]
        if p_value(errors, kept, max_error, binary=sample.binary)[0] <= level:
            best, passed = group, sample.kept[group]
        else:
            failed = sample.kept[group - 1] if group else 0.0
    return best


def conformal_risk_control(sample: Sample, max_error: float, risk: float) -> int | None:  # noqa: ARG001
    r"""Conformal risk control (Angelopoulos et al., 2022): :math:`(\sum w + 1) / (N + 1) \le r`."""
    passing = (sample.errors + 1) / (sample.num_items + 1) <= max_error
    return int(passing.sum()) - 1 if passing[0] else None  # the errors never fall


def _sgr_level(sample: Sample, risk: float) -> float:
    return risk / sample.num_items.bit_length()


def _sgr_bound(sample: Sample, group: int, risk: float) -> float:
    errors, kept = sample.errors[group : group + 1], sample.kept[group : group + 1]
    level = _sgr_level(sample, risk)
    return float(upper_bound(errors, kept, level=level, binary=sample.binary)[0])


CERTIFIERS: Mapping[str, Certifier] = {
    "sgr": Certifier(selective_guaranteed_risk, _sgr_bound),
    "conformal-risk-control": Certifier(
        conformal_risk_control,
        lambda sample, group, _: float((sample.errors[group] + 1) / (sample.num_items + 1)),
    ),
}
