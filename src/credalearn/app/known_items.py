"""Items of a run among other items, recognized by their inputs, whatever their names."""

from collections.abc import Iterable, Sequence

import polars as pl

from credalearn.app.run import Run

# With more equal rows than this, a new item may have the features of another by chance.
_EQUAL_ROWS = 0.01


class KnownItems:
    """Items of some splits of a run, recognized by the digest of their input.

    Where many items of the run have the features of another, an equal digest says little: there
    the names must be equal, too (``by_name``).
    """

    def __init__(self, run: Run, splits: Sequence[str]) -> None:
        equal = int(run.items["digest"].is_duplicated().sum())
        self.by_name = not run.takes_images and equal > _EQUAL_ROWS * len(run.items)
        known = run.items.filter(pl.col("split").is_in(splits))
        self._known = set(known.select("item", "digest").iter_rows())
        if not self.by_name:
            self._known = {("", digest) for _, digest in self._known}

    def among(self, items: Iterable[str], digests: Iterable[str]) -> list[bool]:
        """Which of these items are known."""
        return [
            (name if self.by_name else "", digest) in self._known
            for name, digest in zip(items, digests, strict=True)
        ]
