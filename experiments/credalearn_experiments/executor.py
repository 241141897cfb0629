"""Doing many runs: joblib's processes here, a Ray cluster, or torchrun's processes.

The store decides what is left. A run is claimed before it is done, so any number of processes,
however they were started, share the work, and the next process to claim a killed run resumes it.
"""

import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, lru_cache
from threading import Thread

import torch
import torch.distributed as dist
from joblib import Parallel, delayed, parallel_config

from credalearn._files import writing
from credalearn.errors import CredalError
from credalearn.train import _processes as processes
from credalearn_experiments.data import UNVERIFIED_VARIABLE
from credalearn_experiments.runner import RunContext, Runner
from credalearn_experiments.runs import Run
from credalearn_experiments.store import Store

_MAX_DEATHS = 3
_SECONDS_BETWEEN_LOOKS = 1.0
# The others wait while the first process evaluates a model. If one dies, torchrun ends them all.
_PATIENCE = timedelta(days=7)
_FROM_TORCHRUN = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def execute(
    context: RunContext,
    runs: Sequence[Run],
    *,
    workers: int = 1,
    ray: str | None = None,
    minutes: float | None = None,
) -> None:
    """Do the runs that are not done yet; under torchrun, each model with all its processes."""
    until = None if minutes is None else time.time() + 60 * minutes
    keep = "pass another --store; finished runs are kept, and the same command resumes the rest"
    with writing(context.store, other=keep):
        if under_torchrun():
            if ray is not None or workers > 1:
                raise CredalError(
                    "torchrun has started the processes. To fix: leave out --workers and --ray."
                )
            _with_torchrun(context, runs, until)
            return
        with _backend(context, workers, ray) as (jobs, side_by_side):
            _work_all(context, runs, until, jobs=jobs, side_by_side=side_by_side)


@contextmanager
def _backend(context: RunContext, workers: int, ray: str | None) -> Iterator[tuple[int, int]]:
    """Backend of joblib for the block; the number of jobs, and of models trained side by side."""
    if ray is None:
        on_gpu = processes.find_device(context.device).type == "cuda"
        with parallel_config("loky", n_jobs=workers):
            yield workers, context.side_by_side if on_gpu else 1
        return
    try:
        import ray as cluster
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise CredalError("Ray is not installed. To fix: pip install ray.") from error
    environment = {UNVERIFIED_VARIABLE: os.environ.get(UNVERIFIED_VARIABLE, "")}
    try:
        cluster.init(address=ray, runtime_env={"env_vars": environment})
    except (OSError, ValueError, RuntimeError) as error:
        raise CredalError(
            f"no Ray cluster can be joined at {ray!r}: {error}. To fix: start one with `ray start "
            "--head`, and pass its address or 'auto'."
        ) from error
    register_ray()  # type: ignore[no-untyped-call]
    resources: dict[str, float] = cluster.cluster_resources()  # type: ignore[no-untyped-call]
    cpus, gpus = int(resources["CPU"]), resources.get("GPU", 0.0)
    on_gpu = context.device != "cpu" and gpus > 0
    # joblib runs a single job in this process: one GPU is shared by two.
    jobs = max(2, int(gpus)) if on_gpu else cpus
    share = {"num_gpus": gpus / jobs} if on_gpu else {"num_cpus": 1}
    try:
        with parallel_config("ray", n_jobs=jobs, ray_remote_args=share):
            yield jobs, context.side_by_side if on_gpu else 1
    finally:
        cluster.shutdown()


