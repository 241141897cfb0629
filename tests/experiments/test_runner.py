"""Runs: what they are built on, that they are trained as asked, resumed, stopped and marked."""

import json
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from credalearn import CredalError
from credalearn.methods import METHODS, Model, Outputs
from credalearn.train import Training, crop_and_flip, train
from credalearn_experiments.records import read_record
from credalearn_experiments.running.answers import Answers
from credalearn_experiments.running.evaluate import evaluate, rejection_curve
from credalearn_experiments.running.executors import execute
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run, parse_seeds, plan
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import measure
from credalearn_experiments.settings.paper import SETTINGS
from tiny_bench import (
    LIMIT,
    command,
    start,
    tiny_place,
    tiny_plan,
    tiny_setting,
    unpack,
    wait_until,
)
from tiny_data import write_tiny_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=10)
    return folder


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


def names(runs: list[Run]) -> list[str]:
    return [f"{run.method} {run.seed}" for run in runs]


def epochs_logged(store: Store, run: Run) -> list[int]:
    return [line.epoch for line in store._log(run)]


# Plans.


def test_a_plan_trains_first_and_each_network_once() -> None:
    setting = SETTINGS["cifar10h"].narrowed(
        seeds=(1, 2), methods=("edl", "laplace-bridge", "decalibration", "deep-ensemble")
    )
    assert names(plan([setting])) == [
        *("edl 1", "edl 2", *(f"softmax {seed}" for seed in range(1, 7))),
        *("laplace-bridge 1", "laplace-bridge 2", "decalibration 1", "decalibration 2"),
        *("deep-ensemble 1", "deep-ensemble 2"),
    ]


def test_ten_ensembles_need_14_trainings_and_independent_ones_50() -> None:
    setting = SETTINGS["cifar10h"].narrowed(methods=("deep-ensemble", "decalibration"))
    shared = [run for run in plan([setting]) if not run.bases]
    assert names(shared) == [f"softmax {seed}" for seed in range(1, 15)]
    own = [run for run in plan([setting], independent=True) if not run.bases]
    seeds = {run.seed for run in own}
    assert seeds == {100 * s + i for s in range(1, 11) for i in range(5)} | set(range(1, 11))
    assert {run.independent for run in own} == {False}  # a network is the same for whom it is


def test_what_each_method_is_built_on() -> None:
    setting = SETTINGS["cifar10h"]
    built_on = {
        ("decalibration", 3): ["softmax 3"],
        ("laplace-bridge", 10): ["softmax 10"],
        ("deep-ensemble", 9): [f"softmax {seed}" for seed in range(9, 14)],
        ("pocc-ensemble", 8): ["pocc 8", "pocc 9", "pocc 10", "pocc 1", "pocc 2"],
        ("pocc", 1): [],
    }
    for (method, seed), expected in built_on.items():
        run = Run(setting, method, seed, limit=7)
        assert names(list(run.bases)) == expected
        assert {base.limit for base in run.bases} <= {7}
        # However few are asked for.
        narrow = Run(setting.narrowed(seeds=(seed,), methods=(method,)), method, seed)
        assert names(list(narrow.bases)) == expected
    own = Run(setting, "pocc-ensemble", 2, independent=True)
    assert names(list(own.bases)) == [f"pocc {seed}" for seed in range(200, 205)]


def test_a_plan_of_several_settings_keeps_them_apart() -> None:
    settings = [
        SETTINGS[name].narrowed(seeds=(1,), methods=("decalibration",))
        for name in ("cifar10h", "cifar10h-warm")
    ]
    assert [run.name for run in plan(settings)] == [
        f"{name}/{method}/seed-1"
        for name in ("cifar10h", "cifar10h-warm")
        for method in ("softmax", "decalibration")
    ]


