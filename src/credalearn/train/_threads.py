"""Small work on one thread of torch, without a change for the caller's other work.

With batches of a few hundred rows, threads mostly wait for each other: two took 11 times the CPU
time of one for an MLP of 128 units and batches of 128.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Thread
from typing import TypeVar

import torch

_T = TypeVar("_T")
_SECONDS_ASLEEP = 0.1


def on_one_thread(work: Callable[[Event], _T], *, unless: bool = False) -> _T:
    """What ``work`` returns, done in a new thread whose torch operations use one thread."""
    # torch keeps the number of threads for each thread of Python, and a default for new ones, which
    # is set back at once. After Ctrl-C, ``work`` finds its event set and is waited for.
    count = torch.get_num_threads()
    if unless or count == 1:
        return work(Event())
    stopped, ready, restored, done = Event(), Event(), Event(), Event()
    result: Future[_T] = Future()

    def run() -> None:
        torch.get_num_threads()  # takes the default now: later it would undo the next line
        torch.set_num_threads(1)
        ready.set()
        restored.wait()
        try:
            result.set_result(work(stopped))
        except BaseException as error:  # raised again below, in the caller's thread
            result.set_exception(error)
        finally:
            done.set()

    thread = Thread(target=run, name="small work")
    thread.start()
    ready.wait()
    torch.set_num_threads(count)
    restored.set()
    try:
        # Until Python 3.13, a join after an interrupted join does not wait. And polars replaces the
        # handler of Ctrl-C by one that wakes no thread, so that this one wakes by itself.
        while not done.wait(_SECONDS_ASLEEP):
            pass
    except KeyboardInterrupt:
        stopped.set()
        done.wait()
        raise
    finally:
        thread.join()
    return result.result()
