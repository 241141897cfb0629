"""Files that are written whole or not at all, and digests of files."""

import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from safetensors import SafetensorError

from credalearn.errors import CredalError

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or "),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "get permission to write there, or "),
}


class NotWrittenError(CredalError):
    """A file cannot be written; the error that it is raised from says why."""


@contextmanager
def whole_file(path: Path, *, other: str | None = "name another file") -> Iterator[Path]:
    """A temporary path next to ``path`` that replaces it when the block ends without error.

    The bytes reach the disk before the rename, and the temporary name is fixed, so what a killed
    process left is overwritten. ``other`` is the remedy in errors; None passes the OSError on.
    """
    with nullcontext() if other is None else writing(path, other=other):
        _refuse_folder(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.unlink(missing_ok=True)
        partial.touch()
        mode = partial.stat().st_mode  # what the umask gives; some writers make files private
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
    """The path, if it has one of these suffixes and a file could be written there."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        better = path.parent / f"{path.stem or 'output'}{next(iter(suffixes))}"
        ends = f"{'one of ' * (len(suffixes) > 1)}{', '.join(suffixes)}"
        raise CredalError(f"the output must end in {ends}; got {path}. To fix: name it {better}.")
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


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, read a part at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
