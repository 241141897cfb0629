"""Whether a name comes twice in a stream, in memory that does not grow with it."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl

AT_ONCE = 1 << 18  # hashes looked at together: 2 MB


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
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed on exit
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # the temporary folder may be full too
            self._file.close()

    def add(self, names: pl.Series) -> None:
        """Remember these names."""
        self._file.write(_hashed(names).tobytes())
        self._count += len(names)

    def suspects(self) -> np.ndarray:
        """The hashes that came more than once."""
        parts = -(-self._count // AT_ONCE)
        found = [_repeated(self._part(part, parts)) for part in range(parts)]
        return np.concatenate(found) if found else np.empty(0, np.uint64)

    def _part(self, part: int, parts: int) -> np.ndarray:
        """The hashes that fall into one of ``parts`` classes: equal ones fall into the same."""
        self._file.seek(0)
        kept = []
        while content := self._file.read(8 * AT_ONCE):
            hashes = np.frombuffer(content, np.uint64)
            kept.append(hashes if parts == 1 else hashes[hashes % np.uint64(parts) == part])
        return np.concatenate(kept)


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


def _repeated(hashes: np.ndarray) -> np.ndarray:
    ordered = np.sort(hashes)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
