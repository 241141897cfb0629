"""How far the runs of a store are, in lines for people."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store


def status_lines(folder: Path, runs: Sequence[Run]) -> list[str]:
    """A headline with the time left, and a line for every run that is neither done nor new.

    Time left is the mean time of an epoch times the epochs that are left, at the pace of one
    process: by the trainings that are done, and while there is none by the logs of those begun.

    Args:
        folder: Of the store.
        runs: All of one setting.

    Example:
        >>> import tempfile
        >>> from credalearn_experiments.settings.catalog import ALL_SETTINGS
        >>> status_lines(Path(tempfile.mkdtemp()), [Run(ALL_SETTINGS["cifar10h"], "pocc", 1)])
        ['cifar10h: 0 of 1 runs done, 1 not begun']
    """
    store = Store(folder)
    found = {run: store.look(run) for run in runs}
    counts = Counter(state for state, _ in found.values())
    begun, wrong, epochs_left, paces, logged = [], [], 0, [], []
    for run, (state, why) in found.items():
        of, done = run.setting.recipe.epochs, 0
        if state == "failed":
            wrong.append(f"  {run.name}: failed: {store.failure(run)}")
        elif why is not None:
            again = {"unmeasured": "; will be measured again", "outdated": "; will be built again"}
            wrong.append(f"  {run.name}: {why}{again.get(state, '')}")
        if run.bases:
            continue
        if state == "done":
            paces.append(store.record(run).seconds / of)
        if state == "started":
            done, line = _begun(store, run)
            begun.append(line)
            pace = store.pace(run)
            logged += [] if pace is None else [pace]
        if state not in ("done", "failed", "unmeasured"):
            epochs_left += of - done
    words = {
        "started": "begun",
        "failed": "failed",
        "damaged": "damaged",
        "unmeasured": "to be measured again",
        "outdated": "to be built again",
        "new": "not begun",
    }
    told = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]  # type: ignore[index]
    head = ", ".join([f"{counts['done']} of {len(runs)} runs done", *told])
    paces = paces or logged
    if paces and epochs_left:
        head += f"; about {_words(epochs_left * sum(paces) / len(paces))} left"
    return [f"{runs[0].setting.name}: {head}", *begun, *wrong]


def _begun(store: Store, run: Run) -> tuple[int, str]:
    """Epochs that need not be done again, and the line, of a training that was begun."""
    of = run.setting.recipe.epochs
    done = min(store.epochs_done(run), of)  # more, where the log is damaged
    claim = store.claim(run)
    if claim is None:
        return done, f"  {run.name}: epoch {done}/{of}, going"
    kept = store.epochs_kept(run)
    claim.release()
    then = f"will go on from its checkpoint, after epoch {kept}" if kept else "will be begun again"
    return kept, f"  {run.name}: epoch {done}/{of}, stopped; {then}"


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
