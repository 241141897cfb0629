"""The files of CIFAR-10 and CIFAR-100, in the authors' python and binary layouts.

Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009. Each file is looked for
in both layouts and verified before it is read: by its md5 (python), its sha1 (CIFAR-10 binary) or
its exact size and its number of images of each class (CIFAR-100 binary, of which we know no
digest).

Shapes: N images of a file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn.errors import CredalError
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.pickled import read_pickled
from credalearn_experiments.data.reading import naming, read_verified, refuse

Bytes = NDArray[np.uint8]

_PIXELS = 3 * 32 * 32
_AT = "https://www.cs.toronto.edu/~kriz"
# Images of every fine class in the files of which we know no digest.
_OF_EACH_CLASS = {"cifar-100-binary/train.bin": 500, "cifar-100-binary/test.bin": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class CifarLayout:
    """How one of the two data sets is laid out.

    Args:
        name: As people call it.
        python: Folder of the python layout.
        binary: Folder of the binary layout.
        archives: The archives to unpack, python and binary.
        num_classes: K.
        label_key: The key of the labels in a python file.
        label_bytes: Labels that stand before each image in a binary file; the last one counts.
    """

    name: str
    python: str
    binary: str
    archives: tuple[str, str]
    num_classes: int
    label_key: bytes
    label_bytes: int

    @property
    def get(self) -> str:
        """How to get the files."""
        python, binary = (f"{_AT}/{archive}" for archive in self.archives)
        return f"unpack {python} or {binary} in the data folder"


CIFAR10 = CifarLayout(
    name="CIFAR-10",
    python="cifar-10-batches-py",
    binary="cifar-10-batches-bin",
    archives=("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"),
    num_classes=10,
    label_key=b"labels",
    label_bytes=1,
)
CIFAR100 = CifarLayout(
    name="CIFAR-100",
    python="cifar-100-python",
    binary="cifar-100-binary",
    archives=("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
    num_classes=100,
    label_key=b"fine_labels",
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
        _check_labels(layout, labels)
    _check_counts(layout, path, labels)
    images = torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy())
    return images, torch.from_numpy(labels.astype(np.int64))


def cifar100_classes(folders: DataFolders) -> tuple[str, ...]:
    """CIFAR-100's fine class names where a file tells them, else ``class 0`` to ``class 99``.

    Raises:
        CredalError: If that file is damaged, or holds another number of names.
    """
    path = folders.look(f"{CIFAR100.python}/meta", f"{CIFAR100.binary}/fine_label_names.txt")
    if path is None:
        return tuple(f"class {number}" for number in range(CIFAR100.num_classes))
    plain = path.suffix == ".txt"
    content = b"" if plain else read_verified(path, get=CIFAR100.get)
    with naming(path, "the class names of CIFAR-100", get=CIFAR100.get):
        if plain:
            names = path.read_text(encoding="utf-8").split()  # one a line, without spaces
        else:
            named = _by_bytes(read_pickled(content))[b"fine_label_names"]
            names = [name.decode() if isinstance(name, bytes) else name for name in named]
        if len(set(names)) != CIFAR100.num_classes:
            raise CredalError(f"100 different names are wanted; it holds {len(set(names))}")
    return tuple(names)


def _from_binary(layout: CifarLayout, content: bytes) -> tuple[Bytes, Bytes]:
    record = layout.label_bytes + _PIXELS
    if not content or len(content) % record:
        raise CredalError(f"records of {record} bytes must fill the file; it has {len(content)}")
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return rows[:, layout.label_bytes :], rows[:, layout.label_bytes - 1]


def _from_python(layout: CifarLayout, content: bytes) -> tuple[Bytes, Bytes]:
    table = _by_bytes(read_pickled(content))
    pixels = table[b"data"]
    labels = np.array(table[layout.label_key])
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise CredalError(
            f"labels must be whole numbers, one an image; they are {labels.dtype} of shape "
            f"{labels.shape}"
        )
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS) or not len(labels):
        raise CredalError(
            f"data must be uint8 with {_PIXELS} pixels for each of {len(labels)} labels; "
            f"it is {pixels.dtype} of shape {pixels.shape}"
        )
    return pixels, labels


def _check_labels(layout: CifarLayout, labels: Bytes) -> None:
    wrong = np.flatnonzero((labels < 0) | (labels >= layout.num_classes))
    if len(wrong):
        row = int(wrong[0])
        raise CredalError(
            f"labels go from 0 to {layout.num_classes - 1}; image {row} has {labels[row]}"
        )


def _check_counts(layout: CifarLayout, path: Path, labels: Bytes) -> None:
    """Else any file of the right size would pass; one of another size was named already."""
    official = _OF_EACH_CLASS.get(f"{path.parent.name}/{path.name}")
    if official is None or len(labels) != official * layout.num_classes:
        return
    counts = np.bincount(labels, minlength=layout.num_classes)
    wrong = np.flatnonzero(counts != official)
    if len(wrong):
        difference = f"class {wrong[0]} has {counts[wrong[0]]} images, not {official}"
        refuse(path, difference, get=layout.get)


def _by_bytes(table: dict[bytes | str, Any]) -> dict[bytes, Any]:
    """Python 2 wrote keys as bytes; a file written again by Python 3 has text."""
    return {key.encode() if isinstance(key, str) else key: each for key, each in table.items()}
