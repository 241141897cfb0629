"""The state of the paper's settings."""

from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.state import read_reasons, state_page
from credalearn_experiments.results.table import Table
from fake_records import fake_records


def rows_of(records: list[Record], reasons: dict[str, str]) -> dict[str, list[object]]:
    table = state_page(records, reasons)[0]
    assert isinstance(table, Table)
    return {name: list(row.values()) for name, row in table.rows.items()}


def test_the_first_pattern_gives_the_reason_and_complete_settings_need_none() -> None:
    records = fake_records("micebone") + fake_records("cifar10-smooth-0.1", methods=["pocc"])
    rows = rows_of(records, {"cifar100-*": "no data", "*": "time"})
    assert rows["micebone"] == ["10: the paper's 5", None, None, "47 of 47"]
    assert rows["cifar10n"] == [None, "all", "time", None]
    assert rows["cifar100-smooth-0.1"] == [None, "all", "no data", "0 of 93"]
    seeds, missing, why, _ = rows["cifar10-smooth-0.1"]
    assert (seeds, why) == ("10: pocc", "time")
    assert missing == "edl, laplace-bridge, decalibration, dappr, mc-dropout, deep-ensemble"


def test_seeds_and_foreign_images_are_missing() -> None:
    records = fake_records(seeds=(1, 2), methods=("pocc", "softmax"))
    for record in records:
        record.metrics.pop("auroc_svhn")  # type: ignore[attr-defined]
    seeds, missing, _, _ = rows_of(records, {})["cifar10h"]
    assert seeds == "2: pocc, softmax"
    assert str(missing).endswith("pocc-ensemble, 8 seeds, foreign images of svhn")


def test_reasons_are_read_from_the_folder_of_records(tmp_path: Path) -> None:
    assert read_reasons(tmp_path) == {}
    path = tmp_path / "not-run.csv"
    path.write_text("setting,reason\na-*,no data, no time\n\n*,time\n", encoding="utf-8")
    assert read_reasons(tmp_path) == {"a-*": "no data, no time", "*": "time"}
    for wrong in ("", "a,b\n", "setting,reason\na\n"):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(CredalError, match="must start with 'setting,reason'"):
            read_reasons(tmp_path)
