"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends without error.

    A reader sees the old file or the new one, never a part: the bytes reach the disk before the
    rename does. The temporary name is fixed, so that what a killed process left is overwritten.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with whole_file(folder / "note.txt") as partial:
        ...     _ = partial.write_text("done")
        >>> [each.name for each in folder.iterdir()]
        ['note.txt']
    """
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
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
