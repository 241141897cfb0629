"""A run is made next to the place where it will be, and moved there when it is whole.

``RUN`` is made in ``.RUN.partial``; ``run.json`` is written last. An older run stays as it is until
then, and waits in ``.RUN.old`` during the move. Killed at any moment, there is the old run or the
new one, and the same command resumes from the last checkpoint.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from credalearn._files import NotWrittenError, not_written, writing
from credalearn.errors import CredalError

MODEL = "model"
CHECKPOINTS = "resume*.safetensors"
_LOCK = ".lock"
_OTHER = "choose another folder with --output"
# What the commands write into a run's folder; a new run replaces all of it.
FILES = ("run.json", "annotations.parquet", "items.parquet", "predictions.parquet")
_CERTIFIED = {"guarantee.json": "a guarantee", "sets.json": "certified sets"}
OWN = {*FILES, *_CERTIFIED, MODEL, "report.html", "MODEL_CARD.md", "requests.json", "drift.json"}


def partial_of(output: Path) -> Path:
    """Where an unfinished run is: ``runs/.first.partial`` for ``runs/first``."""
    return _sibling(output, "partial")


def check_place(output: Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no run can be, before anything is read."""
    if output.exists() and not output.is_dir():
        raise CredalError(
            f"{output} is a file, not a folder. To fix: choose another folder with --output."
        )
    if output.is_dir():
        content = sorted(path.name for path in output.iterdir())
        if content and not OWN & set(content):
            raise CredalError(
                f"{output} contains other files, such as {content[0]!r}. To fix: choose a new "
                "folder with --output."
            )
        certified = [what for name, what in _CERTIFIED.items() if name in content]
        if certified and not overwrite:
            raise CredalError(
                f"{output} contains {' and '.join(certified)}, which a new run would replace. To "
                "fix: choose another folder with -o, or pass --overwrite."
            )
    above = next(path for path in partial_of(output).absolute().parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "is not writable" if above.is_dir() else "is not a folder"
        raise CredalError(
            f"the run cannot be written to {output}: {above} {what}. To fix: choose another "
            "folder with --output."
        )


@contextmanager
def staged(output: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to make a run in; it takes the place of ``output`` if the block ends without error.

    What the block leaves unfinished stays for the next time if it has a checkpoint.
    """
    recover(output)
    check_place(output, overwrite=overwrite)
    folder = partial_of(output)
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(output, other=_OTHER):
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder, output)
    try:
        (folder / "run.json").unlink(missing_ok=True)  # what is there is not whole from here on
        yield folder
        check_place(output, overwrite=overwrite)  # once more: training may take hours
        if output.exists() and (folder / "run.json").exists():
            output.rename(_sibling(output, "old"))
        recover(output)
    except BaseException as error:
        if folder.exists() and not any(folder.glob(CHECKPOINTS)):
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                for path in new[1:]:
                    path.rmdir()
        cause = error.__cause__ if isinstance(error, NotWrittenError) else error
        # On a full disk safetensors and polars raise errors of their own.
        if isinstance(cause, OSError | SafetensorError | pl.exceptions.PolarsError):
            raise not_written(output, cause, other=_OTHER) from error
        raise
    finally:
        lock.release()


def recover(output: Path) -> None:
    """Finish a move that was interrupted: the new run into its place, then files of the user's."""
    partial, old = partial_of(output), _sibling(output, "old")
    if not output.exists() and (partial / "run.json").exists():
        partial.rename(output)
    # The second: killed in writing it.
    for pattern in (CHECKPOINTS, f".{CHECKPOINTS}.partial", _LOCK):
        for leftover in output.glob(pattern):
            leftover.unlink()
    if output.exists() and old.exists():
        for path in old.iterdir():
            if path.name not in OWN and not (output / path.name).exists():
                path.rename(output / path.name)
        shutil.rmtree(old)


def _locked(folder: Path, output: Path) -> FileLock:
    """A lock on the folder, which ends with the process: one at a time makes a run."""
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise CredalError(
            f"another process is writing {output}. To fix: wait for it, or {_OTHER}."
        ) from error
    return lock


def _sibling(output: Path, what: str) -> Path:
    whole = output if output.name else output.resolve()
    return whole.with_name(f".{whole.name}.{what}")
