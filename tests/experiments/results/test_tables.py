"""The tables of a setting, balanced scores, and the notes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from credalearn.metrics import balanced_quality, significance_ranking
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import ENTROPY, MAIN, balance, deferral_metric
from credalearn_experiments.results.seeds import mean_of_every, runs_of
from credalearn_experiments.results.table import Table, markdown
from credalearn_experiments.results.tables import setting_page
from credalearn_experiments.settings.paper import FOREIGN_SETS, SEVEN
from fake_records import fake_records

FIRST = "Accuracy, calibration and deferral"
TEST_IMAGES = "AUROC, foreign against test images"


def tables_of(records: list[Record], setting: str = "cifar10h", **options: Any) -> dict[str, Table]:
    parts = setting_page(records, setting, **options)
    tables = [part for part in parts if isinstance(part, Table)]
    assert all(table.title.startswith(f"{setting}: ") for table in tables)
    return {table.title.removeprefix(f"{setting}: "): table for table in tables}


def notes_of(records: list[Record], setting: str = "cifar10h", **options: Any) -> list[str]:
    return [part for part in setting_page(records, setting, **options) if isinstance(part, str)]


def test_balanced_scores_are_those_of_the_metrics() -> None:
    records = fake_records()
    table = {
        method: {m: [r.metrics[m] for r in records if r.method == method] for m in MAIN}
        for method in SEVEN
    }
    found = balance(runs_of(records, "cifar10h"), SEVEN)
    assert found is not None
    assert found.quality == balanced_quality(table)
    assert found.significance == significance_ranking(table)
    assert found.seeds == tuple(range(1, 11))
    main = tables_of(records)[FIRST]
    assert main.corner == "method (10 seeds)"
    for method in SEVEN:
        row = main.rows[method]
        assert row["BQS"] == (found.quality[method].mean, found.quality[method].std)
        assert row["BQS-ST"] == (found.significance[method].score, None)
        assert row["ACC"] == mean_of_every(runs_of(records, "cifar10h")[method], "accuracy")
    assert "BQS" not in main.rows["pocc-ensemble"]
    two = tables_of(records, balance=["pocc", "pocc-ensemble"])[FIRST]
    assert "BQS" in two.rows["pocc-ensemble"]
    assert "BQS" not in two.rows["edl"]


def test_balanced_scores_use_the_seeds_that_all_have() -> None:
    records = [r for r in fake_records() if r.method != "edl" or r.seed in (2, 4)]
    runs = runs_of(records, "cifar10h")
    found = balance(runs, SEVEN)
    assert found is not None
    assert found.seeds == (2, 4)
    assert balance(runs, ["pocc", "absent"]) is None
    table = tables_of(records)[FIRST]
    assert [column.name for column in table.columns] == ["ACC", "ECE", "AUARC", "BQS, 2 seeds"]
    assert {"edl (2 seeds)", "pocc (10 seeds)"} <= table.rows.keys()
    lines = notes_of(records)
    assert lines[0].startswith("Seeds: edl 2, laplace-bridge 10")
    assert "over the 2 seeds that all of them have" in lines[1]
    assert "BQS-ST is left out: with fewer than 5 seeds" in lines[2]


def test_a_setting_has_every_table_that_its_records_can_fill() -> None:
    tables = tables_of(fake_records())
    assert list(tables) == [
        FIRST,
        "AUARC by score",
        "Balanced scores by score",
        "Normalized AUARC",
        "Rank correlation of uncertainty and error",
        *(f"AUROC by score, {name}" for name in FOREIGN_SETS),
        TEST_IMAGES,
    ]
    foreign = [column.name for column in tables[TEST_IMAGES].columns]
    assert foreign[2:] == ["fashion-mnist", "imagenet", "tiny-imagenet"]
    assert TEST_IMAGES not in tables_of(fake_records("micebone"), "micebone")


def test_foreign_images_are_shown_by_each_score() -> None:
    records = fake_records()
    table = tables_of(records)["AUROC by score, svhn"]
    assert [column.name for column in table.columns] == ["own score", "top probability"]
    own = np.mean([r.metrics["auroc_svhn"] for r in records if r.method == "pocc"])
    value = table.rows["pocc"]["top probability"]
    assert isinstance(value, tuple)
    assert value[0] == pytest.approx(own + 0.01)
    before = [replace(r, metrics={"accuracy": 0.9, "auroc_svhn": 0.8}) for r in records]
    assert "AUROC by score, svhn" not in tables_of(before)  # one score is no comparison


def test_balanced_scores_by_the_entropy_difference_change_mmi_alone() -> None:
    runs = runs_of(fake_records(), "cifar10h")
    for method in runs:
        metric = "auarc_entropy_difference" if method.startswith("pocc") else "auarc"
        assert deferral_metric(ENTROPY, method) == metric
    expected, own = balance(runs, SEVEN, score=ENTROPY), balance(runs, SEVEN)
    assert expected is not None
    assert own is not None
    table = tables_of(fake_records())["Balanced scores by score"]
    for method in SEVEN:
        row = table.rows[method]
        assert row["BQS, H_diff for MMI"] == expected.mean_and_std(method)
        assert row["BQS-ST, H_diff for MMI"] == (expected.significance[method].score, None)
        assert row["BQS, own score"] == own.mean_and_std(method)
    assert expected.quality["pocc"].mean < own.quality["pocc"].mean


def test_a_score_that_a_method_lacks_is_not_balanced() -> None:
    records = fake_records("cifar10h", seeds=(1,))
    bare = [
        replace(r, metrics={n: x for n, x in r.metrics.items() if "top" not in n})
        if r.method == "edl"
        else r
        for r in records
    ]
    names = [column.name for column in tables_of(bare)["Balanced scores by score"].columns]
    assert names == ["BQS, own score", "BQS, H_diff for MMI"]


def test_notes_report_members_rehearsals_and_what_a_setting_lacks() -> None:
    shared = " ".join(notes_of(fake_records()))
    assert "Members of deep-ensemble and pocc-ensemble are shared: ensembles of neigh" in shared
    assert "rehearsal" not in shared
    config = {"epochs": 1, "limit": 512}
    short = [replace(r, config=config) for r in fake_records("micebone", methods=["edl"])]
    lines = notes_of(short, "micebone")
    assert "A rehearsal: epochs 1, not 60; at most 512 training and test items." in lines
    assert any(line.startswith("Not in these tables: ") and "pocc" in line for line in lines)
    collapsed = fake_records("cifar10h-collapsed") + fake_records()
    assert "labels as they are (setting cifar10h)" in notes_of(collapsed, "cifar10h-collapsed")[-1]


def test_own_settings_compare_all_methods_unless_they_have_the_papers() -> None:
    records = [replace(record, setting="mine") for record in fake_records(seeds=range(1, 6))]
    rows = tables_of(records, "mine")[FIRST].rows
    assert "BQS-ST" in rows["edl"]
    assert "BQS" not in rows["pocc-ensemble"]
    few = [record for record in records if record.method in ("edl", "softmax")]
    few += fake_records(methods=["softmax"], seeds=range(1, 6))
    few = [replace(record, setting="mine") for record in few]
    assert "BQS" in tables_of(few, "mine")[FIRST].rows["softmax"]


def test_set_sizes_with_the_coverage_reached() -> None:
    records = fake_records("cifar10h-features")
    title = "Sets at equal coverage of people's votes"
    table = tables_of(records, "cifar10h-features")[title]
    assert table.rows.keys() == {record.method for record in records}
    own = [record.metrics["set_width_90"] for record in records if record.method == "edl"]
    assert table.rows["edl"]["width at 90 %"] == pytest.approx((np.mean(own), np.std(own)))
    assert not any("**" in line.split("|")[3] for line in markdown(table).splitlines()[2:])
    bare = [replace(r, metrics={"accuracy": 0.9}) if r.method == "edl" else r for r in records]
    assert "edl" not in tables_of(bare, "cifar10h-features")[title].rows