def _work_all(
    context: RunContext, runs: Sequence[Run], until: float | None, *, jobs: int, side_by_side: int
) -> None:
    """Hand groups of runs to joblib until none is left, all others have failed, or time is up."""
    store, deaths = Store(context.store), 0
    _runner.cache_clear()
    while until is None or time.time() < until:
        groups = _ready_groups(store, runs, side_by_side)
        if not groups:
            return
        try:
            worked = Parallel(n_jobs=jobs, batch_size=1)(
                delayed(_work)(context, group, until, os.getpid()) for group in groups
            )
        except Exception as error:
            names = {kind.__name__ for kind in type(error).__mro__}  # of joblib and of Ray
            if names.isdisjoint({"TerminatedWorkerError", "RayActorError"}):
                raise
            deaths += 1
            kind = type(error).__name__
            print(f"a worker process died ({kind}); it is replaced", file=sys.stderr)
            if deaths > _MAX_DEATHS:
                raise CredalError(
                    f"worker processes died {deaths} times. To fix: look at their messages above; "
                    "finished runs are kept, and the same command resumes the rest."
                ) from error
            continue
        if not any(worked):  # other processes do what is left
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _ready_groups(store: Store, runs: Sequence[Run], side_by_side: int) -> list[list[Run]]:
    """Runs that can be done now: each built one alone, trainings with others of their kind."""
    states = {run: store.state(run) for run in runs}
    left = [
        run
        for run, state in states.items()
        if state in ("new", "started")
        and all(states[each] == "done" for each in (*run.bases, *run.teachers))
    ]
    alike: dict[object, list[Run]] = {}
    for run in left:
        alike.setdefault(run if run.bases else run.group_key, []).append(run)
    parts = ((each, range(0, len(each), side_by_side)) for each in alike.values())
    return [each[k : k + side_by_side] for each, starts in parts for k in starts]


def _work(context: RunContext, group: Sequence[Run], until: float | None, starter: int) -> bool:
    """Do those runs of a group that nobody else does; whether there were any."""
    if until is not None and time.time() >= until:
        return False
    if os.getppid() == starter:
        _end_with(starter)
    runner = _runner(context)
    claims = {run: lock for run in group if (lock := runner.store.claim(run)) is not None}
    try:
        mine = [run for run in claims if runner.store.state(run) in ("new", "started")]
        deadline = None if until is None else time.monotonic() + until - time.time()
        if mine and mine[0].bases:
            runner.build(mine[0])
        elif mine:
            runner.train(mine, deadline=deadline)
    finally:
        for lock in claims.values():
            lock.release()
    return bool(mine)


@lru_cache(maxsize=1)
def _runner(context: RunContext) -> Runner:
    """The runner of this process, with the data that it has read."""
    return Runner(context)


@cache
def _end_with(parent: int) -> None:
    """End this worker soon after the process that started it, even if that one was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(2)

    Thread(target=watch, daemon=True).start()


def under_torchrun() -> bool:
    """Whether torchrun started this process as one of several."""
    size = os.environ.get("WORLD_SIZE", "1")
    missing = [name for name in _FROM_TORCHRUN if name not in os.environ]
    if not size.isdecimal() or (int(size) > 1 and missing):
        raise CredalError(
            f"WORLD_SIZE is {size!r}, but these environment variables of torchrun are not set: "
            f"{', '.join(missing)}. To fix: start the command with torchrun, or unset WORLD_SIZE."
        )
    return int(size) > 1


@contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun started; after an error the process must end."""
    # Messages go through the CPUs, so that GPUs are idle while their processes wait for one.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=_PATIENCE)
    yield
    dist.all_reduce(torch.zeros(1))  # none leaves before all have read the last message
    gc.collect()  # models in cycles hold the group, whose threads must not outlive it
    dist.destroy_process_group()


def _with_torchrun(context: RunContext, runs: Sequence[Run], until: float | None) -> None:
    """Train with all processes; the first one tells the others what, measures, and returns."""
    with process_group():
        if first := processes.rank() == 0:
            try:
                _work_all(context, runs, until, jobs=1, side_by_side=1)
            finally:
                processes.tell(None)
        else:
            while (heard := processes.hear()) is not None:
                _runner(context).participate(heard)
    if not first:
        sys.exit(0)