@pytest.mark.parametrize("text", ["", ",", "0", "x", "1-", "-3", "3-2", "1.5", "0-2"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(CredalError, match="seeds are a number of them such as 3, or those wanted"):
        parse_seeds(text)


# Built runs.


@pytest.fixture(scope="module")
def built(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[Run]]:
    """Everything that is built on softmax, of two seeds, done in one process."""
    runs = tiny_plan("decalibration", "laplace-bridge", "deep-ensemble", epochs=1, seeds=(1, 2))
    place = tiny_place(tmp_path_factory.mktemp("built"), data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREDALEARN_UNVERIFIED", "1")
        execute(place, runs)
    return place, runs


@pytest.mark.parametrize("method", ["softmax", "decalibration", "laplace-bridge", "deep-ensemble"])
def test_a_run_predicts_what_a_model_of_the_stored_networks_does(
    built: tuple[Place, list[Run]], method: str
) -> None:
    place, runs = built
    run = next(run for run in runs if run.method == method and run.seed == 2)
    bench = place.bench()  # has read and trained nothing
    task = bench._task(run.setting, LIMIT)
    members = []
    for base in run.bases or (run,):
        network = bench._network(base)
        network.load_state_dict(load_file(place.store / base.name / "model.safetensors"))
        members.append(network)
    assert len(members) == METHODS[method].num_members
    model = Model.from_members(
        METHODS[method], members, task.train_inputs, bench.labels(run), random_state=2
    )
    expected = model.predict(task.test_inputs)
    test, y, foreign = unpack(bench.store.tensors(run, "predictions.safetensors"))
    assert torch.equal(y, task.test_y)
    assert foreign == {}
    for field in ("probs", "lower", "upper", "vertices", "concentration"):
        ours, theirs = getattr(test, field), getattr(expected, field)
        assert (ours is None) == (theirs is None)
        assert ours is None or torch.equal(ours, theirs)
    record = read_record(place.store / run.name / "metrics.json")
    metrics = evaluate(method, test, y, {})
    assert record.metrics.keys() == metrics.keys()
    for name, value in metrics.items():
        assert record.metrics[name] == pytest.approx(value, rel=1e-5), name
    curve = rejection_curve(method, test, y)
    assert record.curves["accuracy_rejection"] == pytest.approx(curve, rel=1e-5)
    # Another seed is another network.
    other = bench.store.tensors(replace(run, seed=1), "predictions.safetensors")
    assert not torch.equal(other["test.probs"], test.probs)


def test_ensembles_ask_a_network_that_they_share_once(
    built: tuple[Place, list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, runs = built
    shutil.copytree(place.store, tmp_path / "store")
    bench = replace(place, store=tmp_path / "store").bench()
    outputs, asked = Model.outputs, []

    def count(self: Model, inputs: Tensor) -> Outputs:
        asked.append(len(self.members))
        return outputs(self, inputs)

    monkeypatch.setattr(Model, "outputs", count)
    for run in (run for run in runs if run.method == "deep-ensemble"):
        bench.measure(run)
    assert asked == [1] * 6  # seeds 1 to 5, then 6 alone
    bench._keep_networks(set())
    assert bench._answers == Answers()


def test_networks_on_a_cpu_have_the_layout_that_is_fastest_there(
    built: tuple[Place, list[Run]],
) -> None:
    place, runs = built
    weights = [x for x in place.bench()._network(runs[0]).parameters() if x.ndim == 4]
    assert len(weights) > 20
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in weights)


def test_a_network_is_what_the_plain_loop_trains_from_its_seed(
    built: tuple[Place, list[Run]],
) -> None:
    place, runs = built
    run = next(run for run in runs if run.method == "softmax" and run.seed == 2)
    bench = place.bench()
    network = bench._network(run)
    training = Training(
        network=network,
        inputs=bench._task(run.setting, LIMIT).train_inputs,
        labels=bench.labels(run),
        loss=METHODS["softmax"].loss,
        recipe=replace(run.setting.recipe, random_state=2),
        augment=crop_and_flip,
    )
    train([training])
    stored = bench.store.tensors(run, "model.safetensors")
    assert stored.keys() == network.state_dict().keys()
    assert all(torch.equal(stored[name], x) for name, x in network.state_dict().items())


def test_each_network_was_trained_once(built: tuple[Place, list[Run]]) -> None:
    place, runs = built
    store = Store(place.store)
    trained = [run for run in runs if not run.bases]
    assert names(trained) == [f"softmax {seed}" for seed in range(1, 7)]
    assert all(epochs_logged(store, run) == [1] for run in trained)
    logs = {path.parent.parent.name for path in place.store.rglob("log.jsonl")}
    assert logs == {"softmax"}  # what is built trains nothing


# Killed, stopped and failed.


def test_a_killed_run_goes_on_and_ends_as_one_never_killed(data: Path, tmp_path: Path) -> None:
    runs = tiny_plan("pocc", epochs=6)
    [run] = runs
    whole, killed = tiny_place(tmp_path / "whole", data), tiny_place(tmp_path / "killed", data)
    store = Store(killed.store)
    process = start(command(killed, runs))
    wait_until(lambda: store.epochs_done(run) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = store.epochs_done(run)
    assert 2 <= done < 6
    assert store.state(run) == "started"
    again = start(command(killed, runs))
    _, said = again.communicate()
    assert again.returncode == 0, said
    # The checkpoint may know of one epoch more than the log: it is written first.
    assert any(f"{epochs} of 6 epochs are done in" in said for epochs in (done, done + 1)), said
    logged = epochs_logged(store, run)
    assert logged == sorted(set(logged))  # nothing was trained twice
    assert logged[-1] == 6

    execute(whole, runs)
    for name in ("model.safetensors", "predictions.safetensors"):
        one, two = (load_file(place.store / run.name / name) for place in (whole, killed))
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one), name
    records = [read_record(each.store / run.name / "metrics.json") for each in (whole, killed)]
    assert records[0].metrics == records[1].metrics
    assert records[0].curves == records[1].curves
    assert not (store.path(run) / "resume.safetensors").exists()


def test_time_that_is_up_stops_the_work_and_nothing_is_lost(data: Path, tmp_path: Path) -> None:
    runs = tiny_plan("softmax", "decalibration", epochs=4, seeds=(1, 2))
    first, second, *_ = runs
    place = tiny_place(tmp_path / "store", data)
    store = Store(place.store)
    execute(place, runs, deadline=time.monotonic())
    assert [store.state(run) for run in runs] == ["new"] * 4
    # A deadline within the first epoch: that epoch is finished and kept, no other is begun.
    execute(place, runs, deadline=time.monotonic() + 0.05)
    assert [store.state(run) for run in runs] == ["started", "new", "new", "new"]
    assert epochs_logged(store, first) == [1]
    log = store.path(first) / "log.jsonl"
    line = json.loads(log.read_text())
    log.write_text(f"{json.dumps(line | {'seconds': 1000.0})}\n")  # as if it had taken so long
    execute(place, runs)
    assert [store.state(run) for run in runs] == ["done"] * 4
    assert epochs_logged(store, first) == epochs_logged(store, second) == [1, 2, 3, 4]
    seconds = read_record(store.path(first) / "metrics.json").seconds
    assert 1000 < seconds < 1100  # the time of both pieces


@pytest.mark.parametrize("damage", ["truncated", "a bit flipped", "another run's", "no state"])
def test_a_checkpoint_of_no_use_is_named_and_its_training_starts_anew(
    damage: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [run] = runs = tiny_plan("softmax", epochs=2)
    place = tiny_place(tmp_path / "store", data)
    store = Store(place.store)
    execute(place, runs, deadline=time.monotonic() + 0.05)
    path = store.path(run) / "resume.safetensors"
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[:-1000])
    elif damage == "a bit flipped":
        content[-1000] ^= 1
        path.write_bytes(content)
    elif damage == "another run's":
        [other] = others = tiny_plan("pocc", epochs=2)
        execute(place, others, deadline=time.monotonic() + 0.05)
        path.write_bytes(store.checkpoint(other).read_bytes())
    else:
        save_file({"losses": torch.zeros(1)}, path)
    execute(place, runs)
    assert store.state(run) == "done"
    assert epochs_logged(store, run) == [1, 2]
    said = capsys.readouterr().err
    assert re.search(f"{re.escape(str(path))} (is damaged|belongs to another run|is not a chec)", said)
    assert f"{run.name} starts anew" in said


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_diverging_run_is_marked_and_the_others_go_on(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], epochs: int
) -> None:
    # After a single step of size 1e30 no loss has shown it: the predictions do.
    base = tiny_setting("softmax", "decalibration", epochs=epochs)
    recipe = replace(base.recipe, learning_rate=1e30, warmup_epochs=0)
    wild = replace(base, name="wild", recipe=recipe)
    tame = tiny_setting("edl", epochs=1)
    runs = plan([wild, tame], limit=LIMIT)
    place = tiny_place(tmp_path / "store", data)
    store = Store(place.store)

    def check() -> str:
        states = {run.name: store.state(run) for run in runs}
        assert states == {
            "wild/softmax/seed-1": "failed",
            "wild/decalibration/seed-1": "new",
            "cifar100-smooth-0.05/edl/seed-1": "done",
        }
        reason = (store.path(runs[0]) / "failure.txt").read_text().strip()
        said = capsys.readouterr().err
        assert said.count(f"wild/softmax/seed-1 failed: {reason}") <= 1
        return reason if reason in said else ""

    execute(place, runs)
    reason = check()
    assert ("the loss became" in reason) == (epochs > 1)
    assert "nan" in reason
    execute(place, runs)
    assert check() == ""  # not tried again unasked
    execute(place, runs, retry_failed=True)
    assert check() == reason


def test_a_built_run_that_cannot_be_measured_is_marked_too(
    built: tuple[Place, list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, runs = built
    run = next(run for run in runs if run.method == "decalibration")
    bench = Bench(Store(tmp_path), place.bench().data, torch.device("cpu"), verbose=False)
    network = place.bench()._network(run.bases[0])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(torch.nan)
    monkeypatch.setitem(bench._networks, run.bases[0], network)
    bench.build(run)
    assert bench.store.state(run) == "failed"


def test_pretrained_settings_ask_for_their_weights(data: Path, tmp_path: Path) -> None:
    runs = plan([SETTINGS["micebone"].narrowed(seeds=(1,), methods=("pocc",))], limit=LIMIT)
    with pytest.raises(CredalError, match=r"micebone starts from weights .*--weights none"):
        execute(tiny_place(tmp_path / "store", data), runs)


def test_a_foreign_set_that_is_missing_is_named_and_left_out(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("cifar-100-python", "svhn"):
        (tmp_path / "data" / name).symlink_to(data / name)
    setting = replace(tiny_setting("softmax", epochs=1), foreign=("svhn", "fashion-mnist"))
    [run] = plan([setting], limit=LIMIT)
    place = tiny_place(tmp_path / "store", tmp_path / "data")
    execute(place, [run])
    store = Store(place.store)
    metrics = read_record(store.path(run) / "metrics.json").metrics
    named = {name for name in metrics if name.startswith("auroc")}
    assert named == {"auroc_svhn", "auroc_training_svhn"}
    assert capsys.readouterr().err.count("no AUROC on fashion-mnist: ") == 1
    test, y, foreign = unpack(store.tensors(run, "predictions.safetensors"))
    assert list(foreign) == ["svhn"]
    expected = evaluate("softmax", test, y, foreign)["auroc_svhn"]
    assert metrics["auroc_svhn"] == pytest.approx(expected)


def test_finished_runs_are_measured_on_foreign_images_that_come_later(
    data: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cifar-100-python").symlink_to(data / "cifar-100-python")
    setting = tiny_setting("mc-dropout", "decalibration", epochs=1)
    runs = plan([replace(setting, foreign=("svhn",))], limit=LIMIT)
    place = tiny_place(tmp_path / "store", tmp_path / "data")
    execute(place, runs)
    store = Store(place.store)
    before = {run: store.record(run) for run in runs}
    assert not any("auroc_svhn" in record.metrics for record in before.values())
    (tmp_path / "data" / "svhn").symlink_to(data / "svhn")
    log = [epochs_logged(store, run) for run in runs]
    started = Run(replace(setting, foreign=("svhn",)), "edl", 1, limit=LIMIT)
    assert measure(place.bench(), [*runs, started]) == len(runs)
    assert [epochs_logged(store, run) for run in runs] == log  # nothing was trained
    assert store.state(started) == "new"
    for run, old in before.items():
        assert store.damage(run, thorough=True) is None
        new = store.record(run)
        assert new.metrics.keys() - old.metrics.keys() == {"auroc_svhn", "auroc_training_svhn"}
        assert {name: new.metrics[name] for name in old.metrics} == pytest.approx(old.metrics)
        assert new.seconds > old.seconds


def with_svhn(data: Path, folder: Path) -> tuple[Path, list[Run]]:
    """A folder of data where SVHN can be taken away, and runs that are measured on it."""
    folder.mkdir()
    for name in ("cifar-100-python", "svhn"):
        (folder / name).symlink_to(data / name)
    setting = tiny_setting("decalibration", epochs=1)
    return folder, plan([replace(setting, foreign=("svhn",))], limit=LIMIT)


def test_a_measuring_that_is_killed_costs_no_training(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, runs = with_svhn(data, tmp_path / "data")
    (folder / "svhn").unlink()
    place = tiny_place(tmp_path / "store", folder)
    execute(place, runs)
    store = Store(place.store)
    (folder / "svhn").symlink_to(data / "svhn")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for run in runs:  # between the predictions and the record
        with monkeypatch.context() as patch:
            patch.setattr("credalearn_experiments.running.store.write_record", killed)
            with pytest.raises(KeyboardInterrupt):
                measure(place.bench(), [run])
    assert [store.state(run) for run in runs] == ["unmeasured", "unmeasured"]
    model = store.path(runs[0]) / "model.safetensors"
    before = [(epochs_logged(store, run), model.stat().st_mtime_ns) for run in runs]
    capsys.readouterr()
    execute(place, runs)
    said = capsys.readouterr().err
    assert [(epochs_logged(store, run), model.stat().st_mtime_ns) for run in runs] == before
    for run in runs:
        path = re.escape(str(store.path(run) / "predictions.safetensors"))
        assert re.search(rf"{path} has .* instead of .*: {run.name} is measured again\n", said)
        assert store.look(run, thorough=True) == ("done", None)
        assert "auroc_svhn" in store.record(run).metrics
    # Without `bench run`, another `bench measure` does as well.
    store.forget_predictions(runs[0])
    assert measure(place.bench(), runs) == 2
    assert store.look(runs[0], thorough=True) == ("done", None)


def test_what_was_found_on_foreign_images_that_are_gone_is_kept(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, runs = with_svhn(data, tmp_path / "data")
    place = tiny_place(tmp_path / "store", folder)
    execute(place, runs)
    store = Store(place.store)
    before = {run: store.record(run).metrics for run in runs}
    (folder / "svhn").unlink()
    capsys.readouterr()
    for _ in range(2):
        assert measure(place.bench(), runs) == 2
        said = capsys.readouterr().err
        for run, metrics in before.items():
            assert store.record(run).metrics == pytest.approx(metrics)
            kept = store.tensors(run, "predictions.safetensors")
            assert list(unpack(kept)[2]) == ["svhn"]
            told = "auroc_svhn, auroc_training_svhn: these images are not at hand now\n"
            assert said.count(f"{run.name} keeps {told}") == 1
    store.forget_predictions(runs[0])
    execute(place, runs)  # the predictions are gone, the figures are not
    assert store.record(runs[0]).metrics == pytest.approx(before[runs[0]])
    assert not unpack(store.tensors(runs[0], "predictions.safetensors"))[2]


def test_measuring_names_what_is_damaged_and_goes_on(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tiny_plan("softmax", "decalibration", epochs=1, seeds=(1, 2))
    place = tiny_place(tmp_path / "store", data)
    execute(place, runs)
    store = Store(place.store)
    model = store.path(runs[0]) / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    capsys.readouterr()
    assert measure(place.bench(), runs) == 2  # those of the other seed
    said = capsys.readouterr().err
    left_out = "is left out; `credalearn-experiments run` does it again"
    assert re.search(rf"model.safetensors has .* bytes .*: {runs[0].name} {left_out}\n", said)
    built = f"it is built on {runs[0].name}, not done: {runs[2].name} {left_out}\n"
    assert built in said
