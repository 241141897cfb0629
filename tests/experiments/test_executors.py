"""Who does the runs: this process, several at once, several started by one; nothing twice."""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from credalearn import CredalError
from credalearn.nets import Network
from credalearn_experiments.records import read_record
from credalearn_experiments.running.executors import execute
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.processes import in_processes
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import claim, work
from team_files import full_disk
from tiny_bench import command, holders, start, tiny_place, tiny_plan, wait_until
from tiny_data import write_tiny_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=10)
    return folder


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


@pytest.fixture(scope="module")
def done(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[Run]]:
    """A network and what is built on it, done."""
    runs = tiny_plan("softmax", "decalibration", epochs=1)
    place = tiny_place(tmp_path_factory.mktemp("done"), data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREDALEARN_UNVERIFIED", "1")
        execute(place, runs)
    return place, runs


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def epochs_logged(store: Store, run: Run) -> list[int]:
    return [line.epoch for line in store._log(run)]


def check_all_done_once(store: Store, runs: list[Run], *, killed: Run | None = None) -> None:
    assert [store.state(run) for run in runs] == ["done"] * len(runs)
    for run in runs:
        expected = [] if run.bases else list(range(1, run.setting.recipe.epochs + 1))
        logged = epochs_logged(store, run)
        if run == killed:  # the log may lack an epoch that its checkpoint had, but none comes twice
            assert logged == sorted(set(logged))
            assert logged[-1] == expected[-1]
        else:
            assert logged == expected
        assert store.damage(run, thorough=True) is None
        assert not (store.path(run) / "resume.safetensors").exists()


def test_finished_runs_are_kept(
    done: tuple[Place, list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, runs = done
    before = contents(place.store)

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(Bench, "train", never)
    monkeypatch.setattr(Bench, "build", never)
    execute(place, runs)
    execute(place, runs, retry_failed=True)
    assert contents(place.store) == before


def ray_in_this_process() -> Any:
    """As much of Ray as the bench uses; a task is done here, when it is started."""

    def remote(**_: object) -> Any:
        return lambda task: SimpleNamespace(remote=lambda *args: task(*args) or object())

    return SimpleNamespace(
        is_initialized=lambda: True,
        cluster_resources=dict,
        remote=remote,
        wait=lambda going, num_returns: (going[:num_returns], going[num_returns:]),
        get=lambda reference: None,
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )


@pytest.mark.parametrize("ray", [False, True])
def test_what_is_built_on_a_network_that_becomes_another_is_built_again(
    done: tuple[Place, list[Run]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    ray: bool,
) -> None:
    whole, (base, built) = done
    place = replace(whole, store=tmp_path / "store")
    shutil.copytree(whole.store, place.store)
    store = Store(place.store)
    (store.path(base) / "model.safetensors").unlink()
    network = Bench._network

    def other_first_weights(self: Bench, run: Run) -> Network:
        return network(self, replace(run, seed=run.seed + 1))

    if ray:
        monkeypatch.setitem(sys.modules, "ray", ray_in_this_process())
    monkeypatch.setattr(Bench, "_network", other_first_weights)
    execute(place, [base, built], ray=ray)
    check_all_done_once(store, [base, built])
    said = capsys.readouterr().err
    why = f"{base.name} has been trained again, to another network"
    assert said.count(f"{why}: {built.name} is done again\n") == 1
    now, before = (
        Store(each.store).tensors(built, "predictions.safetensors") for each in (place, whole)
    )
    assert not torch.equal(now["test.probs"], before["test.probs"])


@pytest.mark.parametrize(
    ("method", "name", "how"),
    [
        ("softmax", "model.safetensors", "truncated"),
        ("softmax", "predictions.safetensors", "flipped"),
        ("decalibration", "predictions.safetensors", "flipped"),
        ("decalibration", "metrics.json", "empty"),
        ("decalibration", "config.json", "truncated"),
    ],
)
def test_what_is_damaged_is_named_and_done_again(
    done: tuple[Place, list[Run]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    method: str,
    name: str,
    how: str,
) -> None:
    whole, runs = done
    place = replace(whole, store=tmp_path / "store")
    shutil.copytree(whole.store, place.store)
    store = Store(place.store)
    run = next(run for run in runs if run.method == method)
    path = store.path(run) / name
    content = path.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    path.write_bytes({"truncated": content[:-30], "empty": b"", "flipped": flipped}[how])
    others = {run.method: contents(store.path(run)) for run in runs if run.method != method}
    execute(place, runs)
    check_all_done_once(store, runs)
    said = capsys.readouterr().err
    again = "measured" if name == "predictions.safetensors" else "done"
    assert said.count(f": {run.name} is {again} again\n") == 1
    assert str(path) in said
    for other, before in others.items():  # nothing else is touched
        assert contents(store.folder / run.setting.name / other / "seed-1") == before
    for each in ("predictions.safetensors", "model.safetensors"):
        if (whole.store / run.name / each).exists():
            assert (store.path(run) / each).read_bytes() == (
                whole.store / run.name / each
            ).read_bytes()
    records = [
        read_record(folder / run.name / "metrics.json") for folder in (whole.store, place.store)
    ]
    assert records[0].metrics == records[1].metrics


def test_another_configuration_is_refused_before_anything_is_done(
    done: tuple[Place, list[Run]],
) -> None:
    place, _ = done
    before = contents(place.store)
    with pytest.raises(CredalError, match=r"another configuration: epochs \(1 there, 3 here\)"):
        execute(place, tiny_plan("edl", "softmax", epochs=3))
    assert contents(place.store) == before


def test_two_processes_on_one_store_never_do_the_same_run_twice(data: Path, tmp_path: Path) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", seeds=(1, 2))
    place = tiny_place(tmp_path / "store", data)
    asked = [run for run in runs if run.seed < 3]
    processes = [start(command(place, asked)) for _ in range(2)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert all(out.startswith("6 of 6 runs are done") for out, _ in said)
    check_all_done_once(Store(place.store), runs)
    begun = [
        line.split(":")[0] for _, text in said for line in text.splitlines() if " 1/2 " in line
    ]
    assert sorted(begun) == sorted(run.name for run in runs if not run.bases)
    shares = [text.count(" 1/2 ") for _, text in said]
    assert min(shares) > 0, shares  # both worked


@pytest.mark.parametrize("end", ["done", "failed"])
def test_a_run_that_another_process_ends_between_look_and_claim_is_left_alone(
    done: tuple[Place, list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    place, (run, _) = done
    store = Store(tmp_path / "store")
    shutil.copytree(place.store, store.folder)
    if end == "failed":
        (store.path(run) / "metrics.json").unlink()
        store.fail(run, "the loss became nan")
    looks = iter(["new"])  # what was there at the first look
    real = Store.state
    monkeypatch.setattr(Store, "state", lambda self, run: next(looks, "") or real(self, run))
    assert claim(store, [run], 1) == ({}, True)
    assert store.claim(run) is not None  # and not held


def test_what_another_process_is_doing_is_waited_for(
    done: tuple[Place, list[Run]], tmp_path: Path
) -> None:
    """The network is with somebody else; what is built on it is done once it is there."""
    whole, runs = done
    place = replace(whole, store=tmp_path / "store")
    softmax, built = runs
    store = Store(place.store)
    lock = store.claim(softmax)
    assert lock is not None

    def other() -> None:
        time.sleep(1.2)
        for path in (whole.store / softmax.name).iterdir():
            shutil.copyfile(path, store.path(softmax) / path.name)
        lock.release()

    # A lock of filelock is its thread's own, unless told otherwise: release it from this one.
    thread = threading.Thread(target=work, args=(place.bench(), runs))
    thread.start()
    other()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert store.state(built) == "done"
    assert (store.path(softmax) / "model.safetensors").read_bytes() == (
        whole.store / softmax.name / "model.safetensors"
    ).read_bytes()


def test_workers_that_are_killed_are_replaced(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", epochs=3)
    place = tiny_place(tmp_path / "store", data)
    store = Store(place.store)
    killed: set[int] = set()

    def kill() -> None:
        """End whoever has the first run in hand, and then whoever has it next."""
        for epochs in (1, 2):
            wait_until(lambda epochs=epochs: store.epochs_done(runs[0]) >= epochs)  # type: ignore[misc]
            lock = store.path(runs[0]) / ".lock"
            wait_until(lambda lock=lock: set(holders(lock)) - killed)  # type: ignore[misc]
            [pid] = set(holders(lock)) - killed
            assert pid != os.getpid()
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    in_processes(place, runs, workers=2)
    thread.join()
    assert len(killed) == 2
    check_all_done_once(store, runs, killed=runs[0])
    said = capfd.readouterr().err
    assert said.count(f"a worker died (exit code {-signal.SIGKILL}): replaced") == 2


def test_a_message_of_a_worker_stops_all_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    place = tiny_place(tmp_path / "store", tmp_path / "data")
    with pytest.raises(CredalError, match="a worker process stopped; its message stands above"):
        execute(place, tiny_plan("softmax", seeds=(1, 2)), workers=2)
    said = capfd.readouterr().err
    assert 1 <= said.count("credalearn: ") <= 2
    assert "replaced" not in said


def test_workers_end_with_the_process_that_started_them(data: Path, tmp_path: Path) -> None:
    """As ``timeout`` and schedulers end it: by a signal that no code of its own answers."""
    runs = tiny_plan("softmax", "edl", epochs=500)
    place = tiny_place(tmp_path / "store", data)
    locks = [Store(place.store).path(run) / ".lock" for run in runs]
    process = start(command(place, runs, "--workers", "2"))
    try:
        wait_until(lambda: all(map(holders, locks)) or process.poll() is not None)
        workers = {pid for lock in locks for pid in holders(lock)}
        assert len(workers - {process.pid}) == 2
        process.terminate()
        process.communicate(timeout=30)  # the pipes are closed only when the workers have ended
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGTERM


def test_a_full_disk_is_one_message_and_nothing_is_lost(
    done: tuple[Place, list[Run]], tmp_path: Path
) -> None:
    whole, _ = done
    place = replace(whole, store=tmp_path / "store")
    shutil.copytree(whole.store, place.store)
    before = contents(place.store)
    runs = tiny_plan("softmax", "edl", epochs=1)
    message = r"store cannot be written: .*File too large.* To fix: free some space, .* --store; "
    with full_disk(1_000_000), pytest.raises(CredalError, match=message):
        execute(place, runs)  # the checkpoint has 47 MB
    assert {name: contents(place.store)[name] for name in before} == before
    assert not list(place.store.rglob("*.partial"))
    execute(place, runs)
    check_all_done_once(Store(place.store), runs)


def test_a_full_disk_stops_the_workers(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tiny_place(tmp_path / "store", data)
    with full_disk(1_000_000), pytest.raises(CredalError, match="a worker process stopped"):
        execute(place, tiny_plan("softmax", "edl", epochs=1), workers=2)
    said = capfd.readouterr().err
    assert "store cannot be written: " in said
    assert "replaced" not in said
    assert "Traceback" not in said


def test_several_processes_stop_at_the_deadline(data: Path, tmp_path: Path) -> None:
    runs = tiny_plan("softmax", "edl", epochs=40)
    place = tiny_place(tmp_path / "store", data)
    execute(place, runs, workers=2, deadline=time.monotonic() + 5.0)
    store = Store(place.store)
    states = [store.state(run) for run in runs]
    assert set(states) <= {"started", "new"}
    for run, state in zip(runs, states, strict=True):
        if state == "started":
            assert (store.path(run) / "resume.safetensors").exists()
            assert epochs_logged(store, run)


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    place = replace(tiny_place(tmp_path, tmp_path), device="cuda:7")
    with pytest.raises(CredalError, match=r"device 'cuda:7' is not to be had here: .*'auto'"):
        place.bench()
    with pytest.raises(CredalError, match=r"device 'meta' is not to be had here: .*'auto'"):
        replace(place, device="meta").bench()


def test_an_address_of_ray_needs_ray(tmp_path: Path) -> None:
    with pytest.raises(CredalError, match=r"--ray-address auto names .* To fix: give --ray too"):
        execute(tiny_place(tmp_path, tmp_path), tiny_plan("softmax"), ray_address="auto")


def test_without_ray_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # import then fails
    with pytest.raises(
        CredalError, match=r"Ray is not installed\. To fix: pip install 'credal.*ray"
    ):
        execute(tiny_place(tmp_path / "store", tmp_path), tiny_plan("softmax"), ray=True)


def test_a_place_is_the_same_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(Path("store"), (Path("data"),), weights=Path("none")).absolute()
    assert (place.store, place.data) == (tmp_path / "store", (tmp_path / "data",))
    assert place.weights == Path("none")  # a word, not a file
    assert (
        Place(place.store, place.data, weights=Path("w.pt")).absolute().weights == tmp_path / "w.pt"
    )
