"""A table in text; see ``credalearn.app.sources``."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from credalearn.app.sources import open_source

CHARACTERS = 1 << 22


class TextTable:
    """A table in text."""

    def __init__(
        self, path: Path, *, encoding: str | None = None, delimiter: str | None = None
    ) -> None:
        self._source = open_source(path, encoding=encoding, delimiter=delimiter)
        self.columns = list(self._source.columns)
        self.separator = "," if self._source.words.startswith("comma") else ";"

    def blocks(self, characters: int) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """All rows."""
        return self._source.blocks()

    def line_of(self, row: int) -> int:
        """The line of a row."""
        return int(self._source.place(row).split()[-1])

    def holds(self, sign: str) -> bool:
        """Whether a sign is in any cell."""
        return any(
            each.select(pl.any_horizontal(pl.all().str.contains(sign, literal=True)).any()).item()
            for each in self._source.blocks()
        )
