"""Doing the runs that nobody else does: claim, train, build or measure, release."""

import sys
import time
from collections.abc import Sequence

from filelock import FileLock

from credalearn_experiments.running.place import SIDE_BY_SIDE
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import State, Store

_SECONDS_BETWEEN_LOOKS = 0.5


def set_right(store: Store, run: Run, *, retry_failed: bool) -> None:
    """Forget what is damaged or outdated, which is said, or what failed and is to be tried again.

    Where the weights are whole and the predictions are not, these alone are forgotten.
    """

    def look() -> tuple[State, str | None]:
        state, why = store.look(run, thorough=True)
        again = state == "failed" and retry_failed
        return state, f"{run.name} failed before" if again else why

    if look()[1] is None:
        return
    lock = store.claim(run)
    if lock is None:
        return  # another process does it again already
    try:
        state, why = look()  # as it is now that nobody changes it
        if why is not None and state == "unmeasured":
            print(f"{why}: {run.name} is measured again", file=sys.stderr)
            store.forget_predictions(run)
        elif why is not None:
            print(f"{why}: {run.name} is done again", file=sys.stderr)
            store.forget(run)
    finally:
        lock.release()


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
            state, why = bench.store.look(chosen[0])
            if state == "outdated":  # since what it was built on was trained again, just now
                print(f"{why}: {chosen[0].name} is done again", file=sys.stderr)
            if state == "unmeasured":
                bench.measure(chosen[0])
            elif chosen[0].bases:
                bench.build(chosen[0])
            else:
                bench.train(chosen, deadline=deadline)
        finally:
            for lock in claims.values():
                lock.release()


def measure(bench: Bench, runs: Sequence[Run]) -> int:
    """Measure once more those of the runs that are done and that nobody works on; how many.

    A run that is damaged, or built on networks that are not there, is named and left out.
    """
    count = 0
    for run in runs:
        if bench.store.state(run) in ("new", "started", "failed"):
            continue
        lock = bench.store.claim(run)
        if lock is None:
            continue
        try:
            why = _why_not(bench.store, run)
            if why is None:
                bench.measure(run)
                count += 1
        finally:
            lock.release()
        if why is not None:
            again = "left out; `credalearn-experiments run` does it again"
            print(f"{why}: {run.name} is {again}", file=sys.stderr)
    return count


def _why_not(store: Store, run: Run) -> str | None:
    """Why a run cannot be measured from what is kept, in words; None if it can be."""
    measurable = ("done", "unmeasured")  # the weights are whole
    state, why = store.look(run, thorough=True)
    if state not in measurable:
        return why or f"{run.name} is not done"
    missing = [base.name for base in run.bases if store.state(base) not in measurable]
    return f"it is built on {', '.join(missing)}, not done" if missing else None


def claim(store: Store, runs: Sequence[Run], group: int) -> tuple[dict[Run, FileLock], bool]:
    """Locks of what to do next, one run or several trainings; and if others work.

    Trainings go side by side where they share all but labels, method and seed, also of several
    settings: so a GPU is full even where a setting has three networks.
    """
    claims: dict[Run, FileLock] = {}
    waiting = False
    states = {run: store.state(run) for run in runs}
    # What is built on others or only measured takes seconds: first, so that it is kept as soon as
    # it can be.
    quick = {run: bool(run.bases) or states[run] == "unmeasured" for run in runs}
    open_runs = [run for run in runs if states[run] not in ("done", "failed")]
    for run in sorted(open_runs, key=lambda run: not quick[run]):
        if any(store.state(base) != "done" for base in run.bases):
            continue
        first = next(iter(claims), None)
        if first is not None and (quick[run] or run.surroundings != first.surroundings):
            continue
        lock = store.claim(run)
        if lock is None:
            waiting = True
        elif store.state(run) in ("done", "failed"):  # between the look and the claim
            lock.release()
            waiting = True
        else:
            claims[run] = lock
            if quick[run] or len(claims) == group:
                break
    return claims, waiting


def time_of_day(deadline: float | None) -> float | None:
    """A deadline of this process's clock by a clock that all processes and machines share."""
    return None if deadline is None else time.time() + deadline - time.monotonic()


def deadline_at(until: float | None) -> float | None:
    """What :func:`time_of_day` told of, on this process's own clock."""
    return None if until is None else time.monotonic() + until - time.time()
