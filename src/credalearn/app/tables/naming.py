"""What goes wrong with a table's file, in one message that names it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import polars as pl

from credalearn._checks import nearest
from credalearn.errors import CredalError

FIX = "give CSV, TSV, Parquet, npy or npz with a row an item"
_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")
_LOOKED_AT = 10_000  # files of a folder: comparing the name with a million would take 6 s


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what files and polars raise into one message that names the file.

    Example:
        >>> with naming(Path("absent/items.csv")):
        ...     Path("absent/items.csv").stat()
        Traceback (most recent call last):
        credalearn.errors.CredalError: there is no file absent/items.csv. To fix: look at the path:
        there is no folder absent.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CredalError(f"there is no file {path}. To fix: {_found(path)}.") from error
    except OSError as error:
        raise CredalError(f"{path} cannot be read: {error.strerror or error}.") from error
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise CredalError(f"{path} cannot be read as a table: {first}. To fix: {FIX}.") from error
    except pl.exceptions.PanicException as error:  # on damaged Parquet; no Exception but its base
        raise CredalError(f"{path} is damaged. To fix: write it again.") from error


def _found(path: Path) -> str:
    """What to do about a file that is not there, by what is."""
    folder = path.parent
    if not folder.is_dir():
        return f"look at the path: there is no folder {folder}"
    names: list[str] = []
    with suppress(OSError):  # of a folder that may not be looked into
        names = [each.name for each in islice(folder.iterdir(), _LOOKED_AT)]
    tables = sorted(name for name in names if name.lower().endswith(_SUFFIXES))
    # The suffix was left out, or is another: features.csv, for features or features.npz.
    same = (name for stem in (path.name, path.stem) for name in tables if Path(name).stem == stem)
    near = next(same, None) or nearest(path.name, names)
    return f"look for it in {folder.absolute()}" if near is None else f"name {folder / near}"
