"""How far the runs of a store are, in lines for people."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from credalearn.bench.records import read_record
from credalearn.bench.runs import Run
from credalearn.bench.store import Store


def status_lines(folder: Path, runs: Sequence[Run]) -> list[str]:
    """A headline with the time left, and a line for every run that is neither done nor new.

    Time left is the mean time of the trainings that are done times the share of epochs that are
    not, at the pace of one process.

    Args:
        folder: Of the store.
        runs: All of one setting.

    Example:
        >>> import tempfile
        >>> from credalearn.bench.catalogue import ALL_SETTINGS
        >>> status_lines(Path(tempfile.mkdtemp()), [Run(ALL_SETTINGS["cifar10h"], "pocc", 1)])
        ['cifar10h: 0 of 1 runs done, 1 not begun']
    """
    store = Store(folder)
    states = {run: store.state(run) for run in runs}
    counts = Counter(states.values())
    lines, epochs_left, seconds = [], 0, []
    for run, state in states.items():
        if state == "done" and not run.bases:
            seconds.append(read_record(store.path(run) / "metrics.json").seconds)
        if state in ("done", "failed") or run.bases:
            continue
        of, done = run.setting.recipe.epochs, 0
        if state == "started":
            done = store.epochs_done(run)
            claim = store.claim(run)
            resumes = "will go on from its checkpoint" if done else "will be begun again"
            going = f"stopped; {resumes}" if claim else "going"
            if claim:
                claim.release()
            lines.append(f"  {run.name}: epoch {done}/{of}, {going}")
        epochs_left += of - done
    for run, state in states.items():
        if state == "failed":
            reason = (store.path(run) / "failure.txt").read_text(encoding="utf-8").strip()
            lines.append(f"  {run.name}: failed: {reason}")
        elif state == "damaged":
            lines.append(f"  {run.name}: {store.damage(run)}")
    words = {"started": "begun", "failed": "failed", "damaged": "damaged", "new": "not begun"}
    told = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]  # type: ignore[index]
    head = ", ".join([f"{counts['done']} of {len(runs)} runs done", *told])
    if seconds and epochs_left:
        epochs = runs[0].setting.recipe.epochs
        head += f"; about {_words(epochs_left / epochs * sum(seconds) / len(seconds))} left"
    return [f"{runs[0].setting.name}: {head}", *lines]


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
