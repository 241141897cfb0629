"""Every setting from files to records, on tiny generated files of the official layouts."""

from pathlib import Path

import pytest
import torch

from credalearn.bench.data import DataFolders
from credalearn.bench.executors import work
from credalearn.bench.records import Record, read_record, read_records
from credalearn.bench.runner import Bench
from credalearn.bench.runs import Run, plan
from credalearn.bench.setting import Setting
from credalearn.bench.settings import SETTINGS
from credalearn.bench.store import Store
from credalearn.errors import CredalError
from tiny_data import write_tiny_data

PHOTOS = [name for name, setting in SETTINGS.items() if setting.image_size == 224]
SMALL = [name for name in SETTINGS if name not in PHOTOS]
# Dirichlet distributions and single networks predict points; the sets of the others have a width.
POINTS = {"softmax", "edl", "edl-soft", "dappr", "laplace-bridge"}
LIMIT = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolders:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=20)
    return DataFolders([folder])


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


def rehearse(
    setting: Setting, data: DataFolders, folder: Path, *, limit: int = LIMIT, weights: str = "none"
) -> dict[str, Record]:
    """One epoch on a few items, as ``bench run … --epochs 1 --limit 6 --seeds 1`` does it."""
    store = Store(folder)
    bench = Bench(store, data, torch.device("cpu"), weights=Path(weights), verbose=False)
    runs = plan([setting.narrowed(epochs=1, seeds=(1,))], limit=limit)
    work(bench, runs)
    assert {store.state(run) for run in runs} == {"done"}
    found = read_records(folder)
    assert not found.damaged
    assert len(found.records) == len(runs)
    return {record.method: record for record in found.records if record.seed == 1}


def metrics_of(setting: Setting, method: str) -> set[str]:
    names = ["accuracy", "ece", "auarc", "normalised_auarc", "spearman_error"]
    names += ["auarc_top_probability"]
    if method not in POINTS:
        names += ["auarc_lower_probability", "auarc_mmi", "auarc_entropy_difference"]
    for foreign in setting.foreign:
        names += [f"{kind}_{foreign.replace('-', '_')}" for kind in ("auroc", "auroc_training")]
    return set(names)


def check_record(record: Record, setting: Setting, *, limit: int = LIMIT) -> None:
    assert set(record.metrics) == metrics_of(setting, record.method), record.name
    signed = {"normalised_auarc", "spearman_error"}
    assert all(-1 <= record.metrics[name] <= 1 for name in signed)
    assert all(0 <= value <= 1 for name, value in record.metrics.items() if name not in signed)
    assert len(record.curves["accuracy_rejection"]) == 101
    assert record.curves["accuracy_rejection"][0] == record.metrics["accuracy"]
    assert record.config["epochs"] == 1
    assert record.config["limit"] == limit
    assert record.config["labels"] == setting.to_json()["labels"]
    assert {"credalearn", "torch", "python", "device"} <= set(record.versions)
    assert record.seconds > 0


@pytest.mark.parametrize("name", [name for name in SMALL if name != "cifar10h"])
def test_a_setting_runs_from_files_to_records(
    name: str, data: DataFolders, tmp_path: Path
) -> None:
    setting = SETTINGS[name].narrowed(methods=("pocc", "decalibration"))
    records = rehearse(setting, data, tmp_path)
    assert set(records) == {"pocc", "softmax", "decalibration"}
    for record in records.values():
        check_record(record, setting)
    assert records["decalibration"].config["member_seeds"] == [1]


def test_every_method_of_cifar10h(data: DataFolders, tmp_path: Path) -> None:
    setting = SETTINGS["cifar10h"]
    records = rehearse(setting, data, tmp_path)
    assert set(records) == {*setting.methods, "softmax"}
    for record in records.values():
        check_record(record, setting)


@pytest.mark.parametrize("name", PHOTOS)
def test_a_setting_of_photos_runs(name: str, data: DataFolders, tmp_path: Path) -> None:
    setting = SETTINGS[name].narrowed(methods=("pocc",))
    records = rehearse(setting, data, tmp_path, limit=2)
    check_record(records["pocc"], setting, limit=2)
