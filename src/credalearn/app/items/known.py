"""Items of a run among other items: known again by what they hold, whatever they are called."""

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

import polars as pl

from credalearn.app.items.inputs import IMAGE_SUFFIXES
from credalearn.app.items.names import UPLOAD
from credalearn.app.run import Run

# More items than this with the features of another, and a new item may have them by chance too.
_EQUAL_ROWS = 0.01


def known_items(run: Run, splits: Sequence[str]) -> "KnownItems":
    """The items of these splits of a run.

    Raises:
        CredalError: If ``items.parquet`` cannot be read.
    """
    return KnownItems(run.items, splits, images=run.takes_images)


class KnownItems:
    """Items of a run, known again by what they hold.

    Where many of the run's items have the features of another, equal features tell little: there
    name and features must both be the same.

    Args:
        table: The run's ``items.parquet``.
        splits: Those whose items are to be known.
        images: Whether the items are images: equal images are the same item.

    Attributes:
        alike: Whether features alone tell little.

    Example:
        >>> table = pl.DataFrame({"item": ["a", "b", "c"], "digest": ["1", "2", "3"]})
        >>> known = KnownItems(table.with_columns(split=pl.lit("train")), ["train"], images=True)
        >>> known.among(["x", "b"], ["1", "9"])
        [True, False]
    """

    def __init__(self, table: pl.DataFrame, splits: Sequence[str], *, images: bool) -> None:
        equal = int(table["digest"].is_duplicated().sum())
        self.alike = not images and equal > _EQUAL_ROWS * len(table)
        told = table.filter(pl.col("split").is_in(splits))
        rows = told.select("item", "digest") if self.alike else told.select("digest")
        self._told = set(rows.iter_rows())

    def among(self, items: Iterable[str], digests: Iterable[str]) -> list[bool]:
        """Which of other items are among them."""
        return [
            ((name, digest) if self.alike else (digest,)) in self._told
            for name, digest in zip(items, digests, strict=True)
        ]


def other_content(run: Run, items: Iterable[str], digests: Iterable[str]) -> list[str]:
    """Those of other items that have the name of one of the run and hold something else.

    Images are found by what their path ends in, and so have such a name too.

    Raises:
        CredalError: If ``items.parquet`` cannot be read.
    """
    images = run.takes_images
    held: dict[str, set[str]] = {}
    rows = run.items
    if not run.facts.recalibrated_from:  # those that its weights had seen have no votes here
        rows = rows.filter(pl.col(f"n:{run.classes[0]}").is_not_null())
    for name, digest in rows.select("item", "digest").iter_rows():
        for each in endings(name) if images else (name,):
            held.setdefault(each, set()).add(digest)
    return [
        name
        for name, digest in zip(items, digests, strict=True)
        if digest not in held.get(endings(name)[0] if images else name, {digest})
    ]


def endings(name: str) -> list[str]:
    """The path of an image without its suffix, and what it ends in, the file's name last.

    Example:
        >>> endings("/data/local-files/?d=a/1.png"), endings("3/1a2b3c4d-1.PNG")
        (['a/1', '1'], ['3/1a2b3c4d-1', '1a2b3c4d-1', '1'])
    """
    address, _, query = name.replace("\\", "/").partition("?")
    path = unquote(next((p[2:] for p in query.split("&") if p.startswith("d=")), address))
    end = next((end for end in IMAGE_SUFFIXES if path.lower().endswith(end)), "")
    parts = path[: len(path) - len(end)].split("/")
    upload = [UPLOAD.sub("", parts[-1])] if UPLOAD.match(parts[-1]) else []
    return ["/".join(parts[start:]) for start in range(len(parts))] + upload
