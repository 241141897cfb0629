"""The noun ``Dataset``: annotated items joined with inputs, groups, gold labels and a split."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from credalearn._formats import listed, many, shown
from credalearn._options import check_options, option, options_of
from credalearn.app._join import TEXT, Gold, gold_column, join_images, join_table
from credalearn.app._split import SPLITS, assign
from credalearn.app.annotations.agreement import majority
from credalearn.app.annotations.class_map import parse_map
from credalearn.app.annotations.merge import join_splits
from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import InputFacts, TruthSource
from credalearn.app.features import Features
from credalearn.app.readers import read_later
from credalearn.app.sources import Tabular
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.steps.inspect import Inspection


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """Options of :class:`Dataset`, in Python and on the command line."""

    features: tuple[Path, ...] | Any = option(
        (), "Table or array of features, one row per item; may be repeated."
    )
    text: tuple[str, ...] = option(
        (), "Column of the text, in --table or the export; may be repeated.", show_default="found"
    )
    images: Path | None = option(None, "Folder of images, named after the items.")
    encoder: str | None = option(
        None,
        "For texts: tfidf, wordllama or sentence-transformers:FOLDER; for images, instead of "
        "training a network: timm:NAME with --weights, or run:FOLDER.",
        show_default="tfidf for texts",
    )
    weights: Path | None = option(None, "File of weights that a network starts from.")
    group: str | None = option(None, "Column whose items stay in one split, such as the patient.")
    gold: str | Any | None = option(
        None, "Column of the true class, or a table of items and their true class."
    )
    split: str | None = option(None, "Column of the split: train, calibration or test.")
    table: Path | Any | None = option(
        None, "For texts or images: table with the columns of text, group, gold and split."
    )
    validation: Path | Any | None = option(
        None, "Export of the validation items, used for calibration."
    )
    test: Path | Any | None = option(None, "Export of the official test items.")
    drop: tuple[str, ...] = option((), "Column that is not a feature; may be repeated.")
    item: str | None = option(None, "Column that names the items.", show_default="recognized")
    skip_missing: bool = option(False, "Leave out items without input or without annotation.")
    image_size: int = option(
        64,
        "Height and width of images in pixels; half the size takes a quarter of the time.",
        least=8,
    )
    random_state: int = option(0, "Random seed.", least=0)
    names: tuple[str, ...] | None = field(default=None, metadata={})  # features of a trained model
    categories: tuple[str, ...] | None = field(default=None, metadata={})  # those that are texts
    called: str = field(default="features", metadata={})  # what messages call them

    def __post_init__(self) -> None:
        check_options(self)
        if bool(self.features) + (self.images is not None) + bool(self.text) > 1:
            raise CredalError("Pass only one of text=, features= and images=.")
        if not self.features and self.drop:
            raise CredalError(f"drop must be left out without features; got {listed(self.drop)}.")
        if self.features and self.table is not None:
            raise CredalError("table must be left out with features, which have their own columns.")
        official = [each for each in (self.validation, self.test) if each is not None]
        if self.split is not None and official:
            raise CredalError("Pass either split=, or validation= and test=.")

    @property
    def columns(self) -> list[str]:
        """The columns of group, true class and split that were named."""
        names = (self.group, gold_column(self.gold), self.split)
        return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Dataset(Tabular):
    """Annotated items with their inputs, in one order.

    Items of later rounds (``merge`` of ``read_annotations``) are trained on only: people choose
    them, usually hard ones, and guarantees are about items as they come. Items with a gold label
    and without annotation are never trained on: drawn splits put them into calibration and test,
    and the other items into training, unless the former are few and the latter have gold labels
    too.

    Args:
        annotations: What people said about the items.
        options: Keywords of :class:`DatasetOptions`. ``features`` may be a path, a pandas or
            polars table, an array whose rows are the items ``"0"``, ``"1"``, …, a mapping such as
            ``{"item": names, "features": array}``, or a list of these.

    Attributes:
        items: Names of the N items that have both annotation and input.
        X: Inputs, shape (N, D) or (N, 3, S, S), or N texts; a polars frame where features are
            categories.
        digests: SHA-256 of each input.
        truth: Index of the true class: the gold label, else the most voted; −1 for none, (N,).
        truth_source: Where it comes from: ``"gold"``, ``"majority"`` or ``"dawid-skene"``.
        groups: Group of each item, or None.
        later: Which items only later rounds have, bool (N,).
        unvoted: Which items have a gold label and no annotation, bool (N,).
        part: Name of each item's split after :meth:`split`, else None.
        inputs: What the inputs are, and which items were left out.
        columns: Group, gold label and split of each item, as text.
        place: From an item's number to where it is, such as ``"items.csv, line 7"``.

    Raises:
        CredalError: If a file cannot be read, a column is missing, or an item has no input or no
            annotation and ``skip_missing`` is not set.

    Example:
        >>> import credalearn as cl
        >>> votes = pl.DataFrame({"item": ["a", "a", "b"], "label": ["cat", "dog", "dog"]})
        >>> sizes = pl.DataFrame({"item": ["a", "b"], "size": [1.5, 2.0]})
        >>> data = cl.Dataset(cl.read_annotations(votes), features=sizes)
        >>> data.items, data.X.tolist(), data.counts.tolist()
        (['a', 'b'], [[1.5], [2.0]], [[1.0, 1.0], [0.0, 1.0]])
    """

    annotations: Annotations
    options: DatasetOptions
    items: list[str]
    X: Features
    digests: list[str]
    truth: np.ndarray
    truth_source: TruthSource
    groups: list[str] | None
    later: np.ndarray
    unvoted: np.ndarray
    part: np.ndarray | None
    inputs: InputFacts
    _counts: csr_array
    columns: pl.DataFrame
    place: Callable[[int], str]

    def __init__(self, annotations: Annotations, **options: Any) -> None:
        chosen = options_of("Dataset", DatasetOptions, options)
        if not isinstance(annotations, Annotations):
            raise CredalError(
                f"annotations must be Annotations; got {type(annotations).__name__}. To fix: pass "
                "what credalearn.read_annotations returns."
            )
        splits = {"calibration": chosen.validation, "test": chosen.test}
        official = {
            name: each if isinstance(each, Annotations) else read_later(each, annotations)
            for name, each in splits.items()
            if each is not None
        }
        if official:
            annotations = join_splits(annotations, **official)
        join = join_table if chosen.images is None else join_images
        found, gold = join(annotations, chosen)
        people = annotations.annotators if annotations.source.format == "wide" else ()
        if taken := {*chosen.columns, *chosen.text, *found["inputs"].features} & set(people):
            name = min(taken)
            raise CredalError(
                f"column {name!r} of {annotations.source.path} was read as an annotator's, and is "
                f"a feature or used otherwise. To fix: read the annotations with ignore={name!r}, "
                "or leave out the feature with drop=."
            )
        if chosen.encoder is not None and chosen.encoder != found["inputs"].encoder:
            from credalearn.app.encoders import encode_once

            X, digests, inputs = (found[name] for name in ("X", "digests", "inputs"))
            found["X"], found["inputs"] = encode_once(
                X, digests, inputs, chosen.encoder, chosen.weights
            )
        row_of = {item: row for row, item in enumerate(annotations.items)}
        number = len(annotations.items)
        rows = np.array([row_of.get(item, number) for item in found["items"]])
        every = annotations.sparse_counts()
        every.resize(number + 1, len(annotations.classes))  # an empty row for items without votes
        counts = every[rows]
        first = annotations.source.first_items
        vars(self).update(
            **found,
            annotations=annotations,
            options=chosen,
            _counts=counts,
            truth=majority(counts),
            truth_source="majority",
            groups=None,
            later=(rows >= (number if first is None else first)) & ~found["unvoted"],
            part=None,
        )
        if chosen.group is not None:
            values = self.columns[chosen.group].fill_null("").str.strip_chars()
            if (values == "").any():
                row = (values == "").arg_max() or 0
                raise CredalError(
                    f"{self.place(row)}: item {shown(self.items[row])} has no {chosen.group!r}. To "
                    "fix: fill the column, with a name of its own if the item stands alone."
                )
            vars(self)["groups"] = values.to_list()
        if gold is not None:
            vars(self).update(truth=self._gold(gold), truth_source="gold")

    def __repr__(self) -> str:
        return f"Dataset({many(len(self.items), 'item')} with {self.inputs.kind})"

    @property
    def counts(self) -> np.ndarray:
        """Votes or shares by class, shape (N, K)."""
        return self._counts.toarray()

    def split(
        self, names: Sequence[str] = SPLITS, *, without: Sequence[str] | None = None
    ) -> "Dataset":
        """The items with their split in ``part``: the user's own, or drawn by group.

        Args:
            names: The splits. Without ``"train"``, items of later rounds are left out.
            without: Why an item takes no part, N texts, "" where it does.

        Raises:
            CredalError: If a split is empty, or a group or an image is in two splits.
        """
        reasons = np.array([""] * len(self.items) if without is None else without, dtype=object)
        part, later = assign(self, names, reasons)
        left_out = Counter(reasons[reasons != ""].tolist())
        return self._taken(np.flatnonzero(reasons == ""), part, later, left_out)

    def _taken(
        self, rows: np.ndarray, part: np.ndarray, later: np.ndarray, left_out: dict[str, int]
    ) -> "Dataset":
        place = self.place
        return self.with_values(
            items=[self.items[row] for row in rows],
            X=self.X if len(rows) == len(self.X) else self.X[rows],
            digests=[self.digests[row] for row in rows],
            _counts=self._counts[rows],
            truth=self.truth[rows],
            groups=None if self.groups is None else [self.groups[row] for row in rows],
            later=later[rows],
            unvoted=self.unvoted[rows],
            part=part[rows],
            inputs=replace(self.inputs, left_out={**self.inputs.left_out, **left_out}),
            columns=self.columns[rows.tolist()],
            place=lambda row: place(int(rows[row])),
        )

    def without_training(self) -> "Dataset":
        """The dataset without the items that :meth:`split` put into training."""
        assert self.part is not None
        rows = np.flatnonzero(self.part != "train")
        left_out = {"in training": len(self.items) - len(rows)}
        return self._taken(rows, self.part, self.later, left_out)

    def with_values(self, **values: Any) -> "Dataset":
        """The dataset with other values of some attributes, in the same order of items."""
        new = copy.copy(self)
        vars(new).update(values)
        return new

    def inspect(self, **options: Any) -> "Inspection":
        """What its annotations contain and where people disagree: :meth:`Annotations.inspect`."""
        return self.annotations.inspect(**options)

    @property
    def lines(self) -> list[str]:
        """What the dataset contains, in lines for people."""
        inputs, sizes = self.inputs, Counter([] if self.part is None else self.part.tolist())
        what = "images"
        if inputs.kind == "features":
            more = f" and {len(inputs.features) - 6:,} more" if len(inputs.features) > 8 else ""
            cut = 6 if more else 8
            what = f"features {', '.join(inputs.features[:cut])}{more}"
        if inputs.kind == "texts":
            what = f"texts in {' and '.join(map(repr, inputs.texts))} of {inputs.path}"
        if self.groups is not None:
            what += f"; {many(len(set(self.groups)), 'group')} by {self.options.group}"
        what += f"; {many(inputs.empty, 'text is', 'texts are')} empty" if inputs.empty else ""
        lines = [f"{many(len(self.items), 'item')} with {what}"]
        if self.unvoted.any():
            number = many(int(self.unvoted.sum()), "item")
            lines.append(f"{number} with a gold label and no votes: for calibration and test only")
        if sizes:
            lines.append(", ".join(f"{sizes[name]:,} {name}" for name in SPLITS if sizes[name]))
        left_out = inputs.left_out.items()
        return lines + [f"Left out: {many(count, 'item')} {why}" for why, count in left_out]

    def to_polars(self) -> pl.DataFrame:
        """One row per item: item, split, group, truth, digest, votes ``n:CLASS``, features.

        A feature that has the name of another column is called ``feature:NAME``.
        """
        values, table = {}, self.item_table()
        if isinstance(self.X, pl.DataFrame):
            values = {each.name: each for each in self.X.get_columns()}
        elif self.inputs.kind == "features":
            values = dict(zip(self.inputs.features, self.X.T, strict=True))
        elif self.X.ndim == 1:
            values = {"text": pl.Series(self.X)}
        names = {each: f"feature:{each}" if each in table.columns else each for each in values}
        return table.with_columns(**{names[k]: pl.Series(each) for k, each in values.items()})

    def item_table(self) -> pl.DataFrame:
        """The table of items that a run keeps: all but the inputs, and the start of texts."""
        classes = self.annotations.classes
        columns: dict[str, Any] = {
            "item": self.items,
            "split": None if self.part is None else self.part.tolist(),
            "group": self.groups,
            "truth": [classes[index] if index >= 0 else None for index in self.truth],
            "digest": self.digests,
        }
        if TEXT in self.columns.columns:
            columns["text"] = self.columns[TEXT].to_list()
        by_class = self._counts.tocsc()
        columns |= {
            f"n:{name}": by_class[:, [number]].toarray()[:, 0]
            for number, name in enumerate(classes)
        }
        text = dict.fromkeys(("split", "group", "truth"), pl.String)
        return pl.DataFrame(columns, schema_overrides=text)

    def _gold(self, gold: Gold) -> np.ndarray:
        classes, (labels, place) = self.annotations.classes, gold
        number = {each: index for index, each in enumerate(classes)} | {"": -1}
        found = [labels.get(item, "") for item in self.items]
        reading = self.annotations.source.reading
        if reading is not None and not set(found) <= number.keys():  # labels, and not yet classes
            groups = parse_map(reading.map)
            found = [groups.get(name, name) for name in found]
        for item, value in zip(self.items, found, strict=True):
            if value not in number:
                raise CredalError(
                    f"{place(item)}: the gold label of item {shown(item)} must be one of "
                    f"{listed(classes)}; got {shown(value)}. To fix: correct it, or leave it empty."
                )
        if not any(found):
            raise CredalError(
                f"no item has a gold label in {shown(str(self.options.gold))}. To fix: fill the "
                "column, or leave out gold."
            )
        return np.array([number[value] for value in found])
