"""The store of runs and what it says of them; nothing is trained here."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from credalearn import CredalError
from credalearn_experiments.records import read_record, write_record
from credalearn_experiments.running.log import EpochLog
from credalearn_experiments.running.runs import Run, plan
from credalearn_experiments.running.status import status_lines
from credalearn_experiments.running.store import Store, versions
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.stored import stored_runs
from team_files import full_disk
from tiny_bench import environment, holders, tiny_plan, tiny_setting, wait_until

RUN = Run(tiny_setting("softmax"), "softmax", 1, limit=4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def finish(store: Store, run: Run, *, seconds: float = 2.0) -> Path:
    """Keep a run as if it had been trained; its folder."""
    store.start(run)
    store.finish(
        run,
        metrics={"accuracy": 0.5},
        curves={"accuracy_rejection": (0.5,) * 101},
        predictions={"test.probs": torch.rand(4, 100), "y": torch.arange(4)},
        weights={} if run.bases else {"layer.weight": torch.rand(8, 8)},
        seconds=seconds,
        device="cpu",
    )
    return store.path(run)


def test_a_run_goes_from_new_to_done_and_its_files_say_so(store: Store) -> None:
    folder = store.path(RUN)
    assert store.state(RUN) == "new"
    assert not store.folder.exists()  # looking makes nothing
    store.start(RUN)
    assert store.state(RUN) == "started"
    config = json.loads((folder / "config.json").read_text())
    assert config["asked"] == json.loads(json.dumps(RUN.asked))
    assert {"credalearn", "torch", "python"} <= config["versions"].keys()
    assert config["versions"] == versions()
    (folder / "resume.safetensors").write_bytes(b"state")
    finish(store, RUN)
    assert store.state(RUN) == "done"
    assert {each.name for each in folder.iterdir()} == {
        *("config.json", "metrics.json", "predictions.safetensors", "model.safetensors"),
    }
    record = read_record(folder / "metrics.json")
    assert (record.setting, record.method, record.seed, record.seconds) == (
        *("cifar100-smooth-0.05", "softmax", 1, 2.0),
    )
    assert record.config["epochs"] == 2
    assert record.versions["device"] == "cpu"
    assert store.tensors(RUN, "predictions.safetensors")["y"].tolist() == [0, 1, 2, 3]


def test_a_full_disk_is_no_error_of_a_run(store: Store, tmp_path: Path) -> None:
    folder = finish(store, RUN)
    record = read_record(folder / "metrics.json")
    writes: list[Callable[[], object]] = [
        lambda: store.start(RUN),
        lambda: finish(store, RUN),
        lambda: store.fail(RUN, "x" * 100),
        lambda: write_record(tmp_path / "metrics.json", record),
    ]
    for write, most in zip(writes, (50, 1_500, 50, 50), strict=True):
        # A CredalError would be kept as the reason why the run failed for good.
        with full_disk(most), pytest.raises(OSError, match=r"File too large") as found:
            write()
        assert not isinstance(found.value, CredalError)


def test_what_is_built_on_others_keeps_no_weights_and_names_its_members(store: Store) -> None:
    folder = finish(store, Run(tiny_setting("deep-ensemble"), "deep-ensemble", 2, limit=4))
    assert not (folder / "model.safetensors").exists()
    config = read_record(folder / "metrics.json").config
    assert (config["members"], config["member_seeds"]) == ("shared", [2, 3, 4, 5, 6])


def test_what_is_built_on_networks_that_are_others_now_is_outdated(store: Store) -> None:
    base, built = tiny_plan("softmax", "decalibration")
    finish(store, base)
    content = (finish(store, built) / "metrics.json").read_text()
    known = read_record(store.path(base) / "metrics.json").config["files"]["model.safetensors"]
    assert json.loads(content)["config"]["built_on"] == {base.name: known["sha256"]}
    assert store.state(built) == "done"
    shutil.rmtree(store.path(base))
    assert store.look(built) == ("done", None)  # the same network may come back
    finish(store, base)  # with other weights
    why = f"{base.name} has been trained again, to another network"
    assert store.look(built) == ("outdated", why)
    assert status_lines(store.folder, [base, built]) == [
        f"{base.setting.name}: 1 of 2 runs done, 1 to be built again",
        f"  {built.name}: {why}; will be built again",
    ]


@pytest.mark.parametrize("known", [None, {}, "nothing"])
def test_records_that_do_not_say_what_they_are_built_on_stay_as_they_are(
    store: Store, known: object
) -> None:
    base, built = tiny_plan("softmax", "decalibration")
    finish(store, base)
    path = finish(store, built) / "metrics.json"
    content = json.loads(path.read_text())
    content["config"]["built_on"] = known
    if known is None:  # as versions before this wrote it
        del content["config"]["built_on"]
    path.write_text(json.dumps(content))
    finish(store, base)
    assert store.look(built) == ("done", None)


def damage_file(path: Path, how: str) -> None:
    content = path.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    path.write_bytes({"truncated": content[:-10], "empty": b"", "flipped": flipped}[how])


@pytest.mark.parametrize(
    ("name", "how", "said", "seen_by_state"),
    [
        ("model.safetensors", "truncated", "bytes instead of", True),
        ("predictions.safetensors", "flipped", "is not what was written", False),
        ("metrics.json", "empty", "metrics.json is damaged (this is no JSON", True),
        ("metrics.json", "truncated", "metrics.json is damaged (this is no JSON", True),
        ("config.json", "truncated", "config.json is missing or damaged", True),
        ("config.json", "empty", "config.json is missing or damaged", True),
    ],
)
def test_a_damaged_file_is_named(
    store: Store, name: str, how: str, said: str, seen_by_state: bool
) -> None:
    folder = finish(store, RUN)
    assert store.damage(RUN, thorough=True) is None
    damage_file(folder / name, how)
    assert store.state(RUN) == ("damaged" if seen_by_state else "done")
    found = store.damage(RUN, thorough=True)
    assert found is not None
    assert found.startswith(str(folder / name))
    assert said in found


@pytest.mark.parametrize("name", ["config.json", "predictions.safetensors", "model.safetensors"])
def test_a_missing_file_is_damage_and_starting_again_removes_the_rest(
    store: Store, name: str
) -> None:
    folder = finish(store, RUN)
    (folder / name).unlink()
    weights_are_whole = name == "predictions.safetensors"
    assert store.state(RUN) == ("unmeasured" if weights_are_whole else "damaged")
    assert name in str(store.damage(RUN))
    store.start(RUN)
    assert store.state(RUN) == "started"  # not done, while it is done again
    assert {each.name for each in folder.iterdir()} == {"config.json"}


@pytest.mark.parametrize("content", ["[]", '{"asked": 3}', "{}", '{"asked": {', "\x00"])
def test_any_broken_config_is_damage_and_no_crash(store: Store, content: str) -> None:
    folder = finish(store, RUN)
    (folder / "config.json").write_text(content)
    assert store.state(RUN) == "damaged"


def test_another_runs_record_or_one_without_files_is_damage(store: Store) -> None:
    other = replace(RUN, seed=2)
    finish(store, RUN)
    shutil.copyfile(finish(store, other) / "metrics.json", store.path(RUN) / "metrics.json")
    assert store.state(RUN) == "damaged"
    assert "metrics.json is not what this run wrote" in str(store.damage(RUN))
    path = finish(store, RUN) / "metrics.json"
    content = json.loads(path.read_text())
    del content["config"]["files"]  # as `bench records` writes it
    path.write_text(json.dumps(content))
    assert store.state(RUN) == "damaged"


@pytest.mark.parametrize(
    "files",
    [
        *(None, [], "files", {"model.safetensors": {}, "predictions.safetensors": {}}),
        {"model.safetensors": "a", "predictions.safetensors": "b"},
        {"model.safetensors": {"bytes": 1}, "predictions.safetensors": {"bytes": "1"}},
    ],
)
def test_a_record_with_any_other_word_on_files_is_damage_and_no_crash(
    store: Store, files: object
) -> None:
    path = finish(store, RUN) / "metrics.json"
    content = json.loads(path.read_text())
    content["config"]["files"] = files
    path.write_text(json.dumps(content))
    told = f"{path} is not what this run wrote"
    assert store.look(RUN, thorough=True) == ("damaged", told)
    assert status_lines(store.folder, [RUN])[1] == f"  {RUN.name}: {told}"


def test_predictions_are_unmeasured_where_the_weights_are_whole(store: Store) -> None:
    folder = finish(store, RUN)
    damage_file(folder / "predictions.safetensors", "flipped")
    assert store.look(RUN)[0] == "done"  # a quick look sees sizes alone
    assert store.look(RUN, thorough=True)[0] == "unmeasured"
    store.forget_predictions(RUN)
    assert store.state(RUN) == "unmeasured"
    head, line = status_lines(store.folder, [RUN])
    assert head.endswith(": 0 of 1 runs done, 1 to be measured again")  # and no time left
    assert line.endswith("predictions.safetensors is missing; will be measured again")
    damage_file(folder / "model.safetensors", "flipped")
    assert store.look(RUN, thorough=True)[0] == "damaged"


def test_weights_that_are_kept_stay_as_they_are(store: Store) -> None:
    folder = finish(store, RUN)
    model, before = (folder / "model.safetensors").stat(), store.record(RUN).config["files"]
    store.finish(
        RUN,
        metrics={"accuracy": 0.6},
        curves={},
        predictions={"y": torch.arange(5)},
        weights=None,
        seconds=3.0,
        device="cpu",
    )
    assert store.look(RUN, thorough=True) == ("done", None)
    assert (folder / "model.safetensors").stat().st_mtime_ns == model.st_mtime_ns
    after = store.record(RUN).config["files"]
    assert after["model.safetensors"] == before["model.safetensors"]
    assert after["predictions.safetensors"] != before["predictions.safetensors"]


def test_another_configuration_is_refused_with_what_differs(store: Store) -> None:
    finish(store, RUN)
    recipe = replace(RUN.setting.recipe, learning_rate=0.2)
    others = {
        r"recipe.learning_rate \(0.1 there, 0.2 here\)\. To fix: give the same options": replace(
            RUN, setting=replace(RUN.setting, recipe=recipe)
        ),
        r"limit \(4 there, None here\)": replace(RUN, limit=None),
        r"epochs \(2 there, 3 here\)": replace(RUN, setting=RUN.setting.narrowed(epochs=3)),
    }
    for message, other in others.items():
        with pytest.raises(CredalError, match=f"holds this run with another config.*{message}"):
            store.state(other)
        with pytest.raises(CredalError, match=message):
            store.start(other)
    assert store.state(RUN) == "done"


def test_members_of_its_own_are_another_configuration_of_an_ensemble_alone(store: Store) -> None:
    shared, own = (
        tiny_plan("decalibration", "deep-ensemble", independent=each) for each in (False, True)
    )
    for run in shared:
        finish(store, run)
    ensemble = next(run for run in own if run.method == "deep-ensemble")
    with pytest.raises(CredalError, match=r"member_seeds .*, members \(shared there, independent"):
        store.state(ensemble)
    alone = next(run for run in own if run.method == "decalibration")
    assert store.state(alone) == "done"


def test_narrowing_methods_and_seeds_is_the_same_run(store: Store) -> None:
    finish(store, RUN)
    wide = replace(RUN, setting=tiny_setting("softmax", "pocc", seeds=(1, 2, 3)))
    assert store.state(wide) == "done"


def test_a_failed_run_keeps_its_reason_until_it_is_started_again(store: Store) -> None:
    store.start(RUN)
    (store.path(RUN) / "resume.safetensors").write_bytes(b"the state before it failed")
    EpochLog(store.path(RUN) / "log.jsonl").epoch(1, of=2, loss=0.5, items=4)
    store.fail(RUN, "the loss became nan")
    assert store.state(RUN) == "failed"
    assert (store.path(RUN) / "failure.txt").read_text() == "the loss became nan\n"
    assert store.failure(RUN) == "the loss became nan"
    (store.path(RUN) / "failure.txt").write_bytes(b"the loss \xff became nan\n")
    assert store.failure(RUN) == "the loss \ufffd became nan"
    assert status_lines(store.folder, [RUN])[1].endswith("failed: the loss \ufffd became nan")
    store.start(RUN)
    assert store.state(RUN) == "started"
    assert [each.name for each in store.path(RUN).iterdir()] == ["config.json"]


def test_a_run_of_which_nothing_is_kept_is_new_with_another_configuration(store: Store) -> None:
    other = replace(RUN, limit=5)
    store.start(RUN)
    assert store.state(other) == "new"
    keep_epochs(store, RUN, 1)
    with pytest.raises(CredalError, match=r"another configuration: limit \(4 there, 5 here\)"):
        store.state(other)
    store.fail(RUN, "the loss became nan")
    assert store.state(other) == "new"
    store.start(other)
    assert [each.name for each in store.path(RUN).iterdir()] == ["config.json"]
    assert store.state(other) == "started"


def test_starting_a_begun_run_keeps_its_state_and_log(store: Store) -> None:
    store.start(RUN)
    state = store.path(RUN) / "resume.safetensors"
    save_file({"losses": torch.zeros(1)}, state, metadata={"run": "{}"})
    EpochLog(store.path(RUN) / "log.jsonl").epoch(1, of=2, loss=0.5, items=4)
    store.start(RUN)
    assert store.checkpoint(RUN) == state
    assert state.exists()
    assert store.epochs_done(RUN) == 1


def test_a_restarted_run_has_no_state_and_no_log(store: Store) -> None:
    store.start(RUN)
    store.checkpoint(RUN).write_bytes(b"state")
    EpochLog(store.path(RUN) / "log.jsonl").epoch(1, of=2, loss=0.5, items=4)
    store.restart(RUN)
    store.restart(RUN)  # another process may have been first
    assert not store.checkpoint(RUN).exists()
    assert store.epochs_done(RUN) == 0


def test_reading_a_damaged_file_says_what_to_do(store: Store) -> None:
    folder = finish(store, RUN)
    damage_file(folder / "model.safetensors", "truncated")
    with pytest.raises(CredalError, match=r"model.safetensors is damaged \(.*delete .*seed-1"):
        store.tensors(RUN, "model.safetensors")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CredalError, match=r"no file .*model.safetensors. To fix: delete .*seed-1"):
        store.tensors(RUN, "model.safetensors")


def test_a_claim_is_exclusive_and_ends_with_its_process(store: Store) -> None:
    words = f"""
