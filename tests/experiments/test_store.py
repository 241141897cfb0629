"""A store of runs: states, refusals and logs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from credalearn import CredalError
from credalearn_experiments.evaluation import Measurements
from credalearn_experiments.runs import Run
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.store import EpochLog, Store, read_log, read_predictions, seconds_spent
from fuzzing import read_changed_result

SETTING = ALL_SETTINGS["cifar10h"].narrowed(epochs=10, seeds=(1, 2))
RUN = Run(SETTING, "pocc", 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def finish(store: Store, run: Run) -> None:
    tensors = {f"test.{name}": torch.full((1, 2), 0.5) for name in ("probs", "lower", "upper")}
    found = Measurements({"accuracy": 0.5}, {}, {**tensors, "y": torch.tensor([1])})
    store.finish(run, found, weights={"w": torch.ones(2)}, seconds=2.0, device="cpu")


@pytest.mark.parametrize("content", ["[]", '{"asked": 3}', "{}", '{"asked": {', "\x00"])
def test_a_damaged_configuration_is_a_new_run(store: Store, content: str) -> None:
    store.start(RUN)
    store.checkpoint(RUN).write_bytes(b"state")
    store.start(RUN)  # of a resumed run nothing is removed
    assert store.checkpoint(RUN).exists()
    finish(store, RUN)
    assert not store.checkpoint(RUN).exists()
    (store.path(RUN) / "config.json").write_text(content)
    assert store.state(RUN) == "new"
    store.start(RUN)
    assert store.state(RUN) == "started"
    assert not (store.path(RUN) / "metrics.json").exists()


def test_a_run_killed_before_its_checkpoint_is_removed_is_finished_again(store: Store) -> None:
    store.start(RUN)
    finish(store, RUN)
    assert store.state(RUN) == "done"
    store.checkpoint(RUN).write_bytes(b"state")
    assert store.state(RUN) == "started"


def test_another_configuration_is_refused_with_what_differs(store: Store) -> None:
    other = replace(RUN, setting=SETTING.narrowed(epochs=20))
    store.start(other)
    assert store.state(RUN) == "new"  # nothing of the other is kept
    finish(store, other)
    message = (
        r"another configuration: epochs \(20 there, 10 here\)"
        r"\. To fix: .* another --store, or delete that folder"
    )
    with pytest.raises(CredalError, match=message):
        store.state(RUN)
    assert store.state(replace(other, setting=other.setting.narrowed(methods=("edl",)))) == "done"


def test_predictions_are_read_by_name(store: Store) -> None:
    store.start(RUN)
    finish(store, RUN)
    found = read_predictions(store.folder, "cifar10h", "pocc", 1)
    assert found.probs.tolist() == [[0.5, 0.5]]
    with pytest.raises(CredalError, match=r"the part of .* must be one of 'test'; got 'svhn'"):
        read_predictions(store.folder, "cifar10h", "pocc", 1, part="svhn")
    (store.path(RUN) / "predictions.safetensors").write_bytes(b"{")
    with pytest.raises(CredalError, match=r"seed-1.* is damaged .* To fix: run it again with"):
        read_predictions(store.folder, "cifar10h", "pocc", 1)


def test_a_log_survives_half_a_line_and_adds_up_the_time_of_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert (read_log(path), seconds_spent(path)) == ([], 0.0)
    path.write_text('{"epoch": 1, "seconds": 5.0}\n[]\n{"epoch": null}\n{"epoch": 2, "of')
    assert read_log(path) == [(1, 5.0)]
    log = EpochLog(path, together=2)
    log.started -= 8.0  # half of 8 s belongs to this model
    log.epoch(2, of=4, loss=0.5, items=4)
    assert [epoch for epoch, _ in read_log(path)] == [1, 2]
    assert seconds_spent(path) == pytest.approx(9.0, abs=0.5)


def test_a_changed_file_of_the_store_is_named_or_used(tmp_path: Path) -> None:
    for seed in range(150):  # scripts/attack.py takes more
        read_changed_result(seed, tmp_path)
