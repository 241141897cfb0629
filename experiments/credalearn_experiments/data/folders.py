"""Folders with data files, which the user names; nothing is downloaded."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from credalearn.errors import CredalError

DATA_VARIABLE = "CREDALEARN_DATA"


class MissingDataError(CredalError):
    """A file or folder of data is missing; a damaged one is another error."""


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The folders that contain data sets, in the order in which they are searched."""

    folders: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for folder in self.folders:
            if not folder.is_dir():
                raise CredalError(
                    f"a data folder must exist; {str(folder)!r} does not. To fix: create it, or "
                    f"name another in the variable {DATA_VARIABLE}."
                )

    @classmethod
    def named(cls) -> "DataFolders":
        """The folders of ``CREDALEARN_DATA``; several with ``os.pathsep``."""
        names = os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
        return cls(tuple(Path(name).expanduser().absolute() for name in names if name))

    def find(self, *names: str, what: str, get: str) -> Path:
        """The first of these relative paths that exists in a folder, or a ``MissingDataError``."""
        if not self.folders:
            raise MissingDataError(
                f"{what} cannot be read: no data folder is named. To fix: set the environment "
                f"variable {DATA_VARIABLE}."
            )
        for path in (folder / name for folder in self.folders for name in names):
            if path.exists():
                return path
        wanted, places = " or ".join(names), ", ".join(map(str, self.folders))
        raise MissingDataError(f"{what} is missing: no {wanted} in {places}. To fix: {get}.")


UNVERIFIED_VARIABLE = "CREDALEARN_UNVERIFIED"

# Digests of the official files, by folder and name. We know none of CIFAR-100's binary files:
# there the exact size is checked. Those of CIFAR-10H are of the files as we got them.
DIGESTS = {
    "cifar-10-batches-bin/data_batch_1.bin": "sha1:aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "cifar-10-batches-bin/data_batch_2.bin": "sha1:c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "cifar-10-batches-bin/data_batch_3.bin": "sha1:1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "cifar-10-batches-bin/data_batch_4.bin": "sha1:aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "cifar-10-batches-bin/data_batch_5.bin": "sha1:26e2849e66a845b7f1e4614ae70f4889ae604628",
    "cifar-10-batches-bin/test_batch.bin": "sha1:67eb016db431130d61cd03c7ad570b013799c88c",
    "cifar-100-binary/train.bin": "size in bytes:153700000",  # 50,000 records of 3,074
    "cifar-100-binary/test.bin": "size in bytes:30740000",
    "cifar10h/cifar10h-counts.npy": (
        "sha256:9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff"
    ),
}


def read_verified(path: Path, *, get: str) -> bytes:
    """The bytes of a file of ``DIGESTS``, refused if it is not the official one."""
    with naming(path, "a file", get=get):
        content = path.read_bytes()
    kind, official = DIGESTS[f"{path.parent.name}/{path.name}"].split(":")
    # Against damage, not against forgery: most published digests are md5 and sha1.
    digest = partial(hashlib.new, kind, content, usedforsecurity=False)
    found = str(len(content)) if kind == "size in bytes" else digest().hexdigest()
    if found != official:
        refuse(path, f"its {kind} is {found}, not {official}", get=get)
    return content


def refuse(path: Path, difference: str, *, get: str) -> None:
    """Report that a file is not the official one: an error, or a line if the user allows it."""
    if os.environ.get(UNVERIFIED_VARIABLE) == "1":
        print(f"{path} is not the official file ({difference})", file=sys.stderr)
        return
    raise CredalError(
        f"{path} is damaged or not the official file; {difference}. To fix: {get}, or set "
        f"{UNVERIFIED_VARIABLE}=1 for your own files in the same layout."
    )


@contextmanager
def naming(path: Path, what: str, *, get: str) -> Iterator[None]:
    """Turn any error over a damaged file, whatever its reader raises, into one that names it."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, CredalError) else f"{type(error).__name__}: "
        raise CredalError(
            f"{path} could not be read as {what} ({kind}{error}). To fix: {get}."
        ) from error
