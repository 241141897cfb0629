"""Doing runs: the numbers of committed records, resuming, failing, measuring again."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from credalearn import CredalError
from credalearn._method_training import widened
from credalearn.methods import METHODS, Model
from credalearn.train import Training, train
from credalearn_experiments.cli_results import RESULTS
from credalearn_experiments.executor import execute
from credalearn_experiments.records import read_record, read_records
from credalearn_experiments.results.seeds import runs_of
from credalearn_experiments.runner import Runner
from credalearn_experiments.runs import plan
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.store import Store, read_log, read_predictions
from fake_records import VOTED, VOTED_METRICS
from tiny_runs import command, start, tiny_context, tiny_plan, wait_until


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


@pytest.mark.parametrize(
    ("setting", "method"),
    [("lidc-votes-1-idm", "pocc"), ("lidc-votes-3-relax-ties", "pocc-center")],
)
def test_a_committed_record_is_reproduced(setting: str, method: str, tmp_path: Path) -> None:
    """Trained on a CPU; another version of torch may round differently."""
    [run] = plan([ALL_SETTINGS[setting].narrowed(methods=(method,), seeds=(1,))])
    execute(tiny_context(tmp_path), [run])
    found = Store(tmp_path).record(run)
    expected = read_record(RESULTS / setting / f"{method}-seed-1.json")
    assert found.config == expected.config
    metrics = {name: found.metrics[name] for name in expected.metrics}  # more is measured now
    if found.versions["torch"] == expected.versions["torch"]:
        assert metrics == expected.metrics
        assert found.curves == expected.curves
    assert metrics == pytest.approx(expected.metrics, abs=0.05)


# Each kind of data and labels once; one method, and one that is built on another.
KINDS = {
    (each.task, each.foreign, type(each.labels), each.collapsed, each.centered, each.mix): name
    for name, each in ALL_SETTINGS.items()
    if each.image_size == 32 or name == "micebone"
}


@pytest.mark.parametrize("name", KINDS.values())
def test_a_setting_runs_from_files_to_records(name: str, data: Path, tmp_path: Path) -> None:
    setting = ALL_SETTINGS[name]
    methods = ("pocc",) if setting.backbone != "mlp" else ("pocc", "decalibration")
    runs = plan(
        [setting.narrowed(epochs=1, seeds=(1,), methods=methods)],
        limit=4 if setting.image_size == 32 else 2,
        weights=Path("none"),
    )
    execute(replace(tiny_context(tmp_path, data), weights=Path("none")), runs)
    store = Store(tmp_path)
    for run in runs:
        record = store.record(run)
        names = {"accuracy", "ece", "auarc", "normalized_auarc", "spearman_error"}
        names |= {f"auroc_{foreign.replace('-', '_')}" for foreign in setting.foreign}
        names |= set(VOTED_METRICS) if setting.task in (*VOTED, "lidc") else set()
        assert names <= record.metrics.keys()
        assert len(record.curves["accuracy_rejection"]) == 101
        assert record.curves["accuracy_rejection"][0] == record.metrics["accuracy"]
        assert record.config["labels"] == setting.as_plain()["labels"]


def test_a_student_killed_and_resumed_ends_as_one_never_killed(data: Path, tmp_path: Path) -> None:
    """Taught on augmented images by networks from the store."""
    whole, killed = Store(tmp_path / "whole"), Store(tmp_path / "killed")
    setting = ALL_SETTINGS["cifar10n"].narrowed(epochs=2, seeds=(1,), methods=("credal-bounds",))
    runs = plan([setting], limit=5)
    student = runs[-1]
    options = ("--method", "credal-bounds", "--seeds", 1, "--epochs", 2, "--limit", 5)
    words = ("run", "cifar10n", *options, "--device", "cpu")
    there = {"CREDALEARN_DATA": str(data)}
    process = start(command(*words, "--store", killed.folder), **there)
    wait_until(lambda: read_log(killed.log(student)) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [killed.state(run) for run in runs] == ["done"] * 5 + ["started"]
    process = start(command(*words, "--store", killed.folder), **there)
    _, text = process.communicate(timeout=120)
    assert process.returncode == 0, text
    execute(tiny_context(whole.folder, data), runs)
    assert [epoch for epoch, _ in read_log(killed.log(student))] == [1, 2]
    for run in runs:
        assert whole.record(run).metrics == killed.record(run).metrics
        for name in ("model.safetensors", "predictions.safetensors"):
            one, two = (store.tensors(run, name) for store in (whole, killed))
            assert all(torch.equal(one[key], two[key]) for key in one | two), f"{run.name} {name}"
    records = list(read_records(killed.folder).records)
    assert sum("left_out" in record.config for record in records) == 5
    assert runs_of(records, "cifar10n").keys() == {"credal-bounds"}


@pytest.mark.parametrize("method", ["credal-bounds", "pocc-distilled"])
def test_teachers_are_softmax_runs_of_the_store(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *teachers, student = runs = tiny_plan(method)
    assert student.teachers == tuple(teachers)
    trained: list[Training] = []

    def watched(trainings: list[Training], *, deadline: float | None) -> object:
        trained.extend(trainings)
        return train(trainings, deadline=deadline)

    widening: list[Any] = []

    def widen(*given: Any) -> Model:
        widening.append(given)
        return widened(*given)

    monkeypatch.setattr("credalearn_experiments.runner.train", watched)
    monkeypatch.setattr("credalearn_experiments.runner.widened", widen)
    execute(tiny_context(tmp_path), runs)
    models = [Model(METHODS["softmax"], (each.network,), {}, 0) for each in trained[:5]]
    inputs, labels = trained[5].inputs, Runner(tiny_context(tmp_path)).labels(student)
    probs = torch.stack([model.predict(inputs).probs for model in models], 1)
    assert_close(trained[5].labels.lower, probs.amin(1))
    assert_close(trained[5].labels.upper, probs.amax(1))
    assert_close(trained[5].labels.reference, probs.mean(1))
    folds = Runner(tiny_context(tmp_path))._folds(student, student.seed)
    if method == "credal-bounds":  # each item is left out by one teacher
        knows = [(inputs[:, None] == each.inputs).all(2).any(1) for each in trained[:5]]
        assert (torch.stack(knows).sum(0) == 4).all()
        assert np.array_equal(torch.stack(knows).int().argmin(0), folds)
    else:
        assert student.teachers == replace(student, method="deep-ensemble").bases
        assert student.asked["member_seeds"] == [1, 2, 3, 4, 5]
    [given] = widening
    assert torch.equal(given[1], inputs)
    assert torch.equal(given[2].reference, labels.reference)
    assert torch.equal(given[3], probs)
    assert np.array_equal(given[4], folds)


def test_a_deadline_keeps_the_finished_epochs(tmp_path: Path) -> None:
    [run] = runs = tiny_plan("softmax", epochs=4)
    runner = Runner(tiny_context(tmp_path))
    runner.train(runs, deadline=0.0)
    assert runner.store.state(run) == "started"
    log = runner.store.log(run)
    assert [epoch for epoch, _ in read_log(log)] == [1]
    log.write_text(json.dumps({**json.loads(log.read_text()), "seconds": 1000.0}) + "\n")
    runner.train(runs)
    assert [epoch for epoch, _ in read_log(log)] == [1, 2, 3, 4]
    *_, (_, trained) = read_log(log)
    assert 1000 < trained <= runner.store.record(run).seconds < 2000  # both attempts, once


@pytest.mark.parametrize("damage", ["truncated", "another run's"])
def test_a_useless_checkpoint_is_reported_and_training_starts_again(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [run, other] = tiny_plan("softmax", "pocc")
    runner = Runner(tiny_context(tmp_path))
    for each in (run, other):
        runner.train([each], deadline=0.0)
    path = runner.store.checkpoint(run)
    content = path.read_bytes()[:-100] if damage == "truncated" else None
    path.write_bytes(content or runner.store.checkpoint(other).read_bytes())
    runner.train([run])
    assert [epoch for epoch, _ in read_log(runner.store.log(run))] == [1, 2]
    text = capsys.readouterr().err
    assert str(path) in text
    assert f"{run.name} starts again" in text


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_diverging_run_is_marked_and_the_others_go_on(tmp_path: Path, epochs: int) -> None:
    # After a single step of size 1e30 no loss has shown it: the predictions do.
    base = ALL_SETTINGS["lidc-votes-all-relax"].narrowed(
        methods=("decalibration",), epochs=epochs, seeds=(1,)
    )
    wild = replace(base, name="wild", recipe=replace(base.recipe, learning_rate=1e30))
    runs = [*plan([wild], limit=24), *tiny_plan("edl")]
    store = Store(tmp_path)
    for _ in range(2):
        execute(tiny_context(tmp_path), runs)
        assert [store.state(run) for run in runs] == ["failed", "new", "done"]
        assert "nan" in store.failure(runs[0])


def test_measuring_again_adds_foreign_images_and_keeps_those_that_are_gone(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"  # with the images of the task only
    folder.mkdir()
    (folder / "cifar-100-binary").symlink_to(data / "cifar-100-binary")
    setting = SETTINGS["cifar100-smooth-0.05"].narrowed(
        epochs=1, seeds=(1,), methods=("decalibration",)
    )
    runs = plan([replace(setting, foreign=("svhn", "fashion-mnist"))], limit=4)
    context = tiny_context(tmp_path / "store", folder)
    execute(context, runs)
    assert capsys.readouterr().err.count("no AUROC on svhn: ") == 1
    store = Store(context.store)
    before = {run: store.record(run) for run in runs}
    assert not any(name.startswith("auroc") for name in before[runs[0]].metrics)
    for name in ("svhn", "fashion-mnist"):  # one after the other is there
        (folder / name).symlink_to(data / name)
        assert Runner(context).measure_again(runs) == len(runs)
        (folder / name).unlink()
    for run, old in before.items():
        new = store.record(run)
        added = new.metrics.keys() - old.metrics.keys()
        scores = [name for name in old.metrics if name.startswith("auarc_")]
        kinds = ("auroc", "auroc_training", *(name.replace("auarc", "auroc") for name in scores))
        assert "auroc_top_probability" in kinds
        assert added == {f"{kind}_{name}" for kind in kinds for name in ("svhn", "fashion_mnist")}
        assert {name: new.metrics[name] for name in old.metrics} == pytest.approx(old.metrics)
        assert new.seconds > old.seconds
        for part in ("test", "svhn", "fashion-mnist"):
            read_predictions(store.folder, run.setting.name, run.method, 1, part=part)


def test_pretrained_settings_need_weights(data: Path, tmp_path: Path) -> None:
    runs = plan([SETTINGS["micebone"].narrowed(seeds=(1,), methods=("pocc",))], limit=2)
    with pytest.raises(CredalError, match=r"micebone starts from ImageNet weights .*--weights no"):
        execute(tiny_context(tmp_path / "store", data), runs)
