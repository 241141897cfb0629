"""Differences paired by seed."""

import numpy as np
import pytest
from scipy import stats

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import Difference, differences_page
from present import present

RNG = np.random.default_rng(0)


def runs(
    method: str, accuracies: dict[int, float], *, setting: str = "s", epochs: int = 1
) -> list[Record]:
    return [
        Record(
            setting=setting,
            method=method,
            seed=seed,
            metrics={"accuracy": value, "ece": 1 - value},
            config={"epochs": epochs},
        )
        for seed, value in accuracies.items()
    ]


def paired(one: list[Record], other: list[Record], metric: str = "accuracy") -> Difference:
    first, second = ({record.seed: record for record in each} for each in (one, other))
    return present(Difference.paired(first, second, metric))


def test_a_difference_is_the_paired_t_statistic() -> None:
    one, other = RNG.uniform(0.8, 0.9, (2, 6))
    found = paired(runs("pocc", dict(enumerate(one))), runs("softmax", dict(enumerate(other))))
    expected = stats.ttest_rel(one, other)
    assert found.mean / present(found.standard_error) == pytest.approx(expected.statistic, rel=1e-6)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()), rel=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert (found.above, found.below, found.seeds) == ((one > other).sum(), (one < other).sum(), 6)


def test_only_common_seeds_are_paired() -> None:
    one, other = runs("pocc", {1: 0.9, 2: 0.8, 3: 0.5}), runs("edl", {2: 0.7, 3: 0.5, 4: 0.1})
    found = paired(one, other)
    assert found.mean == pytest.approx(0.05)
    assert (found.seeds, found.above, found.below) == (2, 1, 0)  # equal on seed 3
    assert Difference.paired({1: one[0]}, {1: other[0]}, "auarc") is None
    assert found.interval is None  # two seeds are too few


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        (-0.0011, 0.0002, "worse"),
        (-0.0009, 0.0001, "no clear difference"),  # less than a tenth of a point
        (-0.02, 0.0047, "no clear difference"),  # within 4.30 standard errors
        (-0.02, 0.0046, "worse"),
        (0.02, 0.0046, "better"),
        (0.0, 0.0, "no clear difference"),
        (-0.3, None, "too few seeds"),
    ],
)
def test_the_verdict_needs_size_and_significance(
    mean: float, error: float | None, verdict: str
) -> None:
    assert Difference(mean, error, 1 if error is None else 3).verdict == verdict


@pytest.mark.parametrize("seeds", [3, 10])
def test_equal_pairs_are_called_different_once_in_twenty(seeds: int) -> None:
    pairs = np.random.default_rng(0).normal(0, 0.5, size=(4000, seeds))  # far above 0.1 points
    errors = pairs.std(1, ddof=1) / seeds**0.5
    verdicts = [
        Difference(float(mean), float(error), seeds).verdict
        for mean, error in zip(pairs.mean(1), errors, strict=True)
    ]
    for verdict in ("worse", "better"):  # each 2.5 %, ± three standard errors of the simulation
        assert verdicts.count(verdict) / 4000 == pytest.approx(0.025, abs=0.0075)


def test_the_interval_is_stated_in_standard_errors() -> None:
    records = runs("pocc", {1: 0.9, 2: 0.9, 3: 0.4}) + runs("edl", {1: 0.8, 2: 0.8, 3: 0.5})
    assert any("4.30 for 3 seeds" in str(part) for part in differences_page(records, "s", "edl"))
    two = [record for record in records if record.seed < 3]
    assert not any("interval" in str(part) for part in differences_page(two, "s", "edl"))


def test_rejects_runs_that_cannot_be_compared() -> None:
    records = runs("pocc", {1: 0.9}) + runs("edl", {2: 0.9})
    with pytest.raises(CredalError, match=r"--than must be a method or another setting .*'nix'"):
        differences_page(records, "s", "nix")
    with pytest.raises(CredalError, match=r"no run shares a seed and a metric with 'edl'\. To fix"):
        differences_page(records, "s", "edl")
    short = runs("pocc", {1: 0.9}, setting="t", epochs=2)
    with pytest.raises(CredalError, match="two settings that are compared must all have the same"):
        differences_page(records + short, "s", "t")
