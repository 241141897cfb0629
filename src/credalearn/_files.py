"""Files that are written whole or not at all, and digests of files."""

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from filelock import lock_descriptor
from safetensors import SafetensorError

from credalearn.errors import CredalError

_OWN = ".credalearn-"  # how the names of folders of unfinished files begin
LOCK = ".lock"
_ATTEMPTS = 100  # to lock a new folder: each fails if another process sweeps at that moment
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or "),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "get permission to write there, or "),
}


class NotWrittenError(CredalError):
    """A file cannot be written; the error that it is raised from says why."""


@contextmanager
def whole_file(
    path: Path, *, other: str | None = "name another file", within: Path | None = None
) -> Iterator[Path]:
    """A temporary path that replaces ``path`` when the block ends without error."""
    # A link is followed, but not out of ``within``. Without ``other``, the remedy in errors, the
    # OSError is passed on.
    with nullcontext() if other is None else writing(path, other=other):
        target = _target(path, within)
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        with _new_folder(target.parent) as lock:
            partial = lock.folder / "file"
            try:
                partial.touch()
                mode = partial.stat().st_mode  # as the umask gives; some writers make files private
                yield partial
                partial.chmod(mode)
                with partial.open("rb+") as file:
                    os.fsync(file.fileno())
                partial.replace(target)
            except SafetensorError as error:  # its own error for a full disk
                raise OSError(str(error)) from error
            finally:
                shutil.rmtree(lock.folder, ignore_errors=True)
        sync_folder(target.parent)


def sweep(folder: Path) -> None:
    """Remove what killed processes left of unfinished files; those being written are locked."""
    for left in folder.glob(f"{_OWN}*"):
        with suppress(OSError), FolderLock(left):
            shutil.rmtree(left, ignore_errors=True)


class FolderLock:
    """A lock file in a folder: one process at a time holds it, at most until that process ends."""

    def __init__(self, folder: Path, *, wait: float = 0.0) -> None:
        self.folder, end = folder, time.monotonic() + wait
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        while True:
            self._file = os.open(folder / LOCK, flags, 0o666)
            if lock_descriptor(self._file, blocking=False) and os.fstat(self._file).st_nlink:
                return
            os.close(self._file)  # held by another process, or removed by it meanwhile
            if time.monotonic() >= end:
                raise BlockingIOError(errno.EAGAIN, "another process is writing it", str(folder))
            time.sleep(0.02)

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_: object) -> None:
        # Removed while it is held: a process that waits for it then starts over with a new file. If
        # the folder was removed, another process may have made it again, with a lock of its own.
        with suppress(OSError):
            if (self.folder / LOCK).stat().st_ino == os.fstat(self._file).st_ino:
                (self.folder / LOCK).unlink()
        os.close(self._file)

    def move(self, target: Path) -> None:
        """Rename the folder; the lock is still held."""
        self.folder.rename(target)
        self.folder = target
        sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    if hasattr(os, "O_DIRECTORY"):  # Windows cannot
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _new_folder(parent: Path) -> FolderLock:
    """A new folder that no other process has, locked so that none sweeps it."""
    for _ in range(_ATTEMPTS):
        folder = Path(mkdtemp(prefix=_OWN, dir=parent))
        with suppress(FileNotFoundError, BlockingIOError):  # swept before it was locked
            return FolderLock(folder)
    raise OSError(errno.EBUSY, "other processes keep its folder busy", str(parent))


def _target(path: Path, within: Path | None = None) -> Path:
    """The file that ``path`` names or links to: a regular one, or none yet."""
    with suppress(FileNotFoundError):  # which a link may lead to, but not to itself
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            what = "it is a folder" if stat.S_ISDIR(kind) else "it is not a regular file"
            raise OSError(errno.EISDIR, what, str(path))
    target = Path(os.path.realpath(path))
    if within is not None and not target.is_relative_to(os.path.realpath(within)):
        raise OSError(errno.EXDEV, f"it is a link out of {within}", str(path))
    return target


def check_file(
    path: str | Path, suffixes: Collection[str], *, other: str = "name another file"
) -> Path:
    """The path, if it has one of these suffixes and a file could be written there."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        better = path.parent / f"{path.stem or 'output'}{next(iter(suffixes))}"
        ends = f"{'one of ' * (len(suffixes) > 1)}{', '.join(suffixes)}"
        raise CredalError(f"the output must end in {ends}; got {path}. To fix: name it {better}.")
    with writing(path, other=other):
        target = _target(path)
        above = next(folder for folder in target.parents if folder.exists())
        with TemporaryFile(dir=above):
            pass
    return path


@contextmanager
def writing(path: Path, *, other: str = "name another file") -> Iterator[None]:
    """Turn an OSError into one message that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error, other=other) from error


def not_written(path: Path, error: Exception, *, other: str) -> NotWrittenError:
    """The error to raise where a path cannot be written."""
    number: Any = getattr(error, "errno", None)
    if number is None and (found := re.search(r"os error (\d+)", str(error))):
        number = int(found[1])  # as polars and safetensors report it
    why = str(getattr(error, "strerror", None) or error).strip().rstrip(".")
    return NotWrittenError(
        f"{path} cannot be written: {why}. To fix: {_REMEDIES.get(number or 0, '')}{other}."
    )


def digest_of_json(content: dict[str, Any]) -> str:
    """SHA-256 of plain content, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, read a part at a time."""
    if not path.is_file():  # a pipe would never open
        raise CredalError(f"{path} is not a regular file. To fix: check the path.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
