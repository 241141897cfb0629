"""Counts how often files are opened, by this process and its threads: inotify, Linux only."""

import ctypes
import os
import select
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN, _CLOSE, _FOLDER = 0x20, 0x08 | 0x10, 0x40000000
_HEADER = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def count_opens(*folders: Path) -> Iterator[Counter[str]]:
    """Count opens of the files in these folders, by name; the counter is filled at the end.

    The kernel merges equal events that follow each other unread. So closes are watched too, which
    stand between two opens, and a thread reads events as they come.
    """
    opened: Counter[str] = Counter()
    watch = _LIBC.inotify_init1(os.O_CLOEXEC)
    assert watch >= 0, os.strerror(ctypes.get_errno())
    for folder in folders:
        found = _LIBC.inotify_add_watch(watch, os.fsencode(folder), _OPEN | _CLOSE)
        assert found >= 0, f"{folder}: {os.strerror(ctypes.get_errno())}"
    stop_read, stop_write = os.pipe()

    def read() -> None:
        while True:
            ready, _, _ = select.select([watch, stop_read], [], [])
            if watch not in ready:
                return
            _count(os.read(watch, 1 << 16), opened)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield opened
    finally:
        os.write(stop_write, b".")
        reader.join()
        for each in (watch, stop_read, stop_write):
            os.close(each)


def _count(events: bytes, opened: Counter[str]) -> None:
    start = 0
    while start < len(events):
        _, mask, _, length = _HEADER.unpack_from(events, start)
        start += _HEADER.size
        name = events[start : start + length].rstrip(b"\0").decode()
        start += length
        if mask & _OPEN and not mask & _FOLDER and name:
            opened[name] += 1
