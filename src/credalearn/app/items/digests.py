"""What an item holds, as a digest: by it an item is known again, whatever it is called.

Shapes: N items, D features.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from credalearn._files import sha256_of
from credalearn.app.annotations.places import shown
from credalearn.errors import CredalError

# The column of a stream's digests, called as no column of the user's is.
DIGEST = "sha256 of the input"


def image_digest(file: Path) -> str:
    """Of an image: SHA-256 of the file's bytes.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "x.png"
        >>> _ = file.write_bytes(b"")
        >>> image_digest(file)[:8]
        'e3b0c442'
    """
    return sha256_of(file)


def row_digests(values: np.ndarray) -> list[str]:
    """Of rows of features (N, D): SHA-256 of each in float32, which text and Parquet keep alike.

    Example:
        >>> one, other = row_digests(np.array([[0.1, 0.0], [np.float32(0.1), -0.0]]))
        >>> one == other
        True
    """
    with np.errstate(over="ignore"):  # a feature beyond float32 is infinite here
        rows = np.ascontiguousarray(values, dtype="<f4") + np.float32(0)  # −0 is 0
    return [hashlib.sha256(row).hexdigest() for row in rows]


def refuse_equal_images(
    path: Path, items: Sequence[str], digests: Sequence[str], split: Sequence[str]
) -> None:
    """Refuse images that are in two splits under two names.

    Args:
        path: Where the items are named.
        items: Their names.
        digests: Of their images.
        split: Name of each item's split.

    Raises:
        CredalError: With the first two such items.

    Example:
        >>> refuse_equal_images(Path("v.csv"), ["a", "b"], ["1", "1"], ["train", "train"])
    """
    first: dict[str, int] = {}
    pairs = [
        (first[digest], row)
        for row, digest in enumerate(digests)
        if split[first.setdefault(digest, row)] != split[row]
    ]
    if pairs:
        one, other = pairs[0]
        pair = " and ".join(f"{shown(items[row])} ({split[row]})" for row in (other, one))
        raise CredalError(
            f"{len(pairs):,} items of {path} have the same image as an item of another split, such "
            f"as {pair}: what is learned of one would be tested on the other. To fix: put equal "
            "images into one split and one group, or leave one of them out."
        )
