"""The records of a setting by method and seed."""

from dataclasses import replace

import pytest

from credalearn import CredalError
from credalearn_experiments.results.seeds import (
    runs_of,
)
from fake_records import one


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
