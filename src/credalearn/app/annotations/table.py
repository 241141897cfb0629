"""The canonical table of annotations, checked when it is made and trusted after.

Shapes: N items, K classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from credalearn.app.annotations.places import listed, shown
from credalearn.app.annotations.raw import Kind
from credalearn.errors import CredalError

_COLUMNS = {
    "votes": ("item", "annotator", "label", "weight"),
    "bounds": ("item", "label", "at_least"),
}
_MOST_CELLS = 2**31  # of a table of counts: 16 GB
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Source:
    """Where annotations come from and what the reader did.

    Args:
        path: The file.
        format: The reader's name, as ``read_annotations`` takes it.
        words: What was recognized, in words.
        rows: Rows or answers in the file.
        left_out: Answers that are not votes, by reason: cancelled, skipped, rejected, empty,
            repeated, replaced, several classes. Unsure answers are kept, and counted here too.
        mended: Values changed without loss, by how: spaces trimmed, Unicode normalized.
        first_items: Of several rounds, how many items the first holds: those come first.
        unused: Labels that were called unsure and are nobody's answer.
        merged: Of each later round, what it adds and who may be the same person, in words.
        later: Of several rounds, the files after this one.
        unread: Where no annotator was found, the columns that may name one.
        item: The column or field that names the item, where one does.
        notes: What else the user should know, in words.

    Example:
        >>> Source(Path("votes.csv"), "long", "one row a vote", 3, {"empty": 1}).left_out
        {'empty': 1}
    """

    path: Path
    format: str
    words: str
    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    mended: Mapping[str, int] = field(default_factory=dict)
    first_items: int | None = None
    unused: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    later: tuple[Path, ...] = ()
    unread: tuple[str, ...] = ()
    item: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Names as numbers.

    Args:
        annotators: In the order in which they first appear.
        codes: By column, of each row: which name, from 0; −1 for none.
    """

    annotators: tuple[str, ...]
    codes: Mapping[str, NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    r"""What people said about items.

    Args:
        kind: ``"votes"``, ``"bounds"`` ("at least 70 % cat"), ``"counts"`` or
            ``"probabilities"`` by class.
        items: Names of the N items, in the order in which they first appear.
        classes: Names of the K classes, sorted or as the user gave them.
        table: Votes: ``item``, ``annotator`` (null where unknown), ``label`` (null where unsure)
            and ``weight``. Bounds: ``item``, ``label``, ``at_least``. Counts and probabilities:
            ``item`` and one column of numbers a class. Names are text.
        source: What was read.
        known: Who each row names, if a reader has found it; else it is found here.

    Raises:
        CredalError: If a column is missing, a name unknown, or a number out of its range.

    Example:
        >>> table = pl.DataFrame({"item": ["x", "x"], "annotator": ["ann", "bo"],
        ...                       "label": ["cat", "dog"], "weight": [1.0, 1.0]})
        >>> source = Source(Path("votes.csv"), "long", "one row a vote", 2)
        >>> Annotations("votes", ("x",), ("cat", "dog"), table, source).counts()
        array([[1., 1.]])
    """

    kind: Kind
    items: tuple[str, ...]
    classes: tuple[str, ...]
    table: pl.DataFrame = field(repr=False)
    source: Source
    known: "Known | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        wanted = _COLUMNS.get(self.kind, ("item", *self.classes))
        if tuple(self.table.columns) != wanted:
            held = listed(self.table.columns)
            raise CredalError(f"a table of {self.kind} has the columns {wanted}; got {held}.")
        if self.known is None:
            object.__setattr__(self, "known", self._find())
        if len(self.items) * len(self.classes) > _MOST_CELLS:
            raise CredalError(
                f"{self.source.path}: {len(self.classes):,} classes for {len(self.items):,} items "
                "are too many to count. To fix: give the column of the class, not of free text."
            )
        self._check_numbers()

    @property
    def annotators(self) -> tuple[str, ...]:
        """Names of the annotators, in the order in which they first appear."""
        return self.known.annotators if self.known is not None else ()

    def codes(self, column: str) -> NDArray[np.int64]:
        """Of each row, which item, annotator or label it names, from 0; −1 for none."""
        assert self.known is not None, "found at construction"
        return self.known.codes[column].astype(np.int64)

    def counts(self) -> NDArray[np.float64]:
        """Votes of each item by class, (N, K), each with its weight; an unsure vote adds nothing.

        Of probabilities they are the probabilities, of bounds the stated lower bounds.
        """
        shape = (len(self.items), len(self.classes))
        if self.kind in ("counts", "probabilities"):
            return self.table.drop("item").to_numpy().astype(np.float64, copy=False).reshape(shape)
        label = self.codes("label")
        cell = self.codes("item") * shape[1]
        cell += label
        values = self.table["weight" if self.kind == "votes" else "at_least"].to_numpy()
        if len(label) and label.min() < 0:
            cell, values = cell[label >= 0], values[label >= 0]
        ones = self.kind == "votes" and bool((values == 1).all())
        found = np.bincount(cell, None if ones else values, minlength=shape[0] * shape[1])
        return found.astype(np.float64, copy=False).reshape(shape)

    def _find(self) -> "Known":
        """The codes of a table that no reader has coded; a name that is unknown is refused."""
        names = {"item": pl.Series(self.items, dtype=pl.String)}
        if self.kind == "votes":
            names["annotator"] = self.table["annotator"].drop_nulls().unique(maintain_order=True)
        if self.kind in ("votes", "bounds"):
            names["label"] = pl.Series(self.classes, dtype=pl.String)
        codes = {}
        for column, allowed in names.items():
            positions = pl.DataFrame({"name": allowed.cast(pl.String)}).with_row_index("code")
            given = self.table.select(pl.col(column).cast(pl.String).alias("name"))
            if allowed.n_unique() < len(allowed):
                raise CredalError(f"every {column} is named once; got {listed(allowed.to_list())}.")
            found = given.join(positions, on="name", how="left", maintain_order="left")
            unknown = found.filter(pl.col("name").is_not_null() & pl.col("code").is_null())
            optional = self.kind == "votes" and column in ("annotator", "label")
            if unknown.height or (not optional and found["code"].null_count()):
                held = shown(unknown["name"][0] if unknown.height else None)
                rule = f"every {column} of the table must be one of {listed(allowed.to_list())}"
                raise CredalError(f"{rule}; got {held}.")
            codes[column] = found["code"].cast(pl.Int32).fill_null(-1).to_numpy()
        people = names.get("annotator")
        return Known(() if people is None else tuple(people.to_list()), codes)

    def _check_numbers(self) -> None:
        """Weights and counts are 0 or more, bounds and probabilities in [0, 1]."""
        if self.kind == "votes":
            columns, most = ["weight"], float("inf")
        elif self.kind == "bounds":
            columns, most = ["at_least"], 1 + _TOLERANCE
        else:
            columns = list(self.classes)
            most = float("inf") if self.kind == "counts" else 1 + _TOLERANCE
        for column in columns:
            numbers = self.table[column].cast(pl.Float64).to_numpy()
            wrong = ~(np.isfinite(numbers) & (numbers >= 0) & (numbers <= most))
            if wrong.any():
                row = int(wrong.argmax())
                name = shown(self.table["item"][row])
                raise CredalError(
                    f"{column} must be a number of 0 or more{' and at most 1' * (most < 9)}; "
                    f"item {name} has {numbers[row]}."
                )
