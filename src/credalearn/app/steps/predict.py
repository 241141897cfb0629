"""``credalearn predict``: a label, its bounds and a decision for each item."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from credalearn._formats import many, percent
from credalearn._options import check_options, option
from credalearn.app.item_stream import Batch, KnownItems, open_items
from credalearn.app.run import Run
from credalearn.app.steps.decisions import (
    SCHEMA,
    SET_SCHEMA,
    class_schema,
    decisions,
    find_decision,
)
from credalearn.app.table_writer import check_output, refuse_overwriting, write_frames
from credalearn.errors import CredalError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """Options of ``predict``, in Python and on the command line."""

    item: str | None = option(
        None, "Column that names the items.", show_default="as in training, or recognized"
    )
    threshold: float | None = option(
        None, "Defer items above this score instead of by the guarantee.", least=0, most=1
    )
    decision: bool = option(True, "Decide which items to defer; needs a guarantee.")
    all_classes: bool = option(False, "Also write the probability and bounds of every class.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.threshold is not None and not self.decision:
            raise CredalError("threshold and no decision exclude each other. To fix: choose one.")


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What ``predict`` found, one row per item in the order of the data."""

    items: int  # number of items
    deferred: int | None  # number of deferred items; None without decisions
    trained_on: int  # number of items that the model was trained on
    ignored: tuple[str, ...]  # columns of the data that are not features of the model
    unreadable: dict[str, str]  # why an image could not be read, by item
    output: Path | None = None  # the file that was written; None where the table was asked for
    table: pl.DataFrame | None = None  # None where it was written to a file

    def to_polars(self) -> pl.DataFrame:
        """The decisions as a polars frame."""
        if self.table is None:
            raise CredalError(
                f"the decisions were written to {self.output}. To fix: read that file, or call "
                "predict without an output."
            )
        return self.table

    def to_pandas(self) -> "pd.DataFrame":
        """The decisions as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))  # polars needs pyarrow

    @property
    def lines(self) -> list[str]:
        """What the command prints."""
        lines = []
        if self.unreadable:
            name, why = next(iter(self.unreadable.items()))
            lines.append(f"Skipped {len(self.unreadable):,} unreadable images, first {name}: {why}")
        if self.ignored:
            names = ", ".join(self.ignored[:10]) + ", …" * (len(self.ignored) > 10)
            lines.append(f"Ignored columns that are not features: {names}.")
        if self.deferred is None:
            lines.append(f"Predicted {self.items:,} items, without decisions.")
        else:
            kept = self.items - self.deferred
            lines.append(
                f"{many(self.items, 'item')}: {kept:,} predicted ({percent(kept / self.items)}), "
                f"{self.deferred:,} deferred."
            )
        if self.trained_on:
            lines.append(
                f"The model was trained on {self.trained_on:,} of these items; a guarantee is "
                "about new items only."
            )
        return lines if self.output is None else [*lines, f"Wrote {self.output}."]


def predict(
    run: Run, data: Any, output: str | Path | None = None, options: PredictOptions | None = None
) -> Decisions:
    """Predict every item; with an output, memory does not grow with the number of items.

    The columns are ``item``, ``label`` (the predicted class, also of deferred items),
    ``probability``, ``lower`` and ``upper`` (of that class), ``score`` (one minus the lower
    probability, or one minus the probability where that defers better) and ``decision`` (predict or
    defer). A run with certified sets adds ``set_lower`` and ``set_upper``, the bounds of the class
    in the widened set. With ``all_classes``, the columns of :func:`class_schema` follow.
    """
    options = options or PredictOptions()
    path = None if output is None else check_output(output)
    if path is not None:
        refuse_overwriting(path, data, run)
    decide = find_decision(run, options.threshold) if options.decision else None
    stream = open_items(run, data, item=options.item)
    schema = {name: kind for name, kind in SCHEMA.items() if options.decision or name != "decision"}
    schema |= {} if run.sets is None else SET_SCHEMA
    schema |= class_schema(run.classes) if options.all_classes else {}
    counts: Counter[str] = Counter()
    predicted = decisions(run, stream, decide, all_classes=options.all_classes)
    frames = _counted(predicted, KnownItems(run, ("train",)), counts)
    frames = (frame.select(list(schema)) for frame in frames)
    table = None
    if path is None:
        table = pl.concat(frames)
    else:
        write_frames(path, frames, schema)
    return Decisions(
        items=counts["items"],
        deferred=counts["deferred"] if options.decision else None,
        trained_on=counts["trained on"],
        ignored=() if run.facts.inputs.texts else stream.ignored,
        unreadable=dict(stream.unreadable),
        output=path,
        table=table,
    )


def _counted(
    predicted: Iterator[tuple[Batch, pl.DataFrame]], trained: KnownItems, counts: Counter[str]
) -> Iterator[pl.DataFrame]:
    for batch, frame in predicted:
        counts["items"] += len(frame)
        counts["trained on"] += sum(trained.among(batch.items, batch.digests))
        if "decision" in frame.columns:
            counts["deferred"] += int((frame["decision"] == "defer").sum())
        yield frame
