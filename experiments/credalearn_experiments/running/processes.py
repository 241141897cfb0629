"""The runs in several processes of one machine."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

import torch

from credalearn.errors import CredalError, TrainingError
from credalearn_experiments.running.place import REFUSED, Place
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.work import deadline_at, time_of_day, work


def in_processes(
    place: Place, runs: Sequence[Run], *, workers: int, deadline: float | None = None
) -> None:
    """The same work in several processes of this machine; one that a signal kills is replaced.

    Raises:
        CredalError: If one of them raised anything, or processes keep being killed.
    """
    context = multiprocessing.get_context("spawn")
    until = time_of_day(deadline)
    threads = max(1, (os.cpu_count() or 1) // workers)

    def start() -> Any:
        process = context.Process(target=_worker, args=(place, list(runs), threads, until))
        # A terminal sends Ctrl-C to the workers too. This process alone answers it: a worker that
        # starts while it is ignored ignores it from its first moment on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        return process

    processes = [start() for _ in range(workers)]
    replaced = 0
    try:
        while processes:
            for number, process in enumerate(processes):
                process.join(timeout=0.1)
                if process.is_alive():
                    continue
                if process.exitcode == 0:
                    processes.pop(number)
                    break
                # An exception ends a process above 0, a signal below: after an exception another
                # process would only raise the same again.
                if process.exitcode > 0:
                    raise CredalError("a worker process stopped; its message stands above.")
                replaced += 1
                if replaced > 3 * workers:
                    raise CredalError(
                        f"{replaced} worker processes have died, the last with exit code "
                        f"{process.exitcode}. To fix: look at their messages above; the runs done "
                        "so far are kept."
                    )
                print(f"a worker died (exit code {process.exitcode}): replaced", file=sys.stderr)
                processes[number] = start()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _worker(place: Place, runs: list[Run], threads: int, until: float | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    try:
        with place.keeping():
            work(place.bench(), runs, side_by_side=place.side_by_side, deadline=deadline_at(until))
    except (CredalError, TrainingError) as error:  # another process would say the same
        print(f"credalearn: {error}", file=sys.stderr)
        sys.exit(REFUSED)


def _end_with_parent() -> None:
    """End this process when the one that started it ends, however that was: by a signal too."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(REFUSED)
