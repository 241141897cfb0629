"""Methods beside one of them, and settings beside each other: differences paired by seed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import (
    beside_method,
    beside_setting,
    difference_tables,
    paired,
)
from credalearn_experiments.results.seeds import own_runs, runs_of

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


def test_a_difference_is_the_paired_t_statistic() -> None:
    one, other = RNG.uniform(0.8, 0.9, (2, 6))
    records = runs("pocc", dict(enumerate(one))) + runs("softmax", dict(enumerate(other)))
    found = beside_method(runs_of(records, "s"), "softmax")["pocc"]["accuracy"]
    expected = stats.ttest_rel(one, other)
    assert found.standard_error is not None
    assert found.mean / found.standard_error == pytest.approx(expected.statistic, rel=1e-6)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()), rel=1e-6)
    assert (found.above, found.below, found.seeds) == ((one > other).sum(), (one < other).sum(), 6)


def test_only_seeds_that_both_have_are_paired() -> None:
    records = runs("pocc", {1: 0.9, 2: 0.8, 3: 0.5}) + runs("edl", {2: 0.7, 3: 0.5, 4: 0.1})
    by_method = runs_of(records, "s")
    found = paired(by_method["pocc"], by_method["edl"], "accuracy")
    assert found is not None
    assert found.mean == pytest.approx(0.05)
    assert (found.seeds, found.above, found.below) == (2, 1, 0)  # equal on seed 3
    assert paired(by_method["pocc"], by_method["edl"], "auarc") is None


def test_better_is_lower_for_the_calibration_error() -> None:
    records = runs("pocc", {1: 0.9, 2: 0.9, 3: 0.4}) + runs("edl", {1: 0.8, 2: 0.8, 3: 0.5})
    points, better = difference_tables(beside_method(runs_of(records, "s"), "edl"))
    row = "pocc (3 seeds)"
    accuracy, ece = points.rows[row]["ACC"], points.rows[row]["ECE"]
    assert accuracy is not None
    assert ece is not None
    assert accuracy[0] == pytest.approx(0.1 / 3)
    assert ece[0] == pytest.approx(-0.1 / 3)
    assert better.rows[row] == {"ACC": (2, None), "ECE": (2, None)}


def test_a_method_that_lacks_a_metric_has_a_dash() -> None:
    records = runs("pocc", {1: 0.9}) + runs("edl", {1: 0.8})
    (other,) = runs("softmax", {1: 0.7})
    other = replace(other, metrics={"accuracy": 0.7})
    points, better = difference_tables(beside_method(runs_of([*records, other], "s"), "edl"))
    assert points.rows["softmax (1 seed)"]["ECE"] is None
    assert better.rows["softmax (1 seed)"]["ECE"] is None
    assert points.rows["pocc (1 seed)"]["ECE"] is not None


def test_in_a_collapsed_setting_pocc_is_that_of_collapsed_labels() -> None:
    records = runs("pocc", {1: 0.9}, setting="cifar10h")
    records += runs("pocc", {1: 0.8}, setting="cifar10h-collapsed")
    found = beside_setting(own_runs(records, "cifar10h"), own_runs(records, "cifar10h-collapsed"))
    assert found["pocc"]["accuracy"].mean == pytest.approx(0.1)


def test_what_cannot_be_compared_is_refused() -> None:
    by_method = runs_of(runs("pocc", {1: 0.9}) + runs("edl", {2: 0.9}), "s")
    with pytest.raises(CredalError, match=r"no run of 'nix'\. To fix: take one of pocc, edl"):
        beside_method(by_method, "nix")
    with pytest.raises(CredalError, match=r"no run shares .* 'edl'\. To fix: take another"):
        beside_method(by_method, "edl")
    with pytest.raises(CredalError, match="no run shares a seed"):
        beside_setting(by_method, {"softmax": by_method["pocc"]})
    mixed = runs("pocc", {1: 0.9}) + runs("edl", {1: 0.9}, epochs=2)
    with pytest.raises(CredalError, match="same epochs"):
        beside_setting(by_method, own_runs(mixed, "s"))
    short = own_runs(runs("pocc", {1: 0.9}, setting="t", epochs=2), "t")
    with pytest.raises(CredalError, match="two settings that are compared must all have the same"):
        beside_setting(by_method, short)
