"""The files of CIFAR-10 and CIFAR-100, in the authors' python and binary layouts.

Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009. Each file is looked for
in both layouts and compared with its digest before it is read.

Shapes: N images of a file.
"""

import io
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.files import naming, read_verified
from credalearn_experiments.data.folders import DataFolders

_PIXELS = 3 * 32 * 32
_AT = "https://www.cs.toronto.edu/~kriz"
_ALLOWED = {
    *(("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")),
    *(("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CifarLayout:
    """Layout of one of the two data sets.

    Args:
        name: Name of the data set.
        stem: Start of the folders and archives of both layouts.
        python: Folder of the python layout.
        binary: Folder of the binary layout.
        num_classes: K.
        label_key: Key of the labels in a python file.
        label_bytes: Labels before each image in a binary file; the last one counts.
    """

    name: str
    stem: str
    python: str
    binary: str
    num_classes: int
    label_key: str
    label_bytes: int

    @property
    def get(self) -> str:
        """How to get the files."""
        archives = (f"{_AT}/{self.stem}-{kind}.tar.gz" for kind in ("python", "binary"))
        return f"unpack {' or '.join(archives)} in the data folder"


CIFAR10 = CifarLayout(
    name="CIFAR-10",
    stem="cifar-10",
    python="cifar-10-batches-py",
    binary="cifar-10-batches-bin",
    num_classes=10,
    label_key="labels",
    label_bytes=1,
)
CIFAR100 = CifarLayout(
    name="CIFAR-100",
    stem="cifar-100",
    python="cifar-100-python",
    binary="cifar-100-binary",
    num_classes=100,
    label_key="fine_labels",
    label_bytes=2,
)


def read_batch(layout: CifarLayout, name: str, folders: DataFolders) -> tuple[Tensor, Tensor]:
    """Images (uint8, shape (N, 3, 32, 32)) and labels (int64, shape (N,)) of one file.

    Args:
        layout: ``CIFAR10`` or ``CIFAR100``.
        name: ``data_batch_1`` to ``data_batch_5`` or ``test_batch``; ``train`` or ``test``.
        folders: Where to look.

    Raises:
        CredalError: If the file is missing, damaged or not the official one.
    """
    path = folders.find(
        f"{layout.python}/{name}",
        f"{layout.binary}/{name}.bin",
        what=f"{layout.name}'s {name}",
        get=layout.get,
    )
    content = read_verified(path, get=layout.get)
    with naming(path, f"a batch of {layout.name}", get=layout.get):
        read = _from_binary if path.suffix == ".bin" else _from_python
        pixels, labels = read(layout, content)
        if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS) or not len(labels):
            raise CredalError(f"{len(labels)} labels, {pixels.dtype} pixels of {pixels.shape}")
        if labels.min() < 0 or labels.max() >= layout.num_classes:
            raise CredalError(f"labels must be 0 to {layout.num_classes - 1}")
    images = torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy())
    return images, torch.from_numpy(labels.astype(np.int64))


def cifar100_classes(folders: DataFolders) -> tuple[str, ...]:
    """CIFAR-100's fine class names from its file, or ``class 0`` to ``class 99`` without one."""
    path = folders.look(f"{CIFAR100.python}/meta", f"{CIFAR100.binary}/fine_label_names.txt")
    if path is None:
        return tuple(f"class {number}" for number in range(CIFAR100.num_classes))
    with naming(path, "the class names of CIFAR-100", get=CIFAR100.get):
        if path.suffix == ".txt":
            names = path.read_text(encoding="utf-8").split()
        else:
            names = _unpickle(read_verified(path, get=CIFAR100.get))["fine_label_names"]
        if len(set(names)) != CIFAR100.num_classes:
            raise CredalError(f"it has {len(set(names))} names instead of 100")
    return tuple(names)


def _from_binary(layout: CifarLayout, content: bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    rows = np.frombuffer(content, np.uint8).reshape(-1, layout.label_bytes + _PIXELS)
    return rows[:, layout.label_bytes :], rows[:, layout.label_bytes - 1]


def _from_python(layout: CifarLayout, content: bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    table = _unpickle(content)
    return np.asarray(table["data"]), np.array(table[layout.label_key])


class _ArraysOnly(pickle.Unpickler):
    """Refuses to call anything but what builds NumPy arrays, so that a file cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise CredalError(f"it names {module}.{name}, which may run code")
        return super().find_class(module, name)


def _unpickle(content: bytes) -> dict[str, Any]:
    """A file of Python 2, whose texts are bytes, read as Latin-1 so that arrays survive."""
    table: dict[str, Any] = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    return table
