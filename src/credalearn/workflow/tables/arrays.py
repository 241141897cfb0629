"""Arrays of numpy, a block of rows at a time: npy, and npz whose members may be compressed.

Shapes: N items, D features.
"""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from credalearn.errors import CredalError

NUMBERS = 1 << 20  # at a time: 8 MB
ITEM_ARRAYS = ("items", "item", "ids", "id")


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """The one array of features in an npy or npz file, and the items' names where it has them.

    Args:
        path: The file.
        member: Its name in the npz; None for npy.
        shape: (N, D).
        names: Name of the array of item names; None: items are called by their row, 0, 1, ….

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.npz"
        >>> np.savez(path, features=np.eye(3), items=["a", "b", "c"])
        >>> array = open_array(path)
        >>> array.shape, [block.shape for block in array.blocks()], array.items()
        ((3, 3), [(3, 3)], ['a', 'b', 'c'])
    """

    path: Path
    member: str | None
    shape: tuple[int, int]
    names: str | None = None

    def blocks(self) -> Iterator[np.ndarray]:
        """The rows in order, float64."""
        rows = max(1, NUMBERS // max(1, self.shape[1]))
        with _reading(self.path), _opened(self.path, self.member) as file:
            _, fortran, dtype = _header(file)
            if fortran:  # by column: its rows are all over the file
                whole = np.load(self.path, allow_pickle=False)
                whole = whole if self.member is None else whole[self.member]
                for start in range(0, len(whole), rows):
                    yield whole[start : start + rows].astype(np.float64)
                return
            left = self.shape[0]
            while left:
                wanted = min(rows, left)
                size = wanted * self.shape[1] * dtype.itemsize
                content = file.read(size)
                if len(content) < size:
                    raise ValueError(f"it ends {left:,} rows too early")
                block = np.frombuffer(content, dtype).reshape(wanted, self.shape[1])
                yield block.astype(np.float64)
                left -= wanted

    def items(self) -> list[str] | None:
        """Names of the items, where there are any."""
        if self.names is None:
            return None
        with _reading(self.path), np.load(self.path, allow_pickle=False) as arrays:
            items = [str(name) for name in arrays[self.names]]
        if len(items) != self.shape[0]:
            raise CredalError(f"{self.path} names {len(items)} items for {self.shape[0]} rows.")
        return items


def open_array(path: Path) -> ArrayFile:
    """Find the features in an npy or npz file, from the headers alone.

    Raises:
        CredalError: If there is not one array of numbers of shape (N, D).

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.npy"
        >>> np.save(path, np.zeros((4, 2)))
        >>> open_array(path).shape
        (4, 2)
    """
    with _reading(path):
        members: list[str | None] = [None]
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = [name.removesuffix(".npy") for name in archive.namelist()]
        found = {}
        for member in members:
            with _opened(path, member) as file:
                found[member] = _header(file)
    tables = [member for member, (shape, _, _) in found.items() if len(shape) == 2]
    if len(tables) != 1:
        held = ", ".join(f"{member or 'one'} of {shape}" for member, (shape, *_) in found.items())
        raise CredalError(
            f"{path} must hold one array of shape (items, features); it has {held}. To fix: save "
            "the features alone, with the names of the items as 'items'."
        )
    (num_items, num_features), _, dtype = found[tables[0]]
    if dtype.kind not in "biuf":
        raise CredalError(f"features must be numbers; {path} holds {dtype}.")
    if not num_items:
        raise CredalError(f"{path} holds no row.")
    names = next((name for name in ITEM_ARRAYS if name in found), None)
    return ArrayFile(path, tables[0], (num_items, num_features), names)


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is None:
        with path.open("rb") as file:
            yield file
    else:
        with zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
            yield file


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether by column, and dtype; the file then stands at the first number."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    return shape, fortran, dtype


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise CredalError(f"there is no file {path}.") from error
    except CredalError:
        raise
    except Exception as error:  # damaged, they raise ten kinds, from TokenError to zlib.error
        raise CredalError(
            f"{path} cannot be read as an array: {error}. To fix: write it again with numpy.save "
            "or numpy.savez."
        ) from error
