"""Certified thresholds against MAPIE's risk control, where the two overlap."""

import warnings

import numpy as np
import pytest
from mapie.risk_control import control_fwer
from mapie.risk_control.methods import (
    compute_hoeffding_bentkus_p_value,
    find_best_predict_param,
    get_r_hat_plus,
)

from credalearn import Promise, ScoredItems, certify
from credalearn.guarantees._bounds import p_value
from credalearn.guarantees._sequence import Sequence

SEEDS = range(5)


def calibration(random_state: int, num_items: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are multiples of 2⁻¹², with ties, so that 1 − score is exact."""
    rng = np.random.default_rng(random_state)
    score = rng.integers(0, 2048, num_items) / 4096
    return score, rng.random(num_items) < 0.8 * score**2 + 0.01


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3])
def test_p_values_equal_those_of_mapie(rate: float, binary: bool) -> None:
    n, errors = (each.ravel() for each in np.meshgrid(np.arange(1.0, 301), np.arange(0.0, 301)))
    n, errors = n[errors <= n], errors[errors <= n]
    ours = p_value(errors, n, rate, binary=binary)
    with warnings.catch_warnings(action="ignore"):  # 0 log 0 where all are wrong
        theirs = compute_hoeffding_bentkus_p_value(errors / n, n, rate, binary)[:, 0]
    # It takes n · (errors / n) for the errors and rounds up: 3 of 187 become 4.
    counted = np.ceil(n * (errors / n)) == errors
    assert counted.mean() > 0.95
    np.testing.assert_allclose(ours[counted], np.minimum(theirs, 1)[counted], rtol=1e-9)
    assert (ours[~counted] <= theirs[~counted] * (1 + 1e-9)).all()


@pytest.mark.parametrize("with_reference", [True, False])
@pytest.mark.parametrize("random_state", SEEDS)
def test_learn_then_test_equals_mapie(random_state: int, with_reference: bool) -> None:
    items = ScoredItems(*calibration(random_state))
    reference = ScoredItems(*calibration(random_state + 100, 1000)) if with_reference else None
    rule = certify(items.score, items.wrong.astype(bool), max_error=0.08, reference=reference)
    sequence = Sequence.of(items, [Promise(limit=0.08)], reference=reference)
    start = sequence.start(1 - 0.95)
    kept = [items.wrong[items.score <= limit] for limit in sequence.thresholds[start:]]
    errors, n = (np.array([float(f(x)) for x in kept]) for f in (np.sum, len))
    p = p_value(errors, n, 0.08, binary=True)
    rejected = control_fwer(p, 1 - 0.95, fwer_method="fixed_sequence")
    expected = sequence.thresholds[start + rejected[-1]] if len(rejected) else None
    assert rule.threshold == expected


@pytest.mark.parametrize("random_state", SEEDS)
def test_conformal_risk_control_equals_mapie(random_state: int) -> None:
    score, wrong = calibration(random_state)
    rule = certify(score, wrong, max_error=0.0333, method="conformal-risk-control")
    thresholds = np.unique(score)
    losses = (score[:, None] <= thresholds) * wrong[:, None]
    _, bounds = get_r_hat_plus(losses, thresholds, "crc", None, None, None)
    best = find_best_predict_param(thresholds, bounds, np.array([0.0333]))
    assert rule.threshold == best[0]
    assert rule.bound == pytest.approx(bounds[thresholds == best[0]][0])
