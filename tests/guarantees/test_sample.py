"""Calibration items, sorted and counted."""

import numpy as np
import pytest
from scipy.stats import binomtest

from credalearn import ScoredItems
from credalearn.guarantees._sample import as_sample
from credalearn.guarantees.bounds import interval, upper_bound


def test_sample_counts_items_and_errors() -> None:
    rng = np.random.default_rng(0)
    score = rng.integers(0, 30, 200) / 30  # many ties
    wrong = rng.random(200) < score / 2
    sample = as_sample(ScoredItems(score, wrong))
    assert sample.thresholds.tolist() == sorted(set(score.tolist()))
    low, high = interval(sample.errors, sample.kept, confidence=0.9, binary=sample.binary)
    upper = upper_bound(sample.errors, sample.kept, level=0.0125, binary=sample.binary)
    for index, threshold in enumerate(sample.thresholds):
        kept = wrong[score <= threshold]
        assert (sample.kept[index], sample.errors[index]) == (len(kept), kept.sum())
        expected = binomtest(int(kept.sum()), len(kept)).proportion_ci(0.9)
        found = (low[index], high[index])
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
        one_sided = binomtest(int(kept.sum()), len(kept), alternative="less")
        assert upper[index] == pytest.approx(one_sided.proportion_ci(1 - 0.0125).high)
