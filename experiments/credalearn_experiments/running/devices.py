"""The runs by torchrun's processes: every model is trained by all of them."""

import sys
import time
from collections.abc import Sequence

from credalearn.errors import CredalError, TrainingError
from credalearn.train.distributed import hear, process_group, rank, tell
from credalearn_experiments.running.place import REFUSED, Place
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import set_right, work

_DONE, _STOP = "done", "stop"  # what the first process of torchrun tells the others at the end
_SECONDS_TO_SPEAK = 10.0


def on_all_devices(
    place: Place,
    runs: Sequence[Run],
    *,
    deadline: float | None = None,
    retry_failed: bool = False,
) -> None:
    """One model after the other, each trained by all processes that torchrun started.

    The first process looks at the store and tells the others what to train; it alone measures and
    keeps. It returns; the others end here, since all that is left is to report.

    Args:
        place: Where, as every process sees it.
        runs: What, with what they are built on among them.
        deadline: Time of ``time.monotonic()`` after which nothing is begun; training stops there
            too, to be resumed.
        retry_failed: Whether runs that failed before are tried again.

    Raises:
        CredalError: In the first process; the others end with exit code 2 and no message.
    """
    with process_group():
        first = rank() == 0
        if first:
            try:
                store = Store(place.store)
                for run in runs:
                    set_right(store, run, retry_failed=retry_failed)
                work(place.bench(), runs, side_by_side=1, deadline=deadline)
            except (CredalError, TrainingError, OSError):
                tell(_STOP)
                raise
            tell(_DONE)
        else:
            _follow(place)
    if not first:
        sys.exit(0)


def _follow(place: Place) -> None:
    """Take part in what the first process tells of, until it says that nothing is left."""
    bench: Bench | None = None
    while True:
        try:
            runs = hear()
        except RuntimeError:  # the first process has died
            runs = _STOP
        if runs == _DONE:
            return
        if runs == _STOP:
            # torchrun stops all processes when one ends badly: first the first one says why.
            time.sleep(_SECONDS_TO_SPEAK)
            sys.exit(REFUSED)
        bench = bench or place.bench()
        bench.take_part(runs)
