"""Who does the runs: this process, several, the workers of a Ray cluster, or torchrun's processes.

All go by the store: a run is claimed before it is done, and one that was begun is finished by
whoever claims it next. So any number of processes, started in any way, share the work.
"""

from collections.abc import Sequence

from credalearn.errors import CredalError
from credalearn.train.distributed import under_torchrun
from credalearn_experiments.running.devices import on_all_devices
from credalearn_experiments.running.on_ray import on_ray
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.processes import in_processes
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import set_right, work


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

    Where torchrun started this process as one of several, all of them train each model together.

    Args:
        place: Where.
        runs: What, with what they are built on among them.
        workers: Processes on this machine.
        ray: Whether the workers of a Ray cluster do it.
        ray_address: Of that cluster; None starts one here.
        deadline: Time of ``time.monotonic()`` after which nothing is begun.
        retry_failed: Whether runs that failed before are tried again.

    Raises:
        CredalError: If the options do not go together, or the store cannot be written to.
    """
    if ray_address is not None and not ray:
        raise CredalError(
            f"--ray-address {ray_address} names a cluster that nothing is done on without --ray. "
            "To fix: give --ray too, or leave --ray-address out."
        )
    if under_torchrun() and (ray or workers > 1):
        raise CredalError(
            "torchrun has started the processes. To fix: leave --workers and --ray out."
        )
    with place.keeping():
        if under_torchrun():
            on_all_devices(place, runs, deadline=deadline, retry_failed=retry_failed)
            return
        store = Store(place.store)
        for run in runs:
            set_right(store, run, retry_failed=retry_failed)
        if ray:
            on_ray(place, runs, address=ray_address, deadline=deadline)
        elif workers > 1:
            in_processes(place, runs, workers=workers, deadline=deadline)
        else:
            work(place.bench(), runs, side_by_side=place.side_by_side, deadline=deadline)
