"""Files are whole when several processes write, errors name a remedy, tensors stay the same."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from credalearn._files import NotWrittenError, check_file, not_written, whole_file
from credalearn._tensors import read_tensors, write_tensors


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free some space, or name"),
        (OSError("No space left on device (os error 28)"), "free some space, or name"),
        (OSError(errno.EACCES, "Permission denied"), "get permission to write there, or name"),
        (ValueError("something else."), "name"),
    ],
)
def test_error_names_a_matching_remedy(error: Exception, fix: str) -> None:
    found = str(not_written(Path("d.csv"), error, other="name another file"))
    why = getattr(error, "strerror", None) or str(error).rstrip(".")
    assert found == f"d.csv cannot be written: {why}. To fix: {fix} another file."


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


# Each file is one byte repeated, so that a torn or mixed one shows.
WRITER = """
import sys
from pathlib import Path
from credalearn._files import whole_file
path, byte, times = Path(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
for _ in range(times):
    with whole_file(path) as partial:
        partial.write_bytes(byte * 300_000)
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from credalearn._files import whole_file
with whole_file(Path(sys.argv[1])) as partial:
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)])


def test_concurrent_writers_leave_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"0" * 300_000)
    writers = [start(WRITER, path, byte, 200) for byte in "123"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        content = path.read_bytes()
        assert len(content) == 300_000
        assert content == content[:1] * 300_000
        seen.add(content[:1])
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(seen) > 1
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert start(KILLED, path).wait() == -signal.SIGKILL
    assert len(list(tmp_path.glob(".credalearn-*/file"))) == 1
    with whole_file(path) as partial:
        partial.write_text("first")
        with whole_file(tmp_path / "b.txt") as other:  # must not sweep the one being written
            other.write_text("second")
        assert list(tmp_path.glob(".credalearn-*/file")) == [partial]
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "a.txt": "first",
        "b.txt": "second",
    }


def test_long_names_and_links_are_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/target")
    for path in (tmp_path / f"{'n' * 246}.csv", tmp_path / "link"):
        with whole_file(path) as partial:
            partial.write_text("content")
        assert path.read_text() == "content"
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["target"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder", "it is a folder"),
        ("pipe", "it is not a regular file"),
        ("loop", "Too many levels of symbolic links"),
        ("out", "it is a link out of .*run"),
    ],
)
def test_rejects_what_cannot_be_replaced(name: str, why: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "folder").mkdir()
    os.mkfifo(run / "pipe")
    (run / "loop").symlink_to("loop")
    (run / "out").symlink_to("../outside")
    said = rf"{name} cannot be written: {why}\. To fix: name another file\.$"
    with pytest.raises(NotWrittenError, match=said), whole_file(run / name, within=run):
        pytest.fail("the work was done")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_every_memory_order_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.safetensors"
    rows = torch.arange(24.0).reshape(4, 6)
    images = torch.arange(48).reshape(2, 2, 3, 4)
    tensors = {
        "transposed": rows.T,
        "every second": rows[:, ::2],
        "one row for all": rows[:1].expand(3, 6),
        "channels last": images.to(memory_format=torch.channels_last),
        "shared": rows,
        "a number": torch.tensor(True),
        "learned": nn.Parameter(rows),
    }
    write_tensors(path, tensors, metadata={"by": "us"})
    found, metadata = read_tensors(path, fix="write it again")
    assert metadata == {"by": "us"}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].dtype == tensor.dtype
    write_tensors(path, {"x": rows})
    assert read_tensors(path, fix="write it again")[1] == {}
    assert [each.name for each in path.parent.iterdir()] == [path.name]
