"""Records, written and read back."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from credalearn import CredalError
from credalearn_experiments.cli_results import RESULTS
from credalearn_experiments.records import (
    copy_records,
    read_record,
    read_records,
    result_path,
    write_record,
)
from fake_records import fake_records, one


def test_a_record_is_written_with_six_digits_and_read_back(tmp_path: Path) -> None:
    record = fake_records(methods=["pocc"], seeds=[1])[0]
    path = result_path(tmp_path, record)
    write_record(path, record)
    again = read_record(path)
    assert (again.name, again.config) == (record.name, record.config)
    assert again.metrics == {name: float(f"{x:.6g}") for name, x in record.metrics.items()}
    curve = record.curves["accuracy_rejection"]
    assert again.curves["accuracy_rejection"] == pytest.approx(curve, rel=1e-5)
    text = path.read_text()
    write_record(path, again)
    assert path.read_text() == text
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert sum(len(line) > 200 for line in text.splitlines()) == 1  # the curve


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setting": ""}, "setting and method must be names; the record of  pocc seed 1 breaks"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"setting": 7}, "setting and method must be names"),
        ({"metrics": {}}, "metrics must have at least one entry"),
        ({"metrics": {"ece": math.nan}}, "numbers must be finite; the record of cifar10h pocc"),
        ({"curves": {"accuracy_rejection": [1.0] * 100}}, "a curve must have 101 numbers"),
        ({"seconds": math.inf}, "numbers must be finite"),
    ],
)
def test_rejects_a_wrong_record(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        one(**changes)


def test_damaged_files_of_a_folder_are_reported_and_the_others_read(tmp_path: Path) -> None:
    good = fake_records(methods=["pocc", "edl"], seeds=[1, 2])
    for record in good[:3]:
        write_record(result_path(tmp_path, record), record)
    store = tmp_path / "store" / "cifar10h" / "edl" / "seed-2"
    write_record(store / "metrics.json", good[3])
    (store / "config.json").write_text("not looked at")
    folder = tmp_path / "cifar10h"
    contents = [b'{"setting": "cif', b"\xff\xfe", b"[1]", b'{"color": 1}', b'{"metrics": {}}', b"3"]
    wrong: tuple[dict[str, Any], ...] = ({"seed": "1"}, {"curves": {"a": [0, None]}}, {"config": 3})
    whole = {"setting": "cifar10h", "method": "pocc", "seed": 1, "metrics": {"accuracy": 1}}
    contents += [json.dumps(whole | each).encode() for each in wrong]
    for number, content in enumerate(contents):
        (folder / f"{number}.json").write_bytes(content)
    found = read_records(tmp_path)
    names = [f"cifar10h {method} seed {seed}" for method in ("edl", "pocc") for seed in (1, 2)]
    assert [record.name for record in found.records] == names
    assert len(found.damaged) == len(contents)
    assert all("this is not a record, a JSON object of setting, " in x for x in found.damaged)
    with pytest.raises(CredalError, match=r"there is none at .*nowhere"):
        read_records(tmp_path / "nowhere")


def test_all_committed_records_are_read() -> None:
    found = read_records(RESULTS)
    assert not found.damaged
    assert len(found.records) > 1000
    assert all("normalized_auarc" in record.metrics for record in found.records)


def test_a_record_is_replaced_only_by_one_of_its_kind(tmp_path: Path) -> None:
    config: dict[str, Any] = {"epochs": 150, "limit": None}
    whole = [one(seed=seed, config=config) for seed in (1, 2)]
    copy_records(whole, tmp_path)
    paths = sorted(tmp_path.rglob("*.json"))
    assert [path.name for path in paths] == ["pocc-seed-1.json", "pocc-seed-2.json"]
    copy_records([replace(record, metrics={"accuracy": 0.8}) for record in whole], tmp_path)
    assert read_record(paths[0]).metrics == {"accuracy": 0.8}
    before = [path.read_text() for path in paths]
    for changed in ({"epochs": 1}, {"limit": 512}, {"weights": "random"}):
        rehearsal = [one(seed=seed, config=config | changed) for seed in (3, 2)]
        with pytest.raises(CredalError, match=r"pocc-seed-2\.json has .* To fix: pass another --o"):
            copy_records(rehearsal, tmp_path)
        assert [path.read_text() for path in sorted(tmp_path.rglob("*.*"))] == before
