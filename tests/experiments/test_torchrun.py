"""Experiments under torchrun: two processes train each model together, on the CPU."""

import json
import re
import subprocess
from pathlib import Path

from tiny_data import write_tiny_data
from torchrun import torchrun


def bench(*options: str, made: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = ("-m", "credalearn_experiments", "run", *options, "--device", "cpu")
    return torchrun(*words, made=made, CREDALEARN_UNVERIFIED="1")


def test_the_bench_trains_on_all_processes_and_only_once(tmp_path: Path) -> None:
    write_tiny_data(tmp_path / "data", items=10)
    store = tmp_path / "store"
    options = ["cifar10h", "--method", "pocc", "--method", "decalibration", "--seeds", "1"]
    options += ["--epochs", "1", "--limit", "8"]
    options += ["--store", str(store), "--data", str(tmp_path / "data")]
    done = bench(*options, made=store)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 of 3 runs are done") == 1  # softmax is decalibration's base
    assert done.stderr.count("pocc/seed-1: epoch 1/1") == 1
    records = sorted(store.rglob("metrics.json"))
    names = [path.parent.parent.name for path in records]
    assert names == ["decalibration", "pocc", "softmax"]
    assert not list(store.rglob("resume*"))
    devices = [json.loads(path.read_text())["versions"]["device"] for path in records]
    assert devices == ["cpu", "2 × cpu", "2 × cpu"]  # decalibration trains nothing
    log = (store / "cifar10h/pocc/seed-1/log.jsonl").read_text()
    assert len(log.splitlines()) == 1
    written = [path.stat().st_mtime_ns for path in records]
    again = bench(*options)
    assert again.returncode == 0, again.stderr
    assert "3 of 3 runs are done" in again.stdout
    assert "epoch" not in again.stderr
    assert [path.stat().st_mtime_ns for path in records] == written


def test_a_mistake_ends_all_processes_with_its_message(tmp_path: Path) -> None:
    options = ["--seeds", "1", "--epochs", "1", "--store", str(tmp_path / "store")]
    done = bench("cifar10h", "--method", "pocc", *options, "--data", str(tmp_path))
    assert done.returncode != 0
    assert done.stderr.count("credalearn-experiments: ") == 1
    assert "credalearn-experiments: CIFAR-10H is missing" in done.stderr
    # On a busy machine the library may abort a process whose connection the first one has closed.
    assert re.search(r"exitcode  : (2|-6)\b", done.stderr)
    assert "Traceback" not in done.stderr.partition("torch/distributed")[0]


def test_an_unknown_setting_ends_all_processes_with_its_message(tmp_path: Path) -> None:
    done = bench("cifar10x", "--store", str(tmp_path / "store"), "--data", str(tmp_path))
    assert done.returncode != 0
    assert "credalearn-experiments: " in done.stderr
    # On a busy machine the library may abort a process whose connection the first one has closed.
    assert re.search(r"exitcode  : (2|-6)\b", done.stderr)
    assert not (tmp_path / "store").exists()
