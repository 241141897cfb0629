"""A run is made next to the place where it will be, and moved there when it is whole.

``RUN`` is made in ``.RUN.partial``; ``run.json`` is written last. An older run stays as it is until
then, and waits in ``.RUN.old`` during the move. Killed at any moment, there is the old run or the
new one, and the same command resumes. A process that changes a folder holds ``.lock`` in it.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import polars as pl
from safetensors import SafetensorError

from credalearn._files import LOCK, FolderLock, NotWrittenError, not_written, sweep, writing
from credalearn.errors import CredalError

MODEL = "model"
CHECKPOINTS = "resume*.safetensors"
_OTHER = "choose another folder"
_PATIENCE = 5.0  # seconds; only training keeps a folder for longer, and nobody waits for that
_ATTEMPTS = 100  # to lock a folder that other processes make and move at the same time
# What the commands write into a run's folder; a new run replaces all of it.
_CERTIFIED = {"guarantee.json": "a guarantee", "sets.json": "certified sets"}
OWN = {
    *("run.json", "annotations.parquet", "items.parquet", "predictions.parquet", MODEL),
    *(*_CERTIFIED, "requests.json", "drift.json", "report.html", "MODEL_CARD.md"),
}


def check_place(output: Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no run can be, before anything is read."""
    if output.exists() and not output.is_dir():
        raise CredalError(f"{output} is a file, not a folder. To fix: {_OTHER}.")
    if output.is_dir():
        content = sorted(path.name for path in output.iterdir() if path.name != LOCK)
        if content and not OWN & set(content):
            raise CredalError(
                f"{output} contains other files, such as {content[0]!r}. To fix: choose a new "
                "folder."
            )
        certified = [what for name, what in _CERTIFIED.items() if name in content]
        if certified and not overwrite:
            raise CredalError(
                f"{output} contains {' and '.join(certified)}, which a new run would replace. To "
                "fix: choose another folder, or pass overwrite=True."
            )


def locked(folder: Path, run: Path, *, wait: float | None = None) -> FolderLock:
    """The lock of a folder of a run; an error if another process keeps it."""
    try:
        return FolderLock(folder, wait=_PATIENCE if wait is None else wait)
    except BlockingIOError as error:
        raise CredalError(
            f"{run} is busy: another process is writing it. To fix: wait for it, or {_OTHER}."
        ) from error


@contextmanager
def staged(output: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to make a run in, which takes the place of ``output`` at the end of the block."""
    output = _followed(output)
    recover(output)
    check_place(output, overwrite=overwrite)
    folder = sibling(output, "partial")
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(output, other=_OTHER):
        for _ in range(_ATTEMPTS):
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has moved the folder meanwhile
                lock = locked(folder, output)
                break
        else:
            raise CredalError(f"{output} is busy. To fix: {_OTHER}.")
    with lock:
        try:
            (folder / "run.json").unlink(missing_ok=True)  # what is there is not whole from here on
            sweep(folder)
            yield folder
            if (folder / "run.json").exists():
                _replace(lock, output, overwrite=overwrite)
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


def recover(output: Path) -> None:
    """Finish a move that was interrupted: the new run into its place, then files of the user's."""
    output = _followed(output)
    partial = sibling(output, "partial")
    if not output.exists() and (partial / "run.json").exists():
        with (
            writing(output),
            suppress(FileNotFoundError),  # another process has moved it meanwhile
            locked(partial, output) as lock,
        ):
            if not output.exists() and (partial / "run.json").exists():
                lock.move(output)
    # What a killed process left in the run or next to it.
    if output.is_dir() and (
        sibling(output, "old").exists()
        or (output / LOCK).exists()
        or any(output.glob(CHECKPOINTS))
        or any(output.rglob(".credalearn-*"))
    ):
        # Who may only read leaves it as it is, and so does who comes while another process works.
        with suppress(OSError, CredalError), locked(output, output, wait=0):
            _clean(output)


def _replace(lock: FolderLock, output: Path, *, overwrite: bool) -> None:
    """Move the locked folder to ``output``; what was there is replaced."""
    with ExitStack() as stack:
        if output.exists():
            old = stack.enter_context(locked(output, output))
            check_place(output, overwrite=overwrite)  # once more: training may take hours
            old.move(sibling(output, "old"))
        try:
            lock.move(output)
        except OSError:
            if not output.exists() and sibling(output, "old").exists():
                sibling(output, "old").rename(output)
            raise
    _clean(output)


def _clean(output: Path) -> None:
    """Remove what the making of a run left; files of the user's stay. The folder is locked."""
    old = sibling(output, "old")
    for leftover in output.glob(CHECKPOINTS):
        leftover.unlink()
    for folder in (output, output / MODEL):
        sweep(folder)
    if old.exists():
        for path in old.iterdir():
            if path.name not in {*OWN, LOCK} and not (output / path.name).exists():
                path.rename(output / path.name)
        shutil.rmtree(old)


def _followed(output: Path) -> Path:
    """The folder that a link names, so that the link is not replaced."""
    return output.resolve() if output.is_symlink() else output


def sibling(output: Path, what: str) -> Path:
    """What is made next to a run: ``runs/.first.partial`` for ``runs/first``."""
    whole = _followed(output) if output.name else output.resolve()
    return whole.with_name(f".{whole.name}.{what}")
