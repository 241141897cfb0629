"""The tables of a setting, balanced scores, the notes, and tables as Markdown."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import balance
from credalearn_experiments.results.seeds import runs_of
from credalearn_experiments.results.table import Column, Table, Value, markdown
from credalearn_experiments.results.tables import setting_page
from credalearn_experiments.settings.paper import SEVEN
from fake_records import fake_records, one
from present import present

FIRST = "Accuracy, calibration and deferral"


def tables_of(records: list[Record], setting: str = "cifar10h", **options: Any) -> dict[str, Table]:
    parts = setting_page(records, setting, **options)
    tables = [part for part in parts if isinstance(part, Table)]
    assert all(table.title.startswith(f"{setting}: ") for table in tables)
    return {table.title.removeprefix(f"{setting}: "): table for table in tables}


def notes_of(records: list[Record], setting: str = "cifar10h", **options: Any) -> list[str]:
    return [part for part in setting_page(records, setting, **options) if isinstance(part, str)]


def test_balanced_scores_use_the_seeds_that_all_have() -> None:
    records = [r for r in fake_records() if r.method != "edl" or r.seed in (2, 4)]
    runs = runs_of(records, "cifar10h")
    found = present(balance(runs, SEVEN))
    assert found.seeds == (2, 4)
    assert balance(runs, ["pocc", "absent"]) is None
    table = tables_of(records)[FIRST]
    assert [column.name for column in table.columns] == ["ACC", "ECE", "AUARC", "BQS, 2 seeds"]
    assert {"edl (2 seeds)", "pocc (10 seeds)"} <= table.rows.keys()
    lines = notes_of(records)
    assert lines[0].startswith("Seeds: edl 2, laplace-bridge 10")
    assert "over the 2 seeds that all of them have" in lines[1]
    assert "BQS-ST is left out: with fewer than 5 seeds" in lines[2]


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


def test_tables_leave_out_what_was_not_measured() -> None:
    records = fake_records("cifar10h-features")
    title = "Sets at equal coverage of people's votes"
    assert "edl" in tables_of(records, "cifar10h-features")[title].rows
    bare = [replace(r, metrics={"accuracy": 0.9}) if r.method == "edl" else r for r in records]
    assert "edl" not in tables_of(bare, "cifar10h-features")[title].rows
    before = [replace(r, metrics={"accuracy": 0.9, "auroc_svhn": 0.8}) for r in fake_records()]
    assert "AUROC by score, svhn" not in tables_of(before)  # one score is no comparison


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


@given(
    st.lists(st.none() | st.integers(-30, 30), min_size=1, max_size=6),
    st.sampled_from(["higher", "lower"]),
)
def test_best_and_second_values_are_marked(means: list[int | None], better: Any) -> None:
    """Best is what no different value beats, second what just one does; one alone is neither."""
    column = Column("x", better, percent=False)
    rows: dict[str, dict[str, Value]] = {
        str(i): {"x": None if m is None else (m / 20, None)} for i, m in enumerate(means)
    }
    lines = markdown(Table("", [column], rows)).splitlines()
    cells = [line.split(" | ")[1][:-2] for line in lines[2:]]
    printed = {float(f"{m / 20:.1f}") for m in means if m is not None}
    alone = means.count(None) == len(means) - 1
    for mean, cell in zip(means, cells, strict=True):
        if mean is None:
            assert cell == "–"
            continue
        own = float(f"{mean / 20:.1f}")
        beaten_by = sum(x > own if better == "higher" else x < own for x in printed)
        mark = "" if alone else {0: "**", 1: "<u>"}.get(beaten_by, "")
        assert cell[:3].startswith(mark or tuple("−0123456789"))


def test_rounded_zero_has_no_minus_sign() -> None:
    table = Table("", [Column("x")], {"a": {"x": (-1e-6, None)}, "b": {"x": (0, None)}})
    assert markdown(table).count("**0.0**") == 2


@pytest.mark.parametrize(
    ("name", "shown"), [("a|b", r"a\|b"), ("a\nb", "a b"), (r"\input{x}", r"\\input{x}")]
)
def test_names_are_escaped(name: str, shown: str) -> None:
    table = Table("", [Column("x")], {name: {"x": (0.5, 0.1)}}, corner=name)
    lines = markdown(table).splitlines()
    assert lines[2].startswith(f"| {shown} | 50.0 ± 10.0 |")
