"""Who does the runs: this process, several, or the workers of a Ray cluster.

All go by the store: a run is claimed before it is done, and one that was begun is finished by
whoever claims it next. So any number of processes, started in any way, share the work.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from credalearn.bench.data import DataFolders
from credalearn.bench.runner import Bench
from credalearn.bench.runs import Run
from credalearn.bench.store import Store
from credalearn.errors import CredalError

SIDE_BY_SIDE = 8  # models on one GPU: beyond eight an H200 does no more images a second
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs are done, in words that travel to other processes.

    Args:
        store: Folder of the store.
        data: Folders of data sets.
        device: ``"auto"`` (a GPU where there is one), or a device of torch.
        weights: File of pretrained weights, or None.
        side_by_side: Models trained at once on a GPU.
        verbose: Show progress.

    Example:
        >>> Place(Path("store"), (Path("data"),)).side_by_side
        8
    """

    store: Path
    data: tuple[Path, ...]
    device: str = "auto"
    weights: Path | None = None
    side_by_side: int = SIDE_BY_SIDE
    verbose: bool = True

    def bench(self) -> Bench:
        """A bench there, in this process.

        Raises:
            CredalError: If the device is not to be had.
        """
        name = self.device
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            torch.empty(0, device=name)
        except (RuntimeError, AssertionError) as error:
            raise CredalError(
                f"device {self.device!r} is not to be had here: {error}. To fix: take 'auto'."
            ) from error
        return Bench(
            store=Store(self.store),
            data=DataFolders(self.data),
            device=torch.device(name),
            weights=self.weights,
            verbose=self.verbose,
        )


def execute(
    place: Place,
    runs: Sequence[Run],
    *,
    workers: int = 1,
    ray: bool = False,
    ray_address: str | None = None,
    deadline: float | None = None,
    retry_failed: bool = False,
) -> None:
    """Do the runs that are not done yet, with whom the options name.

    Args:
        place: Where.
        runs: What, with what they are built on among them.
        workers: Processes on this machine.
        ray: Whether the workers of a Ray cluster do it.
        ray_address: Of that cluster; None starts one here.
        deadline: Time of ``time.monotonic()`` after which nothing is begun.
        retry_failed: Whether runs that failed before are tried again.
    """
    store = Store(place.store)
    for run in runs:
        state = store.state(run)
        why = store.damage(run, thorough=True) if state in ("done", "damaged") else None
        if why is not None:
            print(f"{why}: {run.name} is done again", file=sys.stderr)
            (store.path(run) / "metrics.json").unlink(missing_ok=True)
        if state == "failed" and retry_failed:
            (store.path(run) / "failure.txt").unlink()
    if ray:
        share = 1 / place.side_by_side if torch.cuda.is_available() else 0
        on_ray(place, runs, gpus_a_run=share, address=ray_address)
    elif workers > 1:
        in_processes(place, runs, workers=workers, deadline=deadline)
    else:
        work(place.bench(), runs, side_by_side=place.side_by_side, deadline=deadline)


def work(
    bench: Bench,
    runs: Sequence[Run],
    *,
    side_by_side: int = SIDE_BY_SIDE,
    deadline: float | None = None,
) -> None:
    """Do the runs that nobody else does, until none is left or the time is up.

    Args:
        bench: Where.
        runs: What, in order, with what they are built on among them.
        side_by_side: Models trained at once on a GPU.
        deadline: Time of ``time.monotonic()`` after which nothing is begun; training stops there
            too, to be resumed.
    """
    group = side_by_side if bench.device.type == "cuda" else 1
    while deadline is None or time.monotonic() < deadline:
        claims, waiting = _claim(bench.store, runs, group)
        if not claims and not waiting:
            return
        if not claims:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            continue
        try:
            chosen = list(claims)
            if chosen[0].bases:
                bench.build(chosen[0])
            else:
                bench.train(chosen, deadline=deadline)
        finally:
            for lock in claims.values():
                lock.release()


