"""The runs as tasks of Ray."""

import os
import socket
from collections.abc import Sequence
from functools import cache
from typing import Any

from credalearn.errors import CredalError
from credalearn_experiments.data import UNVERIFIED_VARIABLE
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import deadline_at, time_of_day, work

_SECONDS_TO_ANSWER = 10.0


def on_ray(
    place: Place,
    runs: Sequence[Run],
    *,
    address: str | None,
    deadline: float | None = None,
) -> None:
    """Every run a task of Ray, on this machine or a cluster that shares the store's folder.

    A task whose worker dies is begun again by Ray, and goes on from its last checkpoint. Where the
    cluster has GPUs, a task takes one of ``place.side_by_side`` shares of a GPU.

    Args:
        place: Where the store and the data lie, as every worker sees them.
        runs: What, with what they are built on among them.
        address: Of a running cluster, for instance ``auto``; None starts one here.
        deadline: Time of ``time.monotonic()`` after which nothing is begun; training stops there
            too, to be resumed.

    Raises:
        CredalError: If Ray is not installed, no cluster is at the address, or a task failed for
            good.
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
        try:
            _check_answers(ray, address)
            ray.init(address=address, log_to_driver=place.verbose, include_dashboard=False)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            where = "" if address is None else f" at {address}"
            # Ray finds the cluster's token by itself for "auto", but not for HOST:PORT.
            raise CredalError(
                f"Ray cannot be used{where}: {error}. To fix: give --ray-address as auto on a "
                "machine of a running cluster, or as its HOST:PORT, with RAY_AUTH_MODE=token set "
                "if it asks for a token (InvalidAuthToken), or leave it out: one is started here "
                "then."
            ) from error
    # Of the cluster: the machine that starts the tasks may have no GPU, or be alone in having one.
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    share = 1 / place.side_by_side if place.device != "cpu" and resources.get("GPU") else 0
    # Workers of a cluster that was running before have its environment, not the caller's.
    said = {"env_vars": {UNVERIFIED_VARIABLE: os.environ.get(UNVERIFIED_VARIABLE, "")}}
    task = ray.remote(num_cpus=1, num_gpus=share, max_retries=3, runtime_env=said)(_task)
    states = {run: store.state(run) for run in runs}
    waiting = [
        run
        for run in runs
        if states[run] not in ("done", "failed")
        # Networks that are trained again may be others: then what was built on them is not done.
        or (states[run] == "done" and any(states[base] != "done" for base in run.bases))
    ]
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


def _check_answers(ray: Any, address: str | None) -> None:
    """Refuse an address where nothing listens: Ray itself would try for a quarter of an hour."""
    host, _, port = (address or "").rpartition(":")
    if not port.isdecimal() or "/" in host:
        return  # "auto", or another word of Ray's
    if host in ("127.0.0.1", "localhost"):
        host = ray.util.get_node_ip_address()  # where Ray looks then
    socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()


def _task(place: Place, run: Run, until: float | None) -> None:
    with place.keeping():
        work(_bench(place), [run], side_by_side=1, deadline=deadline_at(until))


@cache
def _bench(place: Place) -> Bench:
    return place.bench()
