"""Status of the runs in a store, in lines for people."""

from collections import Counter
from collections.abc import Sequence

from credalearn_experiments.log import read_log, seconds_spent
from credalearn_experiments.runs import Run
from credalearn_experiments.store import Store

_WORDS = {"started": "started", "failed": "failed", "new": "not started"}


def status_lines(store: Store, runs: Sequence[Run]) -> list[str]:
    """A headline with the time left, and a line for every run that is started or failed.

    The time left is the mean time of an epoch in all logs times the epochs left, for one process.
    """
    states = {run: store.state(run) for run in runs}
    lines, epochs_left, epochs_done, seconds = [], 0, 0, 0.0
    for run, state in states.items():
        epochs = run.setting.recipe.epochs
        log = read_log(store.log(run))
        done = min(max((line.epoch for line in log), default=0), epochs)
        if state == "failed":
            lines.append(f"  {run.name}: failed: {store.failure(run)}")
        elif state == "started":
            lines.append(f"  {run.name}: epoch {done}/{epochs}, {_activity(store, run)}")
        epochs_done += len(log)
        seconds += seconds_spent(store.log(run))
        if not run.bases and state in ("new", "started"):
            epochs_left += epochs - done
    counts = Counter(states.values())
    notes = [f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state]]  # type: ignore[index]
    head = ", ".join([f"{counts['done']} of {len(runs)} runs done", *notes])
    if epochs_left and epochs_done:
        head += f"; about {_duration(epochs_left * seconds / epochs_done)} left"
    return [f"{runs[0].setting.name}: {head}", *lines]


def _activity(store: Store, run: Run) -> str:
    """Whether a process works on a started run."""
    claim = store.claim(run)
    if claim is None:
        return "running"
    claim.release()
    return "stopped; `run` resumes it"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