def _claim(store: Store, runs: Sequence[Run], group: int) -> tuple[dict[Run, FileLock], bool]:
    """Locks of what to do next: one run, or several trainings of a setting; and if others work."""
    claims: dict[Run, FileLock] = {}
    waiting = False
    open_runs = [run for run in runs if store.state(run) not in ("done", "failed")]
    # What is built on others takes seconds: first, so that it is kept as soon as it can be.
    for run in sorted(open_runs, key=lambda run: not run.bases):
        if any(store.state(base) != "done" for base in run.bases):
            continue
        first = next(iter(claims), None)
        if first is not None and (run.bases or run.setting != first.setting):
            continue
        lock = store.claim(run)
        if lock is None:
            waiting = True
        elif store.state(run) == "done":  # between the look and the claim
            lock.release()
            waiting = True
        else:
            claims[run] = lock
            if run.bases or len(claims) == group:
                break
    return claims, waiting


def in_processes(
    place: Place, runs: Sequence[Run], *, workers: int, deadline: float | None = None
) -> None:
    """The same work in several processes of this machine; a process that dies is replaced.

    Raises:
        CredalError: If processes keep dying.
    """
    context = multiprocessing.get_context("spawn")
    left = None if deadline is None else deadline - time.monotonic()
    threads = max(1, (os.cpu_count() or 1) // workers)

    def start() -> Any:
        process = context.Process(target=_worker, args=(place, list(runs), threads, left))
        process.start()
        return process

    processes = [start() for _ in range(workers)]
    replaced = 0
    try:
        while processes:
            for number, process in enumerate(processes):
                process.join(timeout=0.1)
                if process.is_alive():
                    continue
                if process.exitcode == 0:
                    processes.pop(number)
                    break
                replaced += 1
                if replaced > 3 * workers:
                    raise CredalError(
                        f"{replaced} worker processes have died, the last with exit code "
                        f"{process.exitcode}. To fix: look at their messages above; the runs done "
                        "so far are kept."
                    )
                print(f"a worker died (exit code {process.exitcode}): replaced", file=sys.stderr)
                processes[number] = start()
    finally:
        for process in processes:
            process.terminate()


def _worker(place: Place, runs: list[Run], threads: int, seconds: float | None) -> None:
    torch.set_num_threads(threads)
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        work(place.bench(), runs, side_by_side=place.side_by_side, deadline=deadline)
    except CredalError as error:  # the same in every process: say it once more, not as a crash
        print(f"credalearn: {error}", file=sys.stderr)
        sys.exit(2)


def on_ray(place: Place, runs: Sequence[Run], *, gpus_a_run: float, address: str | None) -> None:
    """Every run a task of Ray, on this machine or a cluster that shares the store's folder.

    A task whose worker dies is begun again by Ray, and goes on from its last checkpoint.

    Args:
        place: Where the store and the data lie, as every worker sees them.
        runs: What, with what they are built on among them.
        gpus_a_run: Share of a GPU that a run takes; 0 for none.
        address: Of a running cluster, for instance ``auto``; None starts one here.

    Raises:
        CredalError: If Ray is not installed, or a task failed for good.
    """
    try:
        import ray
    except ImportError as error:
        raise CredalError(
            "Ray is not installed. To fix: pip install 'credalearn[ray]', or leave --ray out."
        ) from error
    store = Store(place.store)
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=place.verbose, include_dashboard=False)
    task = ray.remote(num_cpus=1, num_gpus=gpus_a_run, max_retries=3)(_task)
    waiting = [run for run in runs if store.state(run) not in ("done", "failed")]
    going: dict[Any, Run] = {}
    try:
        while waiting or going:
            ready = [r for r in waiting if all(store.state(base) == "done" for base in r.bases)]
            for run in ready:
                waiting.remove(run)
                going[task.remote(place, run)] = run
            if not going:
                return  # what is left waits for runs that failed
            finished, _ = ray.wait(list(going), num_returns=1)
            for reference in finished:
                run = going.pop(reference)
                try:
                    ray.get(reference)
                except ray.exceptions.RayError as error:
                    first = str(error).strip().splitlines()[-1]
                    raise CredalError(
                        f"{run.name} did not finish on its worker: {first}. To fix: look at the "
                        "message above and run again; the runs done so far are kept."
                    ) from error
    finally:
        ray.shutdown()


def _task(place: Place, run: Run) -> None:
    work(_bench(place), [run], side_by_side=1)


@cache
def _bench(place: Place) -> Bench:
    return place.bench()
