"""The runs as tasks of Ray."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from credalearn.bench.place import Place
from credalearn.bench.runner import Bench
from credalearn.bench.runs import Run
from credalearn.bench.store import Store
from credalearn.bench.work import deadline_at, time_of_day, work
from credalearn.errors import CredalError


def on_ray(
    place: Place,
    runs: Sequence[Run],
    *,
    gpus_a_run: float,
    address: str | None,
    deadline: float | None = None,
) -> None:
    """Every run a task of Ray, on this machine or a cluster that shares the store's folder.

    A task whose worker dies is begun again by Ray, and goes on from its last checkpoint.

    Args:
        place: Where the store and the data lie, as every worker sees them.
        runs: What, with what they are built on among them.
        gpus_a_run: Share of a GPU that a run takes; 0 for none.
        address: Of a running cluster, for instance ``auto``; None starts one here.
        deadline: Time of ``time.monotonic()`` after which nothing is begun; training stops there
            too, to be resumed.

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
    place = place.absolute()  # workers may run in folders of their own
    until = time_of_day(deadline)
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=place.verbose, include_dashboard=False)
    task = ray.remote(num_cpus=1, num_gpus=gpus_a_run, max_retries=3)(_task)
    waiting = [run for run in runs if store.state(run) not in ("done", "failed")]
    going: dict[Any, Run] = {}
    try:
        while waiting or going:
            ready = [r for r in waiting if all(store.state(base) == "done" for base in r.bases)]
            for run in ready:
                waiting.remove(run)
                going[task.remote(place, run, until)] = run
            if not going:
                return  # what is left waits for runs that failed, or the time is up
            finished, _ = ray.wait(list(going), num_returns=1)
            for reference in finished:
                run = going.pop(reference)
                try:
                    ray.get(reference)
                except ray.exceptions.RayError as error:
                    first = str(error).strip().splitlines()[-1].rstrip(".")
                    raise CredalError(
                        f"{run.name} did not finish on its worker: {first}. To fix: look at the "
                        "message above and run again; the runs done so far are kept."
                    ) from error
    finally:
        if ours:
            ray.shutdown()


def _task(place: Place, run: Run, until: float | None) -> None:
    work(_bench(place), [run], side_by_side=1, deadline=deadline_at(until))


@cache
def _bench(place: Place) -> Bench:
    return place.bench()
