"""Processes that share a store: nothing is done twice, and what was killed is resumed."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn_experiments.executor import execute, under_torchrun
from credalearn_experiments.runner import Runner
from credalearn_experiments.runs import Run
from credalearn_experiments.store import Store, read_log
from ray_cluster import QUIET, ray_cluster
from tiny_runs import holders, run_command, start, tiny_context, tiny_plan, wait_until
from torchrun import torchrun


def epochs_logged(store: Store, run: Run) -> list[int]:
    return [epoch for epoch, _ in read_log(store.log(run))]


def check_done(store: Store, runs: list[Run], *, killed: Run | None = None) -> None:
    """All runs are done, and no epoch was trained twice."""
    assert [store.state(run) for run in runs] == ["done"] * len(runs)
    for run in runs:
        logged = epochs_logged(store, run)
        assert logged == sorted(set(logged))
        if run != killed:  # a kill may fall between the checkpoint and the log
            assert len(logged) == (0 if run.bases else run.setting.recipe.epochs)
        assert not store.checkpoint(run).exists()


def test_finished_runs_are_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, context = tiny_plan("softmax", "decalibration"), tiny_context(tmp_path)
    execute(context, runs)
    check_done(Store(tmp_path), runs)

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(Runner, "train", never)
    monkeypatch.setattr(Runner, "build", never)
    execute(context, runs)


def test_two_commands_share_the_work(tmp_path: Path) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", epochs=60, seeds=(1, 2))
    words = ("--method", "softmax", "--method", "edl", "--method", "decalibration", "--seeds", "2")
    processes = [start(run_command(tmp_path, *words, epochs=60)) for _ in range(2)]
    texts = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], texts
    assert all(out.startswith("6 of 6 runs are done") for out, _ in texts)
    check_done(Store(tmp_path), runs)
    firsts = re.findall(r"^(\S+): epoch 1/60", "\n".join(text for _, text in texts), re.MULTILINE)
    assert sorted(firsts) == sorted(run.name for run in runs if not run.bases)


def kill_holder(store: Store, run: Run) -> None:
    """Kill the process that trains the run, after its first epochs."""
    wait_until(lambda: len(read_log(store.log(run))) >= 2)
    [pid] = holders(store.path(run) / ".lock")
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_is_replaced_and_its_run_resumed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", epochs=150)
    store = Store(tmp_path)
    thread = threading.Thread(target=kill_holder, args=(store, runs[0]))
    thread.start()
    execute(tiny_context(tmp_path), runs, workers=2)
    thread.join()
    for run in runs[:2]:  # joblib ends the other worker too
        logged = epochs_logged(store, run)
        assert logged == sorted(set(logged))
    assert [store.state(run) for run in runs] == ["done"] * 3
    text = capfd.readouterr().err
    assert "a worker process died (TerminatedWorkerError); it is replaced" in text
    assert "of 150 epochs are done in" in text


def test_workers_end_with_the_command(tmp_path: Path) -> None:
    runs = tiny_plan("softmax", "edl", epochs=100_000)
    words = ("--method", "softmax", "--method", "edl", "--seeds", "1", "--workers", "2")
    locks = [Store(tmp_path).path(run) / ".lock" for run in runs]
    process = start(run_command(tmp_path, *words, epochs=100_000))
    try:
        wait_until(lambda: all(map(holders, locks)) or process.poll() is not None)
        process.kill()
        process.communicate(timeout=30)  # the pipes close when the workers have ended
        assert not any(map(holders, locks))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_worker_errors_are_raised_in_the_caller(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    runs = tiny_plan("softmax", name="cifar10h-features", seeds=(1, 2))
    with pytest.raises(CredalError, match=r"CIFAR-10H is missing: no cifar10h/cifar10h-counts"):
        execute(tiny_context(tmp_path / "store", tmp_path / "empty"), runs, workers=2)


@pytest.fixture
def ray_address() -> Iterator[str]:
    with ray_cluster() as address:
        yield address


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_a_running_ray_cluster_is_joined_and_replaces_a_killed_worker(
    tmp_path: Path, ray_address: str
) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", epochs=150)
    words = ("--method", "softmax", "--method", "edl", "--method", "decalibration", "--seeds", "1")
    process = start(run_command(tmp_path, *words, "--ray", ray_address, epochs=150), **QUIET)
    store = Store(tmp_path)
    try:
        kill_holder(store, runs[0])
        out, text = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, text
    assert "3 of 3 runs are done" in out
    assert "a worker process died" in text
    check_done(store, runs[2:])
    assert {store.state(run) for run in runs} == {"done"}


def test_torchrun_trains_each_model_with_all_processes(tmp_path: Path) -> None:
    words = run_command(tmp_path, "--method", "decalibration", "--seeds", "1")
    done = torchrun(*words[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 2 runs are done") == 1
    runs = tiny_plan("decalibration")
    check_done(Store(tmp_path), runs)
    assert Store(tmp_path).record(runs[0]).versions["device"] == "2 × cpu"
    wrong = torchrun(*words[1:], "--method", "nonsense")
    assert wrong.returncode != 0
    assert wrong.stderr.count("credalearn-experiments: ") == 1


def test_names_the_missing_part_of_torchruns_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for size, message in (("x", "WORLD_SIZE is 'x'"), ("2", "not set: RANK, LOCAL_RANK")):
        monkeypatch.setenv("WORLD_SIZE", size)
        with pytest.raises(CredalError, match=message):
            under_torchrun()
    for name in names:
        monkeypatch.setenv(name, "0")
    assert under_torchrun()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not under_torchrun()
