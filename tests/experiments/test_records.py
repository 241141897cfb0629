"""Records, written and read back."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from credalearn import CredalError
from credalearn_experiments.records import (
    Record,
    copy_records,
    read_record,
    read_records,
    result_path,
    write_record,
)
from fake_records import fake_records


def one(**changes: Any) -> Record:
    given = {"setting": "cifar10h", "method": "pocc", "seed": 1, "metrics": {"accuracy": 0.9}}
    return Record(**{**given, **changes})


def test_a_record_comes_back_to_six_digits(tmp_path: Path) -> None:
    record = fake_records(methods=["pocc"], seeds=[1])[0]
    path = result_path(tmp_path, "cifar10h", "pocc", 1)
    write_record(path, record)
    again = read_record(path)
    assert (again.name, again.config, again.versions) == (
        record.name,
        record.config,
        record.versions,
    )
    for name, value in record.metrics.items():
        assert again.metrics[name] == pytest.approx(value, rel=1e-5)
        assert again.metrics[name] == float(f"{value:.6g}")
    assert again.curves["accuracy_rejection"] == pytest.approx(
        record.curves["accuracy_rejection"], rel=1e-5
    )
    text = path.read_text()
    write_record(path, again)
    assert path.read_text() == text
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert sum(len(line) > 200 for line in text.splitlines()) == 1  # the curve


def test_text_with_brackets_is_left_alone(tmp_path: Path) -> None:
    record = one(versions={"device": 'a [ b ] "c" [\n1,\n2 ]'}, config={"seeds": [1, 2], "e": []})
    write_record(tmp_path / "a.json", record)
    assert read_record(tmp_path / "a.json") == record
    assert '"seeds": [1, 2]' in (tmp_path / "a.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setting": ""}, "setting must be a name; the record of  pocc seed 1 has ''"),
        ({"method": 3}, "method must be a name"),
        ({"seed": -1}, "seed must be a whole number, 0 or more; .* has -1"),
        ({"seed": True}, "seed must be a whole number"),
        ({"seed": 1.0}, "seed must be a whole number"),
        ({"metrics": {}}, "metrics must hold one or more"),
        ({"metrics": [0.9]}, "metrics must be an object"),
        ({"metrics": {"ece": math.nan}}, r"metrics\['ece'\] must be a finite number; .* has nan"),
        ({"metrics": {"ece": "0.1"}}, "must be a finite number"),
        ({"curves": {"a": [0.1, None]}}, r"curves\['a'\] must be a list of finite numbers"),
        ({"curves": {"accuracy_rejection": [1.0] * 100}}, "must hold 101 numbers; .* has 100"),
        ({"config": None}, "config must be an object"),
        ({"versions": "1"}, "versions must be an object"),
        ({"seconds": math.inf}, "seconds must be a finite number"),
        ({"seconds": 10**400}, "seconds must be a finite number"),
    ],
)
def test_a_wrong_record_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        one(**changes)


def test_a_folder_is_read_and_its_damage_named(tmp_path: Path) -> None:
    good = fake_records(methods=["pocc", "edl"], seeds=[1, 2])
    for record in good[:3]:
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    store = tmp_path / "store" / "cifar10h" / "edl" / "seed-2"
    write_record(store / "metrics.json", good[3])
    (store / "config.json").write_text("not looked at")
    (store / ".metrics.json.partial").write_text("{")
    folder = tmp_path / "cifar10h"
    (folder / "cut.json").write_text('{"setting": "cif')
    (folder / "bytes.json").write_bytes(b"\xff\xfe")
    (folder / "list.json").write_text("[1]")
    (folder / "other.json").write_text('{"color": 1}')
    (folder / "half.json").write_text('{"setting": "cifar10h", "method": "edl"}')
    write_record(folder / "pocc-seed-7.json", good[0])
    found = read_records(tmp_path)
    names = [record.name for record in found.records]
    assert names == [
        f"cifar10h {method} seed {seed}" for method in ("edl", "pocc") for seed in (1, 2)
    ]
    assert len(found.damaged) == 6
    told = {Path(line.split(": ")[0]).name: line for line in found.damaged}
    assert "this is no JSON" in told["cut.json"]
    assert "this is no JSON" in told["bytes.json"]
    assert "this holds list" in told["list.json"]
    assert "this holds ['color']" in told["other.json"]
    assert "a record must have seed, metrics" in told["half.json"]
    assert "belongs at cifar10h/pocc-seed-1.json" in told["pocc-seed-7.json"]
    with pytest.raises(CredalError, match=r"there is none at .*nowhere"):
        read_records(tmp_path / "nowhere")


def test_copies_replace_records_of_their_kind_alone(tmp_path: Path) -> None:
    config: dict[str, Any] = {"epochs": 150, "limit": None, "files": {"model.safetensors": {}}}
    config["built_on"] = {"cifar10h/softmax/seed-1": "0f"}
    whole = [one(seed=seed, config=config) for seed in (1, 2)]
    copy_records(whole, tmp_path)
    paths = sorted(tmp_path.rglob("*.json"))
    assert [path.name for path in paths] == ["pocc-seed-1.json", "pocc-seed-2.json"]
    assert read_record(paths[0]).config == {"epochs": 150, "limit": None}
    copy_records([replace(record, metrics={"accuracy": 0.8}) for record in whole], tmp_path)
    assert read_record(paths[0]).metrics == {"accuracy": 0.8}
    before = [path.read_text() for path in paths]
    for changed, told in (
        ({"epochs": 1}, "epochs=150, that of the store epochs=1"),
        ({"limit": 512}, "limit=None, that of the store limit=512"),
        ({"weights": "random"}, "weights=None, that of the store weights=random"),
    ):
        rehearsal = [one(seed=seed, config=config | changed) for seed in (3, 2)]
        message = rf"pocc-seed-2\.json has {told}\. To fix: name another folder with --output"
        with pytest.raises(CredalError, match=message):
            copy_records(rehearsal, tmp_path)
        assert [path.read_text() for path in sorted(tmp_path.rglob("*.*"))] == before
    paths[1].write_text("{")  # a damaged record is replaced
    copy_records(whole, tmp_path)
    assert read_record(paths[1]).seed == 2
