"""A run made beside the place where it will be, and put there when it is whole.

``RUN`` is made in ``.RUN.partial``. Killed, it is found there again; an older run stays as it is
until the new one is done.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
from safetensors import SafetensorError

from credalearn._files import NotWrittenError, not_written
from credalearn.app.run.card_file import CARD, is_card
from credalearn.errors import CredalError

# What stands in a run's folder; run.json last, since with it the run is there.
FILES = ("annotations.parquet", "items.parquet", "predictions.parquet", "run.json")
MODEL = "model"
# Made by other commands, wrong of another model. A rule by capacity promises nothing.
_RULE_AND_SETS = {"rule.json": "a rule", "sets.json": "certified sets"}
ABOUT_THE_MODEL = (*_RULE_AND_SETS, "report.html")
CHECKPOINTS = "resume*.safetensors"


def partial_of(output: Path) -> Path:
    """Where an unfinished run is.

    Example:
        >>> partial_of(Path("runs/first")).as_posix()
        'runs/.first.partial'
    """
    whole = output if output.name else output.resolve()
    return whole.with_name(f".{whole.name}.partial")


def check_place(output: Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no run can be, before anything is read.

    Args:
        output: The place.
        overwrite: Whether the rule and the sets of a run there may be lost.

    Raises:
        CredalError: If it is a file, a folder of other things, a run that has a rule or sets, or
            may not be written to.

    Example:
        >>> import tempfile
        >>> check_place(Path(tempfile.mkdtemp()) / "run")
    """
    if output.exists() and not output.is_dir():
        raise CredalError(
            f"{output} is a file where the folder of the run should be. To fix: name another "
            "folder with --output."
        )
    known = {*FILES, *ABOUT_THE_MODEL, MODEL}
    if output.is_dir():
        held = sorted(path.name for path in output.iterdir())
        if held and not known & set(held):
            raise CredalError(
                f"{output} is a folder of other things, such as {held[0]!r}. To fix: name a new "
                "folder with --output."
            )
        if not overwrite:
            _refuse_rule_or_sets(output)
    above = next(path for path in partial_of(output).absolute().parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "may not be written to" if above.is_dir() else "is no folder"
        raise CredalError(
            f"the run cannot be written to {output}: {above} {what}. To fix: name another folder "
            "with --output."
        )


def _refuse_rule_or_sets(output: Path) -> None:
    held = [what for name, what in _RULE_AND_SETS.items() if (output / name).exists()]
    # Without run.json it is what a kill left of a run that was being replaced.
    if held and (output / "run.json").exists():
        raise CredalError(
            f"{output} holds {' and '.join(held)}, which a new run would replace. To fix: name "
            "another folder with -o, or give --overwrite."
        )


@contextmanager
def staged(output: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to make a run in; it takes the place of ``output`` if the block ends without error.

    What the block leaves unfinished stays for the next time if it holds a checkpoint, and is
    removed if it does not.

    Args:
        output: Where the run is to be.
        overwrite: Whether the rule and the sets of a run there may be lost.

    Raises:
        CredalError: If something cannot be written, or the run that is there has a rule or sets.

    Example:
        >>> import tempfile
        >>> output = Path(tempfile.mkdtemp()) / "run"
        >>> with staged(output) as folder:
        ...     _ = (folder / "run.json").write_text("{}")
        >>> [path.name for path in output.parent.iterdir()], [p.name for p in output.iterdir()]
        (['run'], ['run.json'])
    """
    check_place(output, overwrite=overwrite)
    folder = partial_of(output)
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        if not overwrite:
            _refuse_rule_or_sets(output)  # once more: training takes hours
        _put(folder, output)
    except BaseException as error:
        if not any(folder.glob(CHECKPOINTS)):
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                for path in new[1:]:
                    path.rmdir()
        cause = error.__cause__ if isinstance(error, NotWrittenError) else error
        # A full disk: the weights' writer and polars have errors of their own for it.
        if isinstance(cause, OSError | SafetensorError | pl.exceptions.PolarsError):
            raise not_written(output, cause, other="name another folder with --output") from error
        raise


def _put(folder: Path, output: Path) -> None:
    """Move a whole run to its place, over an older one if there is one."""
    if not output.exists():
        folder.replace(output)
    else:
        # From here to the end there is no run; killed in between, the next call ends it at once,
        # as the last checkpoint is of a training that is done.
        for name in ("run.json", *ABOUT_THE_MODEL):
            (output / name).unlink(missing_ok=True)
        if is_card(output / MODEL / CARD):
            (output / MODEL / CARD).unlink()
        for path in (folder / MODEL).glob("*"):
            (output / MODEL).mkdir(exist_ok=True)
            path.replace(output / MODEL / path.name)
        for name in FILES:
            if (folder / name).exists():
                (folder / name).replace(output / name)
        shutil.rmtree(folder)
    for pattern in (CHECKPOINTS, f".{CHECKPOINTS}.partial"):  # the second: killed in writing it
        for leftover in output.glob(pattern):
            leftover.unlink()
