"""Small work on one thread of torch, without a change for the caller's other work.

With batches of a few hundred rows, threads mostly wait for each other: two took 11 times the CPU
time of one for an MLP of 128 units and batches of 128.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

import torch

_T = TypeVar("_T")
_SECONDS_ASLEEP = 0.1


def on_one_thread(work: Callable[[Event], _T], *, unless: bool = False) -> _T:
    """What ``work`` returns, done in a new thread whose torch operations use one thread."""
    # torch keeps the number of threads for each thread of Python, and a default for new ones, which
    # is set back at once. After Ctrl-C, ``work`` finds its event set and is waited for.
    count = torch.get_num_threads()
    stopped = Event()
    if unless or count == 1:
        return work(stopped)
    with ThreadPoolExecutor(1, thread_name_prefix="small work") as new_thread:
        # It takes the default first: later that would undo the second line.
        new_thread.submit(torch.get_num_threads).result()
        new_thread.submit(torch.set_num_threads, 1).result()
        torch.set_num_threads(count)
        result = new_thread.submit(work, stopped)
        while not result.done():
            try:
                # Polars replaces the handler of Ctrl-C by one that wakes no thread, so that this
                # one wakes by itself. Until Python 3.13, leaving it to the executor to wait after
                # Ctrl-C would not wait.
                wait([result], _SECONDS_ASLEEP)
            except KeyboardInterrupt:
                stopped.set()
    if stopped.is_set():
        raise KeyboardInterrupt
    return result.result()
