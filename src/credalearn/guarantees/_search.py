r"""Which threshold a method certifies: the largest it reaches by tests that share the risk δ.

A test of a threshold asks whether the p-value of "the error among the kept items is max_error or
more" is at most the level of the test.

Why the tests may look at the scores: let the selective risk :math:`R(t) = E[w \mid s \le t]` be
continuous and not fall in t, with :math:`R(t^*) =` max_error last at t*, and condition on how many
items have :math:`s \le t^*`. These err at the rate max_error; every other item's own rate is at
least :math:`R` there, so max_error or more; so each false threshold has errors at least as many as
a binomial with rate max_error. Until one passes, the errors do not change which false thresholds a
search meets: one for a sequence, at most ⌈log₂(N + 1)⌉ for halving. Other scores are simulated.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from credalearn.guarantees._sample import Sample
from credalearn.guarantees.bounds import p_value, upper_bound

_FIRST_SHARE = 0.2  # of the items, and
_FIRST_ERROR = 0.25  # of max_error: where the first test of a fixed sequence is meant to pass


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
        if _passes(sample, slice(group, group + 1), max_error, level).all():
            best, passed = group, sample.kept[group]
        else:
            failed = sample.kept[group - 1] if group else 0.0
    return best


def learn_then_test(sample: Sample, max_error: float, risk: float) -> int | None:
    """Learn then test (Angelopoulos et al., 2021): a fixed sequence of tests (Bauer, 1991).

    Tests run from few kept items to all, each at the whole risk, and stop at the first failure.
    """
    start = first_of_sequence(sample, max_error, risk)
    group, size = start, 1
    while group < len(sample.kept):  # in growing blocks: mostly the first few tests decide
        passes = _passes(sample, slice(group, group + size), max_error, risk)
        if not passes.all():
            group += int(passes.argmin())
            break
        group, size = group + size, 2 * size
    last = min(group, len(sample.kept)) - 1
    return last if last >= start else None


def first_of_sequence(sample: Sample, max_error: float, risk: float) -> int:
    r"""Index of the first threshold that :func:`learn_then_test` tests.

    It keeps enough items for a few errors: :math:`\log(1/\delta) / \mathrm{kl}(r/4, r)`, but at
    most half of the items; at least 20 % of them, and as many as pass without an error. (At 300
    items, r = 10 % and δ = 5 %: 70. Starting at 29 kept 23 % instead of 44 % in a simulation.)
    """
    rarer = _FIRST_ERROR * max_error
    divergence = rarer * math.log(_FIRST_ERROR)
    divergence += (1 - rarer) * math.log((1 - rarer) / (1 - max_error))
    bearing_errors = min(-math.log(risk) / divergence, sample.num_items / 2)
    without_errors = math.log(risk) / math.log1p(-max_error)
    enough = max(bearing_errors, without_errors, _FIRST_SHARE * sample.num_items)
    return int(np.searchsorted(sample.kept, min(math.ceil(enough), sample.kept[-1])))


def conformal_risk_control(sample: Sample, max_error: float, risk: float) -> int | None:  # noqa: ARG001
    r"""Conformal risk control (Angelopoulos et al., 2022): :math:`(\sum w + 1) / (N + 1) \le r`."""
    passing = (sample.errors + 1) / (sample.num_items + 1) <= max_error
    return int(passing.sum()) - 1 if passing[0] else None  # the errors never fall


def _passes(sample: Sample, groups: slice, max_error: float, level: float) -> np.ndarray:
    errors, kept = sample.errors[groups], sample.kept[groups]
    return p_value(errors, kept, max_error, binary=sample.binary) <= level


def _sgr_level(sample: Sample, risk: float) -> float:
    return risk / sample.num_items.bit_length()


def _bound_at(sample: Sample, group: int, level: float) -> float:
    here = slice(group, group + 1)
    bound = upper_bound(sample.errors[here], sample.kept[here], level=level, binary=sample.binary)
    return float(bound[0])


CERTIFIERS: Mapping[str, Certifier] = {
    "sgr": Certifier(
        selective_guaranteed_risk,
        lambda sample, group, risk: _bound_at(sample, group, _sgr_level(sample, risk)),
    ),
    "learn-then-test": Certifier(learn_then_test, _bound_at),
    "conformal-risk-control": Certifier(
        conformal_risk_control,
        lambda sample, group, _: float((sample.errors[group] + 1) / (sample.num_items + 1)),
    ),
}
