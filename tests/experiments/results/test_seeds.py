"""The records of a setting by method and seed."""

from dataclasses import replace

import numpy as np
import pytest

from credalearn import CredalError
from credalearn_experiments.results.seeds import (
    POCC_COLLAPSED,
    mean_and_std,
    mean_of_every,
    runs_of,
)
from credalearn_experiments.settings.paper import SEVEN
from fake_records import fake_records, one


def test_runs_are_in_the_papers_order_without_members_of_ensembles() -> None:
    records = fake_records()
    members = fake_records(methods=["softmax"], seeds=range(1, 15))
    runs = runs_of(records[::-1] + members, "cifar10h")
    assert list(runs) == [*SEVEN, "pocc-ensemble", "softmax"]
    assert all(list(found) == list(range(1, 11)) for found in runs.values())
    # Without an ensemble, every seed counts.
    assert list(runs_of(members[10:], "cifar10h")["softmax"]) == [11, 12, 13, 14]
    ensemble = fake_records(methods=["deep-ensemble"], seeds=[1])
    assert list(runs_of(members[10:] + ensemble, "cifar10h")) == ["deep-ensemble"]


def test_rejects_records_of_different_kinds() -> None:
    record = one(config={"epochs": 150, "limit": None})
    assert runs_of([record, record], "cifar10h") == {"pocc": {1: record}}
    with pytest.raises(CredalError, match="one record; cifar10h pocc seed 1 has two that differ"):
        runs_of([record, replace(record, metrics={"accuracy": 0.8})], "cifar10h")
    with pytest.raises(CredalError, match="must all have the same epochs; got"):
        runs_of([record, one(seed=2, config={"epochs": 1, "limit": None})], "cifar10h")
    edited = [one(seed=seed, config={"method_plugin": f"sha256 {seed}"}) for seed in (1, 2)]
    with pytest.raises(CredalError, match="'cifar10h' must all have the same method_plugin"):
        runs_of(edited, "cifar10h")
    with pytest.raises(CredalError, match=r"no record of setting 'micebone'\. To fix"):
        runs_of([record], "micebone")


def test_pocc_in_a_collapsed_setting_is_pocc_on_the_labels_as_they_are() -> None:
    collapsed = fake_records("cifar10h-collapsed", seeds=[1, 2])
    own = runs_of(collapsed, "cifar10h-collapsed")
    assert list(own) == [*(m for m in SEVEN if m != "pocc"), POCC_COLLAPSED]
    runs = runs_of(collapsed + fake_records(), "cifar10h-collapsed")
    assert list(runs) == [*SEVEN, POCC_COLLAPSED]
    assert {record.setting for record in runs["pocc"].values()} == {"cifar10h"}
    assert list(runs["pocc"]) == [1, 2]  # the seeds that the others have
    assert {record.setting for record in runs[POCC_COLLAPSED].values()} == {"cifar10h-collapsed"}


def test_mean_and_deviation_are_those_of_numpy() -> None:
    runs = runs_of(fake_records(), "cifar10h")["pocc"]
    values = [record.metrics["ece"] for record in runs.values()]
    assert mean_and_std(runs, "ece") == pytest.approx((np.mean(values), np.std(values), 10))
    assert mean_and_std({1: runs[1]}, "ece") == (round(values[0], 12), None, 1)
    assert mean_and_std(runs, "f1") is None
    assert mean_of_every(runs | {11: one(seed=11)}, "ece") is None
