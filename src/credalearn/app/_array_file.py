"""Arrays in npy and npz files, refused where a small file would fill the memory."""

import os
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from credalearn.errors import CredalError

_LARGE = 1 << 29  # bytes that any file may unpack to; beyond, at most _RATIO times its size
_RATIO = 100  # features that compress better are mostly zeros


def is_npz(file: BinaryIO) -> bool:
    """Whether a ZIP file contains arrays alone."""
    try:
        return all(name.endswith(".npy") for name in zipfile.ZipFile(file).namelist())
    except zipfile.BadZipFile:
        return False


def read_arrays(path: Path, file: BinaryIO) -> dict[str, np.ndarray]:
    """The arrays of a file by name, one without a name from a .npy file."""
    unpacked = 0
    with suppress(Exception):  # damaged files raise ten kinds; reading them says which
        unpacked = sum(each.file_size for each in zipfile.ZipFile(file).infolist())
    check_unpacked(path, file, unpacked, fix="save it with numpy.savez, uncompressed")
    file.seek(0)
    try:
        loaded = np.load(file, allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except Exception as error:  # damaged files raise ten kinds, from TokenError to zlib.error
        raise CredalError(
            f"{path} cannot be read as an array: {error}. To fix: write it again with numpy.save "
            "or numpy.savez."
        ) from error


def check_unpacked(path: Path, file: BinaryIO, unpacked: int, *, fix: str) -> None:
    """Refuse a small file that would fill the memory."""
    packed = file.seek(0, os.SEEK_END)
    if unpacked > max(_LARGE, _RATIO * packed):
        raise CredalError(
            f"{path} has {packed:,} bytes and unpacks to {unpacked:,}, more than {_RATIO} times as "
            f"many. To fix: check where it comes from, or {fix}."
        )
