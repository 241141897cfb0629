"""Runs as tasks of a real Ray instance with two workers, one of them killed in the middle.

Ray has a process of its own here: it warns of its own future, and warnings are errors in tests.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from tiny_bench import command, holders, start, tiny_place, tiny_plan, wait_until
from tiny_data import write_tiny_data

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns that it will change
}
# As a user with a Ray of their own does it: two workers, and little memory.
SCRIPT = """
import sys, time
from pathlib import Path
import ray
from tiny_bench import tiny_place, tiny_plan
from credalearn import CredalError
from credalearn_experiments.running.executors import execute

store, data, empty = map(Path, sys.argv[1:])
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80_000_000)
execute(tiny_place(store, data), tiny_plan("softmax", "edl", "decalibration", epochs=6), ray=True)
execute(
    tiny_place(store, data),
    tiny_plan("pocc", epochs=200),
    ray=True,
    deadline=time.monotonic() + 5,
)
try:
    execute(tiny_place(store, empty), tiny_plan("dappr"), ray=True)
except CredalError as error:
    print("refused:", error)
assert ray.is_initialized()  # theirs, so it is theirs to end
ray.shutdown()
"""

# A cluster with a GPU, whose driver sees none; the task says what it was given.
GPU_SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
import ray, torch
from tiny_bench import tiny_place, tiny_plan
from credalearn_experiments.running import on_ray
from credalearn_experiments.running.executors import execute

def told(place, run, until):
    given = ray.get_runtime_context().get_assigned_resources()
    (place.store / place.device).write_text(str(given.get("GPU", 0)))

on_ray._task = told
torch.cuda.is_available = lambda: False
ray.init(num_cpus=1, num_gpus=1, include_dashboard=False, object_store_memory=80_000_000)
for device in ("auto", "cpu"):
    place = replace(tiny_place(Path(sys.argv[1]), Path(sys.argv[1])), device=device)
    execute(replace(place, side_by_side=4), tiny_plan("softmax"), ray=True)
ray.shutdown()
"""

