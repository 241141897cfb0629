"""Arrays of numpy, a block of rows at a time: npy, and npz whose members may be compressed.

Shapes: N items, D features.
"""

import shlex
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.lib import format as npy

from credalearn._checks import nearest
from credalearn.app.annotations.columns import ITEM, find
from credalearn.app.tables.naming import naming
from credalearn.errors import CredalError

NUMBERS = 1 << 20  # at a time: 8 MB
ITEM_ARRAYS = ("items", "item", "ids", "id")
_Headers = dict[str | None, tuple[tuple[int, ...], bool, np.dtype]]  # by name; npy has one, None


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """The one array of features in an npy or npz file, and the items' names where it has them.

    Args:
        path: The file.
        member: Its name in the npz; None for npy.
        shape: (N, D).
        names: Name of the array of item names; None: items are called by their row, 0, 1, ….
        columns: Names of all arrays with one text or number a row.

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
    columns: tuple[str, ...] = ()

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
        return None if self.names is None else [name or "" for name in self.column(self.names)]

    def column(self, name: str) -> list[str | None]:
        """The values of one of ``columns`` as text; None for NaN."""
        with _reading(self.path), np.load(self.path, allow_pickle=False) as arrays:
            values = arrays[name]
            if values.dtype.kind == "S":  # str() of them is "b'x'"
                values = np.char.decode(values, "utf-8")
        return [None if value != value else str(value) for value in values]


def is_array(path: Path) -> bool:
    """Whether a file is an array of numpy, by its suffix.

    Example:
        >>> is_array(Path("items.NPZ")), is_array(Path("items.csv"))
        (True, False)
    """
    return path.suffix.lower() in (".npy", ".npz")


def array_columns(path: Path) -> list[str]:
    """Names of the arrays of one dimension in an npz file; npy has none.

    Raises:
        CredalError: If the file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.npz"
        >>> np.savez(path, features=np.eye(2), site=["x", "y"])
        >>> array_columns(path)
        ['site']
    """
    return [name for name, (shape, *_) in _headers(path).items() if name and len(shape) == 1]


def open_array(path: Path, *, item: str | None = None, beside: Sequence[str] = ()) -> ArrayFile:
    """Find the features in an npy or npz file and what names the items, from the headers alone.

    Args:
        path: The file.
        item: Array of an npz file that names the items; else one that is called like it.
        beside: Other arrays that are wanted, such as a group: these name no items.

    Raises:
        CredalError: If there is not one array of numbers of shape (N, D), an array that is wanted
            is not there, or one that nobody spoke of may name the items.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.npy"
        >>> np.save(path, np.zeros((4, 2)))
        >>> open_array(path).shape
        (4, 2)
    """
    found = _headers(path)
    tables = [member for member, (shape, _, _) in found.items() if len(shape) == 2]
    if len(tables) != 1:
        raise CredalError(
            f"{path} must hold one array of shape (items, features); it has {_held(found)}. To "
            "fix: save the features alone, with the names of the items as 'items'."
        )
    (num_items, num_features), _, dtype = found[tables[0]]
    if dtype.kind not in "biuf":
        raise CredalError(
            f"features must be numbers; {path} holds {dtype}. To fix: save them as float64."
        )
    if not num_items:
        raise CredalError(f"{path} holds no row. To fix: add the items.")
    columns = [
        name
        for name, (shape, _, dtype) in found.items()
        if name is not None and shape == (num_items,) and dtype.kind != "O"
    ]
    for name in (item, *beside):
        if name is not None and name not in columns:
            _refuse_column(path, name, found, num_items)
    names = item or _item_array(path, found, num_items, beside)
    return ArrayFile(path, tables[0], (num_items, num_features), names, tuple(columns))


def _item_array(path: Path, found: _Headers, num_items: int, beside: Sequence[str]) -> str | None:
    """The array that is called like the items' names; None where no array can be theirs."""
    shapes = {name: shape for name, (shape, *_) in found.items() if name and name not in beside}
    perhaps = [name for name, shape in shapes.items() if shape == (num_items,)]
    single = [name for name, shape in shapes.items() if len(shape) == 1]
    named = find(single, ITEM_ARRAYS) or find(perhaps, ITEM)
    if named is not None:
        if named not in perhaps or found[named][2].kind == "O":
            _refuse_column(path, named, found, num_items)
        return named
    if perhaps:  # passed over, the rows would be taken for other items than they are
        which = " or ".join(f"--item {shlex.quote(name)}" for name in perhaps)
        raise CredalError(
            f"{path} does not say what names its items; it has {_held(found)}. To fix: say "
            f"{which} if that names them, or what else it is (--gold, --group, --split, --drop); "
            "or save the features alone if the items are called 0, 1, …."
        )
    return None


def _refuse_column(path: Path, name: str, found: _Headers, num_items: int) -> NoReturn:
    """Say why an array is no column."""
    if None in found:
        raise CredalError(
            f"{path} has no columns with names, and so no {name!r}. To fix: give an npz file or a "
            "table that has it, or leave the option out."
        )
    near = nearest(name, [each for each in found if each])
    fix = f"did you mean {near!r}?" if near else "name an array that is there."
    if name in found:
        text = found[name][2].kind == "O"
        fix = "save it as text, with .astype(str)." if text else "one value a row."
    raise CredalError(
        f"{path} has no array {name!r} with a text or number for each of its {num_items:,} rows; "
        f"it has {_held(found)}. To fix: {fix}"
    )


def _held(found: _Headers) -> str:
    """What a file holds, as a message names it."""
    return ", ".join(
        f"{name or 'one'} of {shape}{' objects' if dtype.kind == 'O' else ''}"
        for name, (shape, _, dtype) in found.items()
    )


def _headers(path: Path) -> _Headers:
    with _reading(path):
        members: list[str | None] = [None]
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = [name.removesuffix(".npy") for name in archive.namelist()]
        found = {}
        for member in members:
            with _opened(path, member) as file:
                found[member] = _header(file)
        return found


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
        with naming(path):
            yield
    except CredalError:
        raise
    except Exception as error:  # damaged, they raise ten kinds, from TokenError to zlib.error
        raise CredalError(
            f"{path} cannot be read as an array: {error}. To fix: write it again with numpy.save "
            "or numpy.savez."
        ) from error
