"""Writing that fails: the message's remedy fits the reason."""

import errno
from pathlib import Path

import pytest

from credalearn._files import (
    NotWrittenError,
    check_file,
    not_written,
    whole_file,
)


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free some space, or name"),
        (OSError("No space left on device (os error 28)"), "free some space, or name"),
        (OSError(errno.EACCES, "Permission denied"), "get permission to write there, or name"),
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
