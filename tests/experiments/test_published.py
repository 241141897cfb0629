"""The paper's numbers, as the package holds them."""

from collections import Counter

import pytest

from credalearn import CredalError
from credalearn_experiments import PublishedValue, published


def test_every_row_is_read() -> None:
    rows = published()
    assert len(rows) == 1826
    assert rows[0] == PublishedValue(
        "tab:result", "CIFAR-10H", "annotators", "", "EDL", "ACC", 85.0, 0.4
    )
    assert (
        len({(r.table, r.dataset, r.supervision, r.setting, r.method, r.metric) for r in rows})
        == 1826
    )
    counts = Counter(row.metric for row in rows)
    nets = ("net_ACC", "net_1-ECE", "net_AUARC", "Spearman", "BQS-Spearman", "BQS-ST-Spearman")
    assert {counts[metric] for metric in nets} == {115}
    assert counts["BQS-ST"] == 132  # 115 with net scores, 17 for methods on collapsed labels


def test_units_and_missing_deviations() -> None:
    for row in published():
        if row.metric.startswith("OOD-AUROC"):
            assert 0.5 < row.mean <= 1
        elif row.metric.startswith("net_"):
            assert row.mean == int(row.mean)
            assert -6 <= row.mean <= 6
        elif row.metric == "Spearman":
            assert -100 <= row.mean <= 100
        else:
            assert 0 <= row.mean <= 100
        without = row.metric.startswith(("net_", "BQS-ST"))
        assert (row.std is None) == without
        assert row.std is None or row.std >= 0


def test_filters_narrow_the_table() -> None:
    table = published(table="Table: ST-smoothing")
    assert len(table) == 224
    chosen = published(table="Table: ST-smoothing", dataset="CIFAR-100", setting="eps=0.2")
    assert chosen == tuple(r for r in table if r.dataset == "CIFAR-100" and r.setting == "eps=0.2")
    assert len(chosen) == 28
    (value,) = published(
        table="Table: AblationTeacher",
        dataset="CIFAR-10",
        supervision="teacher T=2.5",
        setting="ResNet-20",
        method="POCC",
        metric="BQS",
    )
    assert (value.mean, value.std) == (99.9, 0.3)
    assert published(setting="")[0].setting == ""
    assert published(dataset="MiceBone", supervision="smoothing") == ()


def test_a_filter_that_can_never_hold_is_refused() -> None:
    with pytest.raises(CredalError, match=r"one of table, dataset, .*; got 'data'"):
        published(data="CIFAR-10")
    with pytest.raises(CredalError, match=r"no published method is 'Ours'; there are \['DAPPr'"):
        published(method="Ours")
