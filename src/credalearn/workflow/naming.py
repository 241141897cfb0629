"""What goes wrong with a table's file, in one message that names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from credalearn.errors import CredalError

FIX = "give CSV, TSV, Parquet, npy or npz with a row an item"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what files and polars raise into one message that names the file.

    Example:
        >>> with naming(Path("items.csv")):
        ...     Path("no such file").stat()
        Traceback (most recent call last):
        credalearn.errors.CredalError: there is no file items.csv.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CredalError(f"there is no file {path}.") from error
    except OSError as error:
        raise CredalError(f"{path} cannot be read: {error.strerror or error}.") from error
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise CredalError(f"{path} cannot be read as a table: {first}. To fix: {FIX}.") from error
    except pl.exceptions.PanicException as error:  # on damaged Parquet; no Exception but its base
        raise CredalError(f"{path} is damaged. To fix: write it again.") from error
