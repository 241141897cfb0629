"""Files that are written whole or not at all."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from credalearn.errors import CredalError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends without error.

    A reader sees the old file or the new one, never a part: the bytes reach the disk before the
    rename does. The temporary name is fixed, so that what a killed process left is overwritten.

    Raises:
        OSError: If it cannot be written, as on a full disk, also where safetensors wrote it.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with whole_file(folder / "note.txt") as partial:
        ...     _ = partial.write_text("done")
        >>> [each.name for each in folder.iterdir()]
        ['note.txt']
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch()
    mode = partial.stat().st_mode  # what the user's umask gives; some writers make files private
    try:
        yield partial
        partial.chmod(mode)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, SafetensorError):  # its own error for a full disk
            raise OSError(str(error)) from error
        raise


@contextmanager
def writing(path: Path, *, other: str = "name another file") -> Iterator[None]:
    """Turn what writing raises into one message that names the file and the remedy.

    Args:
        path: What is written.
        other: What a user can do whatever the reason is.

    Raises:
        CredalError: In place of an OSError.

    Example:
        >>> with writing(Path("notes.csv")):
        ...     raise OSError(errno.ENOSPC, "No space left on device")
        Traceback (most recent call last):
        credalearn.errors.CredalError: notes.csv cannot be written: No space left on device. To fix:
        free some space, or name another file.
    """
    try:
        yield
    except OSError as error:
        raise not_written(path, error, other=other) from error


def not_written(path: Path, error: Exception, *, other: str) -> CredalError:
    """The error to raise where a path cannot be written; see :func:`writing`.

    Example:
        >>> denied = OSError("Permission denied (os error 13)")  # as polars and safetensors say it
        >>> print(not_written(Path("notes.csv"), denied, other="name another file"))
        notes.csv cannot be written: Permission denied (os error 13). To fix: get the right to write
        there, or name another file.
    """
    number = getattr(error, "errno", None)
    if number is None and (found := re.search(r"os error (\d+)", str(error))):
        number = int(found[1])
    fix = "free some space, or " if number in _FULL else ""
    fix = "get the right to write there, or " if number in _FORBIDDEN else fix
    why = str(getattr(error, "strerror", None) or error).strip().rstrip(".")
    return CredalError(f"{path} cannot be written: {why}. To fix: {fix}{other}.")
