"""What ``kill -9`` leaves: from the n-th change to a folder on, no change happens any more."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHANGES = {"os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class KilledError(BaseException):
    """Not an Exception, so that nothing handles it."""


class _Limit:
    """The folder that is watched, and how many changes are left; None counts without limit."""

    folder = ""
    left: int | None = None
    seen = 0


def changes(folder: Path, action: Callable[[], object]) -> int:
    """The number of changes that an action makes below a folder."""
    _watch(folder, action, None)
    return _Limit.seen


def kill_at(number: int, folder: Path, action: Callable[[], object]) -> None:
    """Stop an action before this change; what it does to clean up changes nothing either."""
    try:
        _watch(folder, action, number)
    except KilledError:
        return
    raise AssertionError(f"there is no change {number}")


def _watch(folder: Path, action: Callable[[], object], left: int | None) -> None:
    _Limit.folder, _Limit.left, _Limit.seen = str(folder), left, 0
    try:
        action()
    finally:
        _Limit.folder = ""


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if not _Limit.folder or not (event in _CHANGES or event == "open"):
        return
    if event == "open" and not (isinstance(given[2], int) and given[2] & _WRITES):
        return
    name = os.fsdecode(given[0]) if isinstance(given[0], str | bytes | Path) else ""
    inside = name.startswith(_Limit.folder) or given[-1] not in (-1, None)  # by a folder's number
    if event == "open":
        inside = name.startswith(_Limit.folder)
    if inside:
        _Limit.seen += 1
        if _Limit.left is not None and _Limit.seen > _Limit.left:
            raise KilledError(f"{event} {name}")


sys.addaudithook(_hook)
