"""Bytes of data files: verified against what is known of the official ones, damage named."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from credalearn.errors import CredalError

UNVERIFIED_VARIABLE = "CREDALEARN_UNVERIFIED"

# What is known of each official file, by its folder and name. The authors published no digest of
# CIFAR-100's binary files that we could check: there, the exact size is what is verified here, and
# by their reader the number of images of each class. Those of CIFAR-10H are of the files as we got
# them.
DIGESTS = {
    "cifar-10-batches-py/data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
    "cifar-10-batches-py/data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
    "cifar-10-batches-py/data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
    "cifar-10-batches-py/data_batch_4": "md5:634d18415352ddfa80567beed471001a",
    "cifar-10-batches-py/data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar-10-batches-py/test_batch": "md5:40351d587109b95175f43aff81a1287e",
    "cifar-10-batches-bin/data_batch_1.bin": "sha1:aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "cifar-10-batches-bin/data_batch_2.bin": "sha1:c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "cifar-10-batches-bin/data_batch_3.bin": "sha1:1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "cifar-10-batches-bin/data_batch_4.bin": "sha1:aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "cifar-10-batches-bin/data_batch_5.bin": "sha1:26e2849e66a845b7f1e4614ae70f4889ae604628",
    "cifar-10-batches-bin/test_batch.bin": "sha1:67eb016db431130d61cd03c7ad570b013799c88c",
    "cifar-100-python/train": "md5:16019d7e3df5f24257cddd939b257f8d",
    "cifar-100-python/test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
    "cifar-100-python/meta": "md5:7973b15100ade9c7d40fb424638fde48",
    "cifar-100-binary/train.bin": "size in bytes:153700000",  # 50,000 records of 3,074
    "cifar-100-binary/test.bin": "size in bytes:30740000",
    "cifar10h/cifar10h-counts.npy": (
        "sha256:9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff"
    ),
    "cifar10h/cifar10h-probs.npy": (
        "sha256:436ae98620e00073f9d08585ac870573b588853e7af9f54eb1647408114af77d"
    ),
}


def unverified() -> bool:
    """Whether the user reads files of their own in an official layout.

    The environment variable ``CREDALEARN_UNVERIFIED=1`` says so. Digests and official numbers of
    items are then not demanded (a line on standard error names each file that fails them); that
    the files are whole and fit each other still is.

    Example:
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, {"CREDALEARN_UNVERIFIED": "1"}):
        ...     unverified()
        True
    """
    return os.environ.get(UNVERIFIED_VARIABLE) == "1"


def read_verified(path: Path, *, get: str) -> bytes:
    """The bytes of a file of ``DIGESTS``, hashed as they were read.

    Args:
        path: The file; its folder's name and its own are the key.
        get: How to get it anew, for the message.

    Raises:
        CredalError: If it cannot be read, or is not the official file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "cifar-100-binary" / "test.bin"
        >>> path.parent.mkdir()
        >>> _ = path.write_bytes(b"too short")
        >>> try:
        ...     read_verified(path, get="unpack the archive again")
        ... except CredalError as error:
        ...     print(str(error).split("; ")[1])
        its size in bytes is 9, not 30740000. To fix: unpack the archive again, or set
        CREDALEARN_UNVERIFIED=1 for files of your own in the same layout.
    """
    with naming(path, "a file", get=get):
        content = path.read_bytes()
    kind, official = DIGESTS[f"{path.parent.name}/{path.name}"].split(":")
    got = str(len(content)) if kind == "size in bytes" else _digest(kind, content)
    if got != official:
        refuse(path, f"its {kind} is {got}, not {official}", get=get)
    return content


def refuse(path: Path, difference: str, *, get: str) -> None:
    """Say that a file is not the official one: as an error, or as a line where that is allowed."""
    if unverified():
        print(
            f"credalearn: {path} is not the official file ({difference}); "
            f"read all the same, as {UNVERIFIED_VARIABLE}=1 asks",
            file=sys.stderr,
        )
        return
    raise CredalError(
        f"{path} is damaged or not the official file; {difference}. To fix: {get}, or set "
        f"{UNVERIFIED_VARIABLE}=1 for files of your own in the same layout."
    )


@contextmanager
def naming(path: Path, what: str, *, get: str) -> Iterator[None]:
    """Turn whatever a reader raises over a damaged file into one error that names the file.

    Readers of foreign formats raise what they like over broken bytes (``zlib.error``,
    ``struct.error``, ``IndexError``, …), so that no shorter list than ``Exception`` is complete.

    Example:
        >>> try:
        ...     with naming(Path("a.json"), "JSON", get="write it again"):
        ...         raise KeyError("votes")
        ... except CredalError as error:
        ...     print(error)
        a.json could not be read as JSON (KeyError: 'votes'). To fix: write it again.
    """
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, CredalError) else f"{type(error).__name__}: "
        raise CredalError(
            f"{path} could not be read as {what} ({kind}{error}). To fix: {get}."
        ) from error


def _digest(kind: str, content: bytes) -> str:
    # Against damage, not against forgers: most of the published digests are md5 and sha1.
    return hashlib.new(kind, content, usedforsecurity=False).hexdigest()
