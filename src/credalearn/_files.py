"""Files that are written whole or not at all, and known again by their digest."""

import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryFile

from safetensors import SafetensorError

from credalearn.errors import CredalError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class NotWrittenError(CredalError):
    """A file cannot be written; the error that it is raised from says why."""


@contextmanager
def whole_file(path: Path, *, other: str | None = "name another file") -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends without error.

    A reader sees the old file or the new one, never a part: the bytes reach the disk before the
    rename does. The temporary name is fixed, so that what a killed process left is overwritten.

    Args:
        path: What is written.
        other: What a user can do whatever the reason is; None leaves the OSError, for a caller who
            tells of more than this file.

    Raises:
        NotWrittenError: If it cannot be written, as on a full disk, also where safetensors wrote
            it.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with whole_file(folder / "note.txt") as partial:
        ...     _ = partial.write_text("done")
        >>> [each.name for each in folder.iterdir()]
        ['note.txt']
    """
    told = nullcontext() if other is None else writing(path, other=other)
    with told, _replacing(path) as partial:
        yield partial


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    _refuse_folder(path)
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


def check_file(
    path: str | Path, suffixes: Collection[str], *, other: str = "name another file"
) -> Path:
    """The path, if its suffix is one of these and a file can be written there.

    Asked before the work that fills the file; nothing is written.

    Args:
        path: Where a user wants it.
        suffixes: Such as ``.csv``; capital letters are as good.
        other: What a user can do if no file can be written there.

    Raises:
        CredalError: If its name ends otherwise.
        NotWrittenError: If no file can be written there, as in a folder of somebody else.

    Example:
        >>> check_file("decisions.CSV", (".csv", ".parquet")).name
        'decisions.CSV'
        >>> check_file("model.bin", (".onnx",))
        Traceback (most recent call last):
        credalearn.errors.CredalError: the name of the output must end in .onnx; got model.bin. To
        fix: name it model.onnx.
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        ends = f"{'one of ' * (len(suffixes) > 1)}{', '.join(suffixes)}"
        better = path.parent / f"{path.stem or 'output'}{next(iter(suffixes))}"
        raise CredalError(
            f"the name of the output must end in {ends}; got {path}. To fix: name it {better}."
        )
    with writing(path, other=other):
        _refuse_folder(path)
        above = next(folder for folder in path.absolute().parents if folder.exists())
        with TemporaryFile(dir=above):
            pass
    return path


def _refuse_folder(path: Path) -> None:
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))


@contextmanager
def writing(path: Path, *, other: str = "name another file") -> Iterator[None]:
    """Turn what writing raises into one message that names the file and the remedy.

    Args:
        path: What is written.
        other: What a user can do whatever the reason is.

    Raises:
        NotWrittenError: In place of an OSError.

    Example:
        >>> with writing(Path("notes.csv")):
        ...     raise OSError(errno.ENOSPC, "No space left on device")
        Traceback (most recent call last):
        credalearn._files.NotWrittenError: notes.csv cannot be written: No space left on device. To
        fix: free some space, or name another file.
    """
    try:
        yield
    except OSError as error:
        raise not_written(path, error, other=other) from error


def not_written(path: Path, error: Exception, *, other: str) -> NotWrittenError:
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
    return NotWrittenError(f"{path} cannot be written: {why}. To fix: {fix}{other}.")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, read a part at a time.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "empty"
        >>> path.touch()
        >>> sha256_of(path)[:8]
        'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
