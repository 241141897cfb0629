"""The paper's figures, and ours compared with them."""

from collections import Counter
from pathlib import Path

import pytest

from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import MAIN
from credalearn_experiments.results.paper import compare, published, read_reasons, state_page
from credalearn_experiments.results.table import Table
from credalearn_experiments.settings.paper import SETTINGS, SEVEN
from fake_records import fake_records

OURS = {
    "ACC": ("accuracy", 100),
    "ECE": ("ece", 100),
    "AUARC": ("auarc", 100),
    "Spearman": ("spearman_error", 100),
    "AUARC:MMI": ("auarc_mmi", 100),
    "AUARC:H-Diff": ("auarc_entropy_difference", 100),
    "OOD-AUROC:SVHN": ("auroc_svhn", 1),
    "OOD-AUROC:Places365": ("auroc_places365", 1),
    "OOD-AUROC:FMNIST": ("auroc_fashion_mnist", 1),
    "OOD-AUROC:ImageNet": ("auroc_imagenet", 1),
}
COMPARED = ("BQS", "BQS-ST", "BQS-Spearman", "BQS-ST-Spearman", "net_ACC", "net_1-ECE", "net_AUARC")


def records_of_the_paper() -> list[Record]:
    """Five seeds per method on which every metric is what the paper prints."""
    metrics: dict[tuple[str, str], dict[str, float]] = {}
    for row in published():
        if row.metric in OURS:
            name, scale = OURS[row.metric]
            method, setting = row.method, row.setting
            if SETTINGS[setting].collapsed and method == "pocc":
                setting = SETTINGS[setting].task  # there too it is POCC on the labels as they are
            found = metrics.setdefault((setting, method), {}).setdefault(name, row.mean / scale)
            assert found == row.mean / scale  # the paper never contradicts itself
    collapsed = [setting for setting in SETTINGS if SETTINGS[setting].collapsed]
    metrics |= {(setting, "pocc"): dict.fromkeys(MAIN, 0.5) for setting in collapsed}
    # The AUARC of MiceBone and TreeVersity is in a figure; net scores need some number.
    return [
        Record(setting=setting, method=method, seed=seed, metrics={"auarc": 0.9, **found})
        for (setting, method), found in metrics.items()
        for seed in range(1, 6)
    ]


def test_the_published_figures_are_complete_and_in_their_units() -> None:
    rows = published()
    keys = {(r.table, r.setting, r.method, r.metric) for r in rows}
    assert len(rows) == len(keys) == 1826
    counts = Counter(row.metric for row in rows)
    assert set(counts) == {*OURS, *COMPARED}
    assert counts["BQS-ST"] == 132  # 115 with net scores, 17 for methods on collapsed labels
    for row in rows:
        if row.metric.startswith("OOD-AUROC"):
            assert 0.5 < row.mean <= 1
        elif row.metric.startswith("net_"):
            assert row.mean in range(-6, 7)
        else:
            assert (-100 if row.metric == "Spearman" else 0) <= row.mean <= 100
        assert (row.std is None) == row.metric.startswith(("net_", "BQS-ST"))


def test_the_papers_own_numbers_have_no_difference() -> None:
    rows = compare(records_of_the_paper())
    assert tuple(row.published for row in rows) == published()
    for row in rows:
        if row.published.metric in OURS:
            assert row.mean == pytest.approx(row.published.mean, abs=1e-9)
            assert row.difference in ((0.0,) if row.published.std else (None,))
        else:
            assert (row.std is None) == (row.published.std is None)


def test_figures_that_the_records_cannot_answer_are_left_out() -> None:
    assert compare([]) == []
    few = compare(fake_records(seeds=[1, 2, 3, 4]))
    metrics = {row.published.metric for row in few}
    assert "BQS" in metrics
    assert not {"BQS-ST", "net_ACC"} & metrics
    assert {row.seeds for row in few} == {4}
    six = compare(fake_records(methods=SEVEN[1:]))
    assert not {row.published.metric for row in six} - set(OURS)
    assert compare(fake_records("cifar10h-warm")) == []
    assert all(row.std is None for row in compare(fake_records(seeds=[1])))


def test_seeds_and_foreign_images_are_missing() -> None:
    records = fake_records(seeds=(1, 2), methods=("pocc", "softmax"))
    for record in records:
        record.metrics.pop("auroc_svhn")  # type: ignore[attr-defined]
    table = state_page(records, {})[0]
    assert isinstance(table, Table)
    seeds, missing, _, _ = table.rows["cifar10h"].values()
    assert seeds == "2: pocc, softmax"
    assert str(missing).endswith("pocc-ensemble, 8 seeds, foreign images of svhn")


def test_reasons_are_read_from_the_folder_of_records(tmp_path: Path) -> None:
    assert read_reasons(tmp_path) == {}
    path = tmp_path / "not-run.csv"
    path.write_text('setting,reason\na-*,"no data, no time"\n*,time\n', encoding="utf-8")
    assert read_reasons(tmp_path) == {"a-*": "no data, no time", "*": "time"}
