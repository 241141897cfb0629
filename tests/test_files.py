"""Writing that fails: the message's remedy fits the reason."""

import errno
from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn.files import not_written, whole_file, writing


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free some space, or name"),
        (OSError(errno.EFBIG, "File too large"), "free some space, or name"),
        (OSError("No space left on device (os error 28)"), "free some space, or name"),
        (OSError(errno.EACCES, "Permission denied"), "get the right to write there, or name"),
        (OSError(errno.EROFS, "Read-only file system"), "get the right to write there, or name"),
        (OSError(errno.ENOTDIR, "Not a directory"), "name"),
        (ValueError("something else."), "name"),
    ],
)
def test_the_remedy_fits_the_reason(error: Exception, fix: str) -> None:
    found = str(not_written(Path("d.csv"), error, other="name another file"))
    why = getattr(error, "strerror", None) or str(error).rstrip(".")
    assert found == f"d.csv cannot be written: {why}. To fix: {fix} another file."


def test_only_errors_of_files_are_named() -> None:
    said = r"^d.csv cannot be written: is a folder. To fix: name another file.$"
    with pytest.raises(CredalError, match=said), writing(Path("d.csv")):
        raise OSError(errno.EISDIR, "is a folder")
    with pytest.raises(KeyError), writing(Path("d.csv")):
        raise KeyError("x")


def test_a_folder_without_a_name_is_no_file() -> None:
    path = Path()
    said = r"^\. cannot be written: Is a directory. To fix: name another file.$"
    with pytest.raises(CredalError, match=said), writing(path), whole_file(path):
        pass
