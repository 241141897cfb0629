"""Whether a name comes twice in a stream, in a sixty-fourth of the memory of its hashes."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

import numpy as np
import polars as pl

_FILES = 64  # of 20 million names each holds 2.5 MB, looked at together
_EDGES = np.arange(1, _FILES, dtype=np.uint64) << np.uint64(58)  # 2^64 / 64 between them


class Twice:
    """Remembers 8 bytes a name on disk, and looks for equal ones at the end.

    Equal hashes need not be equal names; :func:`first_twice` tells by the names themselves.

    Example:
        >>> with Twice() as names:
        ...     names.add(pl.Series(["a", "b"]))
        ...     names.add(pl.Series(["c", "a"]))
        ...     first_twice(iter([pl.Series(["a", "b"]), pl.Series(["c", "a"])]), names.suspects())
        ('a', 0, 3)
    """

    def __init__(self) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(_FILES)]  # noqa: SIM115  # see exit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            with suppress(OSError):  # the temporary folder may be full too
                file.close()

    def add(self, names: pl.Series) -> None:
        """Remember these names; equal ones in the same file."""
        hashes = np.sort(_hashed(names))
        parts = np.split(hashes, np.searchsorted(hashes, _EDGES))
        for file, part in zip(self._files, parts, strict=True):
            file.write(part.tobytes())

    def suspects(self) -> np.ndarray:
        """The hashes that came more than once."""
        return np.concatenate([_repeated(_content(file)) for file in self._files])


def first_twice(names: Iterable[pl.Series], suspects: np.ndarray) -> tuple[str, int, int] | None:
    """The first name that comes a second time, and both its rows from 0; None if none does.

    Args:
        names: All names again, in the order in which they were added.
        suspects: Hashes to look at.
    """
    seen: dict[str, int] = {}
    for row, name in _with(names, suspects):
        first = seen.setdefault(name, row)
        if first != row:
            return name, first, row
    return None


def _with(names: Iterable[pl.Series], suspects: np.ndarray) -> Iterator[tuple[int, str]]:
    start = 0
    for series in names:
        for row in np.flatnonzero(np.isin(_hashed(series), suspects)).tolist():
            yield start + row, series[row]
        start += len(series)


def _hashed(names: pl.Series) -> np.ndarray:
    return names.hash(seed=20261115).to_numpy().astype(np.uint64, copy=False)


def _content(file: IO[bytes]) -> np.ndarray:
    file.seek(0)
    return np.frombuffer(file.read(), np.uint64)


def _repeated(hashes: np.ndarray) -> np.ndarray:
    ordered = np.sort(hashes)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
