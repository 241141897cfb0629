"""Doing the runs that nobody else does: claim, train or build, release."""

import sys
import time
from collections.abc import Sequence

from filelock import FileLock

from credalearn.bench.place import SIDE_BY_SIDE
from credalearn.bench.runner import Bench
from credalearn.bench.runs import Run
from credalearn.bench.store import Store

_SECONDS_BETWEEN_LOOKS = 0.5


def set_right(store: Store, run: Run, *, retry_failed: bool) -> None:
    """Forget a run that is damaged, which is said, or one that failed and is to be tried again."""

    def reason() -> str | None:
        state = store.state(run)
        if state in ("done", "damaged"):
            return store.damage(run, thorough=True)
        return f"{run.name} failed before" if state == "failed" and retry_failed else None

    if reason() is None:
        return
    lock = store.claim(run)
    if lock is None:
        return  # another process does it again already
    with lock:
        why = reason()  # as it is now that nobody changes it
        if why is not None:
            print(f"{why}: {run.name} is done again", file=sys.stderr)
            store.forget(run)


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
        claims, waiting = claim(bench.store, runs, group)
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


def measure(bench: Bench, runs: Sequence[Run]) -> int:
    """Measure once more those of the runs that are done and that nobody works on; how many."""
    count = 0
    for run in runs:
        lock = bench.store.claim(run) if bench.store.state(run) == "done" else None
        if lock is None:
            continue
        with lock:
            bench.measure(run)
        count += 1
    return count


def claim(store: Store, runs: Sequence[Run], group: int) -> tuple[dict[Run, FileLock], bool]:
    """Locks of what to do next, one run or several trainings; and if others work.

    Trainings go side by side where they share all but labels, method and seed, also of several
    settings: so a GPU is full even where a setting has three networks.
    """
    claims: dict[Run, FileLock] = {}
    waiting = False
    open_runs = [run for run in runs if store.state(run) not in ("done", "failed")]
    # What is built on others takes seconds: first, so that it is kept as soon as it can be.
    for run in sorted(open_runs, key=lambda run: not run.bases):
        if any(store.state(base) != "done" for base in run.bases):
            continue
        first = next(iter(claims), None)
        if first is not None and (run.bases or run.surroundings != first.surroundings):
            continue
        lock = store.claim(run)
        if lock is None:
            waiting = True
        elif store.state(run) in ("done", "failed"):  # between the look and the claim
            lock.release()
            waiting = True
        else:
            claims[run] = lock
            if run.bases or len(claims) == group:
                break
    return claims, waiting


def time_of_day(deadline: float | None) -> float | None:
    """A deadline of this process's clock by a clock that all processes and machines share."""
    return None if deadline is None else time.time() + deadline - time.monotonic()


def deadline_at(until: float | None) -> float | None:
    """What :func:`time_of_day` told of, on this process's own clock."""
    return None if until is None else time.monotonic() + until - time.time()
