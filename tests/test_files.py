"""Writing that fails: the message's remedy fits the reason."""

import errno
import hashlib
import re
from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn._files import (
    NotWrittenError,
    check_file,
    not_written,
    sha256_of,
    whole_file,
)


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free some space, or name"),
        (OSError(errno.EFBIG, "File too large"), "free some space, or name"),
        (OSError("No space left on device (os error 28)"), "free some space, or name"),
        (OSError(errno.EACCES, "Permission denied"), "get permission to write there, or name"),
        (OSError(errno.EROFS, "Read-only file system"), "get permission to write there, or name"),
        (OSError(errno.ENOTDIR, "Not a directory"), "name"),
        (ValueError("something else."), "name"),
    ],
)
def test_the_remedy_fits_the_reason(error: Exception, fix: str) -> None:
    found = str(not_written(Path("d.csv"), error, other="name another file"))
    why = getattr(error, "strerror", None) or str(error).rstrip(".")
    assert found == f"d.csv cannot be written: {why}. To fix: {fix} another file."


def test_rejects_folders_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match="it is a folder"), whole_file(tmp_path):
        pytest.fail("the work was done")
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_file_unless_the_caller_reports_them(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    said = "d.csv cannot be written: No space left on device. To fix: free some space, or go away."
    with pytest.raises(NotWrittenError, match=said), whole_file(path, other="go away"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space") as found, whole_file(path, other=None):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not isinstance(found.value, CredalError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "fix"), [("a.txt", "a.csv"), ("a", "a.csv"), (".", "output.csv"), ("a.b.c", "a.b.csv")]
)
def test_rejects_other_suffixes(name: str, fix: str) -> None:
    said = re.escape(f"must end in one of .csv, .tsv; got {name}. To fix: name it {fix}.")
    with pytest.raises(CredalError, match=said):
        check_file(name, (".csv", ".tsv"))


def test_checking_a_path_writes_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "a.csv", tmp_path / "new" / "folder" / "a.CSV"):
        assert check_file(path, (".csv",)) == path
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.csv").mkdir()
    (tmp_path / "file").touch()
    for wrong, why in (
        (tmp_path / "a.csv", "it is a folder"),
        (tmp_path / "file" / "new" / "a.csv", "Not a directory"),
        (Path("/proc/x/a.csv"), "No such file"),
    ):
        said = rf"^{wrong} cannot be written: {why}.*\. To fix: name another file\.$"
        with pytest.raises(NotWrittenError, match=said):
            check_file(wrong, (".csv",))


def test_the_digest_is_that_of_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "long"
    content = bytes(range(256)) * 5000
    path.write_bytes(content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()
