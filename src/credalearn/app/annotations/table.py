"""The noun ``Annotations``: what people said about items, checked when it is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from credalearn._formats import listed, many, percent, shown
from credalearn._options import options_of
from credalearn.app.facts import Kind
from credalearn.app.sources import Source, Tabular
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.steps.inspect import Inspection

Conflicts = Literal["refuse", "newest", "add"]

_COLUMNS = {
    "votes": ("item", "annotator", "label", "weight"),
    "bounds": ("item", "label", "at_least"),
}
STATED = ("top_percent", "second", "second_percent", "impossible")  # next to votes
_TOLERANCE = 1e-6
_MOST_VOTES = 1e15  # of one class on one item; floats are exact to 9e15


@dataclass(frozen=True, slots=True)
class Origin:
    """Where annotations come from, and what the reader left out."""

    path: Path  # for a table in memory, what messages call it
    format: str  # name of the reader
    words: str  # what was recognized, for people
    left_out: Mapping[str, int] = field(default_factory=dict)  # answers, by reason
    first_items: int | None = None  # of several rounds: items of the first, which come first
    later: tuple[Path, ...] = ()  # files of the later rounds
    item: str | None = None  # column or field that names the item
    notes: tuple[str, ...] = ()  # what else people should know
    contents: Mapping[str, int] = field(default_factory=dict, repr=False)  # digest by item
    # Of each file; the rows are ``item``, all different, and ``row``, where it is first.
    tables: tuple[tuple[Source, pl.DataFrame], ...] = field(default=(), repr=False)
    splits: Mapping[str, str] = field(default_factory=dict, repr=False)  # official ones, by item
    reading: Any = field(default=None, repr=False)  # the options of the reader; None without one


@dataclass(frozen=True, slots=True, eq=False)
class Annotations(Tabular):
    r"""What people said about items.

    Checked once, here; code that is handed ``Annotations`` trusts them.

    Args:
        kind: ``"votes"``, ``"counts"``, ``"probabilities"`` or ``"bounds"`` ("at least 70 % cat").
        items: Names of the N items, in the order in which they first appear. An item without any
            vote is an item too: its row of :meth:`counts` is zero.
        classes: Names of the K classes, sorted or in the order asked for.
        table: Votes: ``item``, ``annotator`` (null where unknown), ``label`` (null where unsure)
            and ``weight``; of statements also ``top_percent``, ``second``, ``second_percent`` and
            ``impossible``, separated by ";". Bounds: ``item``, ``label``, ``at_least``. Counts and
            probabilities: ``item`` and one column of numbers per class.
        source: Where they come from.

    Raises:
        CredalError: If a column is missing, a name unknown, or a number out of its range.

    Example:
        >>> table = pl.DataFrame({"item": ["x", "x"], "annotator": ["ann", "bo"],
        ...                       "label": ["cat", "dog"], "weight": [1.0, 1.0]})
        >>> source = Origin(Path("votes.csv"), "long", "one row per vote")
        >>> Annotations("votes", ("x", "y"), ("cat", "dog"), table, source).counts()
        array([[1., 1.],
               [0., 0.]])
    """

    kind: Kind
    items: tuple[str, ...]
    classes: tuple[str, ...]
    table: pl.DataFrame = field(repr=False)
    source: Origin
    annotators: tuple[str, ...] = field(init=False)
    # Which item, annotator or label each row names, from 0; −1 for none.
    codes: Mapping[str, NDArray[np.int64]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        wanted = _COLUMNS.get(self.kind, ("item", *self.classes))
        wanted += STATED if self.contains == "statements" else ()
        if tuple(self.table.columns) != wanted:
            raise CredalError(
                f"a table of {self.kind} must have the columns {listed(wanted)}; got "
                f"{listed(self.table.columns)}."
            )
        people = self.table["annotator"] if self.kind == "votes" else pl.Series([], dtype=pl.String)
        object.__setattr__(
            self, "annotators", tuple(people.drop_nulls().unique(maintain_order=True))
        )
        names = {"item": self.items, "annotator": self.annotators, "label": self.classes}
        codes = {column: self._code(column, names[column]) for column in names if column in wanted}
        object.__setattr__(self, "codes", codes)
        self._check_numbers()

    def __repr__(self) -> str:
        size = f"{many(len(self.items), 'item')}, {many(len(self.classes), 'class', 'classes')}"
        return f"Annotations({self.kind!r}, {size}, from {str(self.source.path)!r})"

    @property
    def contains(self) -> Kind | Literal["statements"]:
        """The kind, or "statements" for votes with percentages next to them."""
        stated = self.kind == "votes" and "top_percent" in self.table.columns
        return "statements" if stated else self.kind

    def counts(self) -> NDArray[np.float64]:
        """Votes of each item by class with their weights, or the stated numbers, (N, K)."""
        return self.sparse_counts().toarray()

    def sparse_counts(self, *, weighted: bool = True) -> csr_array:
        """As :meth:`counts`, without the zeros; not weighted, every vote counts once."""
        shape, item = (len(self.items), len(self.classes)), self.codes["item"]
        if self.kind in ("counts", "probabilities"):
            given = csr_array(self.table.select(self.classes).to_numpy())
            place = np.zeros(shape[0], np.int64)
            place[item] = np.arange(1, len(item) + 1)  # 0: an item without a row
            empty = csr_array((1, shape[1]))
            return vstack([empty, given], format="csr")[place]
        label = self.codes["label"]
        said = label >= 0
        values = self.table["weight" if self.kind == "votes" else "at_least"].to_numpy()
        values = values[said] if weighted else np.ones(int(said.sum()))
        return coo_array((values, (item[said], label[said])), shape=shape).tocsr()

    def statements(self, items: Sequence[str] | None = None) -> tuple[list[Any], NDArray[np.int64]]:
        """The columns of statements as ``from_statements`` takes them, and whose items they are."""
        asked = pl.DataFrame({"item": self.items if items is None else items})
        table = asked.with_row_index("place").join(self.table, on="item", how="left")
        names, percents = table.select("label", "second"), table.select("^.*_percent$").fill_null(0)
        impossible = [each.split(";") if each else [] for each in table["impossible"]]
        (top, second), (most, next_most) = (each.iter_columns() for each in (names, percents))
        columns = [top.to_list(), most.to_numpy(), second.to_list(), next_most.to_numpy()]
        return [*columns, impossible], table["place"].cast(pl.Int64).to_numpy()

    def inspect(self, **options: Any) -> "Inspection":
        """What they contain and where people disagree; ``output``: a table of consensus labels.

        With ``rules=True``, label rules are compared on held-out votes; ``output`` has the result.
        """
        from credalearn.app.steps.inspect import InspectOptions, inspect

        return inspect(self, options_of("inspect", InspectOptions, options))

    def _code(self, column: str, names: tuple[str, ...]) -> NDArray[np.int64]:
        if len(set(names)) < len(names):
            raise CredalError(f"{self.source.path}: every {column} must be named once.")
        given = self.table[column].cast(pl.String)
        codes = given.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64)
        optional = self.kind == "votes" and column in ("annotator", "label")
        unknown = codes.is_null() & (given.is_not_null() if optional else True)
        if unknown.any():
            value = given[unknown.arg_max() or 0]
            raise CredalError(
                f"{self.source.path}: every {column} must be one of {listed(names)}; got "
                f"{shown(value)}."
            )
        return codes.fill_null(-1).to_numpy()

    def _check_numbers(self) -> None:
        """Weights and counts are 0 or more; bounds and probabilities lie in [0, 1] and add up."""
        columns = {"votes": ["weight"], "bounds": ["at_least"]}.get(self.kind, list(self.classes))
        shares = self.kind in ("bounds", "probabilities")
        most = 1 + _TOLERANCE if shares else _MOST_VOTES
        if self.contains == "statements":
            columns, most = ["top_percent", "second_percent"], 100
        values = self.table.select(pl.col(columns).cast(pl.Float64)).to_numpy()
        wrong = ~(np.isfinite(values) & (values >= 0) & (values <= most))
        if self.kind == "counts":
            wrong |= values != np.round(values)
        if wrong.any():
            row, column = (int(each) for each in np.argwhere(wrong)[0])
            rule = "a whole number of 0 or more" if self.kind == "counts" else "0 or more"
            rule = "between 0 and 1" if shares else rule
            value = values[row, column]
            rule = f"at most {most:g}" if value > most and not shares else rule
            share = f"write {percent(value / 100)} as {value / 100:g}"
            fix = share if shares and 1 < value <= 100 else "correct it"
            raise CredalError(
                f"{self.source.path}, item {shown(self.table['item'][row])}: {columns[column]!r} "
                f"must be {rule}; got {value:g}. To fix: {fix}."
            )
        if self.kind == "bounds":
            sums = self.sparse_counts().sum(1)
            item = int(sums.argmax()) if len(sums) else 0
            if len(sums) and sums[item] > 1 + _TOLERANCE:
                raise CredalError(
                    f"{self.source.path}, item {shown(self.items[item])}: the lower bounds must "
                    f"sum to at most 1; got {sums[item]:.3g}. To fix: lower one of them."
                )


def gold_alone(gold: Any, classes: tuple[str, ...]) -> Annotations:
    """Annotations without a vote, for items that have gold labels."""
    if gold is None:
        raise CredalError("Pass votes or gold labels.")
    path = Path(gold) if isinstance(gold, str | PathLike) else Path("the table")
    schema = {**dict.fromkeys(("item", "annotator", "label"), pl.String), "weight": pl.Float64}
    source = Origin(path, "gold", "gold labels, no votes")
    return Annotations("votes", (), classes, pl.DataFrame(schema=schema), source)


def check_unweighted(annotations: Annotations, rule: str, *, instead: str = "") -> None:
    """Refuse votes with a weight other than 1; ``rule`` says what needs plain votes."""
    if annotations.kind != "votes":
        return
    weights = annotations.table["weight"].to_numpy()
    weighted = (weights != 1) & (annotations.codes["label"] >= 0)
    if weighted.any():
        row = int(weighted.argmax())
        raise CredalError(
            f"{rule}; a vote about item {shown(annotations.table['item'][row])} of "
            f"{annotations.source.path} has the weight {weights[row]:g}. To fix: drop the column "
            f"of the weights{instead}."
        )