import time
from pathlib import Path
from test_bench_store import RUN, Store
lock = Store(Path({str(store.folder)!r})).claim(RUN)
time.sleep(60)
"""
    path = f"{Path(__file__).parent}"
    process = subprocess.Popen([sys.executable, "-c", words], env=environment(PYTHONPATH=path))
    try:
        lock_file = store.path(RUN) / ".lock"
        wait_until(lambda: lock_file.exists() and holders(lock_file))
        wait_until(lambda: store.claim(RUN) is None)
        assert store.claim(replace(RUN, seed=2)) is not None  # another run is free
        process.send_signal(signal.SIGKILL)
        process.wait()
        claim = store.claim(RUN)
        assert claim is not None
        assert store.claim(RUN) is None  # within one process too
        claim.release()
    finally:
        process.kill()
        process.wait()


def test_the_log_survives_half_a_line_and_counts_the_time_of_every_process(store: Store) -> None:
    path = store.path(RUN) / "log.jsonl"
    store.start(RUN)
    assert (store.epochs_done(RUN), store.seconds_spent(RUN)) == (0, 0.0)
    lines = [{"epoch": 1, "seconds": 3.0}, {"epoch": 2, "seconds": 5.0}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"epoch": 3, "of')
    assert (store.epochs_done(RUN), store.seconds_spent(RUN)) == (2, 5.0)
    log = EpochLog(path, share=0.5)
    log.started -= 8.0  # half of 8 s is this model's
    log.epoch(3, of=4, loss=0.5, items=4)
    assert store.epochs_done(RUN) == 3
    assert store.seconds_spent(RUN) == pytest.approx(5.0 + 4.0, abs=0.1)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe{}",
        b'{"epoch": 1e999, "seconds": 1}',
        b'{"epoch": 9, "seconds": 1e999}',
        b'{"epoch": 9, "seconds": NaN}',
        b'{"epoch": null, "seconds": 1}',
        b'{"epoch": 9}',
        b"[]",
        b"3",
    ],
)
def test_a_broken_line_of_the_log_is_left_out(store: Store, line: bytes) -> None:
    store.start(RUN)
    good = b'{"epoch": %d, "seconds": %d}\n'
    (store.path(RUN) / "log.jsonl").write_bytes(good % (1, 3) + line + b"\n" + good % (2, 5))
    assert (store.epochs_done(RUN), store.seconds_spent(RUN)) == (2, 5.0)


def test_the_time_of_a_process_whose_first_epoch_is_slower_counts_too(store: Store) -> None:
    path = store.path(RUN) / "log.jsonl"
    store.start(RUN)
    for seconds in (3.0, 10.0):
        log = EpochLog(path)
        log.started -= seconds
        log.epoch(1, of=4, loss=0.5, items=4)
    assert store.seconds_spent(RUN) == pytest.approx(13.0, abs=0.1)
    removed = EpochLog(path)
    removed.started -= 2.0
    store.restart(RUN)
    removed.epoch(1, of=4, loss=0.5, items=4)
    assert store.seconds_spent(RUN) == pytest.approx(2.0, abs=0.1)


def keep_epochs(store: Store, run: Run, epochs: int) -> None:
    """A checkpoint as training leaves it, as far as the store reads it."""
    save_file({"losses": torch.zeros(epochs)}, store.checkpoint(run))


def test_status_says_what_is_kept_and_not_what_is_logged(store: Store) -> None:
    [run] = tiny_plan("softmax", epochs=10)
    store.start(run)
    lines = [{"epoch": epoch, "seconds": 60.0 * epoch} for epoch in range(1, 8)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (store.path(run) / "log.jsonl").write_text(text)
    stopped = f"  {run.name}: epoch 7/10, stopped; "
    # Before any training is done, the log says how long an epoch takes.
    assert status_lines(store.folder, [run]) == [
        "cifar100-smooth-0.05: 0 of 1 runs done, 1 begun; about 10 min left",
        f"{stopped}will be begun again",
    ]
    keep_epochs(store, run, 5)
    assert status_lines(store.folder, [run]) == [
        "cifar100-smooth-0.05: 0 of 1 runs done, 1 begun; about 5 min left",
        f"{stopped}will go on from its checkpoint, after epoch 5",
    ]
    claim = store.claim(run)
    assert claim is not None
    assert status_lines(store.folder, [run]) == [
        "cifar100-smooth-0.05: 0 of 1 runs done, 1 begun; about 3 min left",
        f"  {run.name}: epoch 7/10, going",
    ]
    claim.release()
    store.checkpoint(run).write_bytes(b"damaged")
    assert status_lines(store.folder, [run])[1] == f"{stopped}will be begun again"


def test_what_is_not_given_is_as_the_store_has_it(store: Store) -> None:
    runs = tiny_plan("softmax", "deep-ensemble", epochs=3, independent=True)
    setting = ALL_SETTINGS[RUN.setting.name].narrowed(
        seeds=(1,), methods=("softmax", "deep-ensemble")
    )
    assert stored_runs(store.folder, setting) == plan([setting])
    for run in runs:
        finish(store, run)
    assert [run.name for run in stored_runs(store.folder, setting)] == [run.name for run in runs]
    asked = [run.asked for run in stored_runs(store.folder, setting)]
    assert asked == [run.asked for run in runs]
    other = stored_runs(store.folder, setting, epochs=5, limit=9)
    assert {(run.setting.recipe.epochs, run.limit) for run in other} == {(5, 9)}
    (store.path(runs[0]) / "config.json").write_text('{"asked": {"epochs": "3"}}')
    (store.path(runs[1]) / "config.json").write_text("{")
    assert stored_runs(store.folder, setting)[-1].asked == asked[-1]


def test_status_counts_every_state_and_estimates_what_is_left(store: Store) -> None:
    runs = tiny_plan("softmax", "decalibration", epochs=4, seeds=(1, 2, 3, 4, 5, 6))
    softmax = [run for run in runs if not run.bases]
    finish(store, softmax[0], seconds=100.0)
    finish(store, softmax[1], seconds=300.0)
    finish(store, next(run for run in runs if run.bases), seconds=1.0)  # no training: not counted
    store.start(softmax[2])
    EpochLog(store.path(softmax[2]) / "log.jsonl").epoch(1, of=4, loss=0.5, items=4)
    keep_epochs(store, softmax[2], 1)
    store.start(softmax[3])
    store.fail(softmax[3], "the loss became nan")
    damage_file(finish(store, softmax[4]) / "model.safetensors", "truncated")
    name, kept = "cifar100-smooth-0.05", "will go on from its checkpoint, after epoch 1"
    head, *lines = status_lines(store.folder, runs)
    # Of 3 epochs of one, 4 of the damaged and 4 of the last: 11 epochs of 50 s, and no more of the
    # one that failed.
    assert head == (
        f"{name}: 3 of 12 runs done, 1 begun, 1 failed, 1 damaged, 6 not begun; about 9 min left"
    )
    assert lines[:2] == [
        f"  {name}/softmax/seed-3: epoch 1/4, stopped; {kept}",
        f"  {name}/softmax/seed-4: failed: the loss became nan",
    ]
    assert lines[2].startswith(f"  {name}/softmax/seed-5: {store.path(softmax[4])}")
    assert "bytes instead of" in lines[2]
    claim = store.claim(softmax[2])
    assert claim is not None
    assert "epoch 1/4, going" in status_lines(store.folder, runs)[1]
    claim.release()


@pytest.mark.parametrize(
    ("seconds", "words"), [(80.0, "80 s"), (600.0, "10 min"), (7200.0, "2.0 h")]
)
def test_time_left_in_words(store: Store, seconds: float, words: str) -> None:
    done, left = tiny_plan("softmax", seeds=(1, 2))
    finish(store, done, seconds=seconds)
    assert status_lines(store.folder, [done, left]) == [
        f"cifar100-smooth-0.05: 1 of 2 runs done, 1 not begun; about {words} left"
    ]
    finish(store, left)
    assert status_lines(store.folder, [done, left]) == ["cifar100-smooth-0.05: 2 of 2 runs done"]


def test_status_names_a_broken_config(store: Store) -> None:
    store.start(RUN)
    (store.path(RUN) / "config.json").write_text("{")
    _, line = status_lines(store.folder, [RUN])
    assert line.endswith("config.json is missing or damaged")