# Somebody's cluster with two workers, which says where it is; a minute and a half at most.
CLUSTER = """
import time
import ray

started = ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80_000_000)
print(started.address_info["gcs_address"], flush=True)
time.sleep(90)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=10)
    return folder


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """Where Ray keeps its files: a short path, for its sockets. What still runs there is ended."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    yield folder
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[int]:
    """Processes that name this folder in their command or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:  # ended, or not ours
            continue
        if str(folder).encode() in words and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def end(process: "subprocess.Popen[str]", folder: Path) -> str:
    """Wait for the process; all that it said. Nothing of Ray may outlive it."""
    out, said = process.communicate(timeout=200)
    assert process.returncode == 0, f"{out}\n{said}"
    wait_until(lambda: not processes_of(folder), seconds=20)
    return out + said


def epochs_logged(store: Store, run: Run) -> list[int]:
    return [line.epoch for line in store._log(run)]


def test_a_worker_killed_in_the_middle_is_replaced_and_its_run_goes_on(
    data: Path, tmp_path: Path, ray_folder: Path
) -> None:
    runs = tiny_plan("softmax", "edl", "decalibration", epochs=6)
    softmax, edl, _ = runs
    store = Store(tmp_path / "store")
    (tmp_path / "empty").mkdir()
    words = [sys.executable, "-c", SCRIPT, *map(str, (store.folder, data, tmp_path / "empty"))]
    here = str(Path(__file__).parent)
    process = start(words, RAY_TMPDIR=str(ray_folder), PYTHONPATH=here, **QUIET)
    try:
        locks = [store.path(run) / ".lock" for run in (softmax, edl)]
        wait_until(lambda: store.epochs_done(softmax) >= 1 or process.poll() is not None)
        # Two workers: each run is claimed by a process of its own, and neither is the driver.
        wait_until(lambda: all(map(holders, locks)) or process.poll() is not None)
        [first], [second] = map(holders, locks)
        assert len({first, second, process.pid}) == 3
        os.kill(first, signal.SIGKILL)
        done = store.epochs_done(softmax)
        assert 1 <= done < 6
        said = end(process, ray_folder)
    finally:
        process.kill()
        process.wait()
    assert [store.state(run) for run in runs] == ["done"] * 3, said
    logged = epochs_logged(store, softmax)
    assert logged == sorted(set(logged))  # it went on: no epoch was trained twice
    assert logged[-1] == 6
    assert epochs_logged(store, edl) == [1, 2, 3, 4, 5, 6]  # the other was left in peace
    # The one that had five seconds for 200 epochs waits for another day.
    [stopped] = tiny_plan("pocc", epochs=200)
    assert store.state(stopped) == "started"
    assert (store.path(stopped) / "resume.safetensors").exists()
    assert re.search(r"refused: .*dappr/seed-1 did not finish on its worker: .*cifar-100", said), (
        said
    )


def test_the_command_starts_ray_and_ends_it(data: Path, tmp_path: Path, ray_folder: Path) -> None:
    runs = tiny_plan("softmax", "pocc", "decalibration", epochs=1)
    place = tiny_place(tmp_path / "store", data)
    process = start(command(place, runs, "--ray"), RAY_TMPDIR=str(ray_folder), **QUIET)
    try:
        said = end(process, ray_folder)
    finally:
        process.kill()
        process.wait()
    assert "3 of 3 runs are done" in said
    store = Store(place.store)
    assert [store.state(run) for run in runs] == ["done"] * 3
    assert [epochs_logged(store, run) for run in runs] == [[1], [1], []]


def test_a_running_cluster_is_joined_and_told_that_files_are_the_users_own(
    data: Path, tmp_path: Path, ray_folder: Path
) -> None:
    # The environment of its workers asks for official files, that of the command does not.
    theirs = {"RAY_TMPDIR": str(ray_folder), "CREDALEARN_UNVERIFIED": "0", **QUIET}
    cluster = start([sys.executable, "-c", CLUSTER], **theirs)
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        assert re.fullmatch(r"[\d.]+:\d+", address), address
        (run,) = runs = tiny_plan("softmax", epochs=1)
        place = tiny_place(tmp_path / "store", data)
        asked = command(place, runs, "--ray", "--ray-address", address)
        process = start(asked, RAY_AUTH_MODE="token", **QUIET)
        try:
            out, said = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 0, f"{out}\n{said}"
        assert "1 of 1 runs are done" in out
        assert Store(place.store).state(run) == "done"
        assert cluster.poll() is None  # theirs, so it is theirs to end
    finally:
        cluster.terminate()
        cluster.communicate(timeout=20)
    wait_until(lambda: not processes_of(ray_folder), seconds=20)


def test_a_task_takes_its_share_of_the_clusters_gpus(tmp_path: Path, ray_folder: Path) -> None:
    words = [sys.executable, "-c", GPU_SCRIPT, str(tmp_path)]
    here = str(Path(__file__).parent)
    process = start(words, RAY_TMPDIR=str(ray_folder), PYTHONPATH=here, **QUIET)
    try:
        end(process, ray_folder)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "auto").read_text() == "0.25"
    assert (tmp_path / "cpu").read_text() == "0"


@pytest.mark.parametrize("where", ["127.0.0.1:{port}", "nonsense"])
def test_an_address_without_a_cluster_is_named(where: str, data: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = where.format(port=free.getsockname()[1])
    place = tiny_place(tmp_path / "store", data)
    asked = command(place, tiny_plan("softmax"), "--ray", "--ray-address", address)
    process = start(asked, **QUIET)
    try:
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 2
    assert re.search(rf"credalearn: Ray cannot be used at {address}: .* To fix: give --ray-a", said)
    assert "address as auto on a machine of a running cluster, or as its HOST:PORT, with " in said
    assert "RAY_AUTH_MODE=token set if it asks for a token (InvalidAuthToken), or leave " in said
    assert "Traceback" not in said


def test_a_token_that_is_not_to_be_had_is_one_message(data: Path, tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        place = tiny_place(tmp_path / "store", data)
        asked = command(place, tiny_plan("softmax"), "--ray", "--ray-address", address)
        process = start(asked, RAY_AUTH_MODE="token", HOME=str(tmp_path), **QUIET)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 2
    assert re.search(rf"credalearn: Ray cannot be used at {address}: Token auth.* To fix", said)
    assert "Traceback" not in said
