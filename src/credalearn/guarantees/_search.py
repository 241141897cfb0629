"""Searches by name: Geifman and El-Yaniv's SGR and conformal risk control.

The thresholds are the calibration scores themselves: the promise of SGR is proved for a score
without ties whose error does not fall as more items are kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from credalearn.guarantees._sequence import ItemEvidence


@dataclass(frozen=True, slots=True)
class Certifier:
    """A search (evidence, max_error, δ → place or None) and its bound (evidence, place, δ)."""

    search: Callable[[ItemEvidence, float, float], int | None]
    bound: Callable[[ItemEvidence, int, float], float]


def selective_guaranteed_risk(found: ItemEvidence, max_error: float, risk: float) -> int | None:
    r"""Geifman and El-Yaniv's SGR (2017): halve the items between what passed and what failed.

    At most :math:`\lceil \log_2(N + 1) \rceil` tests share the risk. The first keeps half: with
    max_error 10 % and δ = 5 % it takes 93 items to certify anything.
    """
    level = _sgr_level(found, risk)
    passed, failed = 0.0, found.kept[-1]
    best = None
    while passed < failed:
        place = int(np.searchsorted(found.kept, (passed + failed) / 2))
        if found.at(place).p_values(max_error, level)[0] <= level:
            best, passed = place, found.kept[place]
        else:
            failed = found.kept[place - 1] if place else 0.0
    return best


def conformal_risk_control(found: ItemEvidence, max_error: float, risk: float) -> int | None:  # noqa: ARG001
    r"""Conformal risk control (Angelopoulos et al., 2022): :math:`(\sum w + 1) / (N + 1) \le r`."""
    passing = (found.errors + 1) / (found.kept[-1] + 1) <= max_error
    return int(passing.sum()) - 1 if passing[0] else None  # the errors never fall


def _sgr_level(found: ItemEvidence, risk: float) -> float:
    return risk / round(float(found.kept[-1])).bit_length()


CERTIFIERS: Mapping[str, Certifier] = {
    "sgr": Certifier(
        selective_guaranteed_risk,
        lambda found, place, risk: found.bound(place, _sgr_level(found, risk)),
    ),
    "conformal-risk-control": Certifier(
        conformal_risk_control,
        lambda found, place, _: float((found.errors[place] + 1) / (found.kept[-1] + 1)),
    ),
}
