"""``credalearn defer``: the items that the model leaves to people, least certain first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from credalearn._files import check_file, whole_file
from credalearn._formats import listed, many
from credalearn._options import check_options, option, same_option
from credalearn.app.item_stream import Batch, ItemStream, open_items
from credalearn.app.run import Run
from credalearn.app.steps.decisions import decisions, find_decision
from credalearn.app.steps.label_studio import (
    LOCAL_FILES,
    field_name,
    image_address,
    interface,
    task,
    write_tasks,
)
from credalearn.app.steps.predict import PredictOptions
from credalearn.app.table_writer import refuse_overwriting, write_frames
from credalearn.errors import CredalError

_SUFFIXES = {"label-studio": ".json", "csv": ".csv"}
_MOST_FEATURES = 30  # shown as a table: nobody reads the 384 numbers of an embedding


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferOptions:
    """Options of ``defer``, in Python and on the command line."""

    to: Literal["label-studio", "csv"] = option("label-studio", "Format of the output.")
    item: str | None = same_option(PredictOptions, "item")
    threshold: float | None = same_option(PredictOptions, "threshold")
    limit: int | None = option(None, "Write at most this many items.", least=1)
    text: str | None = option(
        None, "Column that annotators read.", show_default="that of the model, or text"
    )
    image_prefix: str = option(LOCAL_FILES, "Text before the path of an image in a task.")
    predictions: bool = option(True, "Show the model's predictions to annotators.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class Deferred:
    """What ``defer`` wrote."""

    output: Path  # the tasks
    config: Path | None  # the labeling interface of Label Studio
    items: int  # number of items in the data
    deferred: int  # how many of them are deferred
    written: int  # how many of those were written
    shown: str  # what annotators see of an item
    trains: bool = True  # whether the run can be trained again with their votes

    @property
    def lines(self) -> list[str]:
        """What the command prints."""
        lines = [
            f"{many(self.items, 'item')}: {self.deferred:,} deferred.",
            f"Wrote {self.output}: the {self.written:,} least certain items, most uncertain first.",
        ]
        if self.config is not None:
            lines.append(f"Wrote {self.config}: the labeling interface; it shows {self.shown}.")
        notes = ["Next: add the new votes with credalearn train … --merge ANNOTATED."]
        return [*lines, *(notes if self.trains else ())]


def defer(run: Run, data: Any, output: str | Path, options: DeferOptions | None = None) -> Deferred:
    """Write the deferred items for annotators, least certain first."""
    options = options or DeferOptions()
    path = check_file(output, (_SUFFIXES[options.to],))
    refuse_overwriting(path, data, run)
    stream = open_items(run, data, item=options.item)
    columns = (*run.facts.inputs.texts, *stream.ignored)
    if options.text is not None and options.text not in columns:
        raise CredalError(
            f"{stream.name} has no column {options.text!r} of texts; its other columns are: "
            f"{listed(columns) or 'none'}. To fix: name one of these, or leave out --text."
        )
    count, found = _deferred(run, stream, options)
    if found.is_empty():
        raise CredalError(
            f"none of the {count:,} items in {stream.name} is deferred. To fix: pass a lower "
            "--threshold, such as 0 with --limit 50 for the 50 least certain items."
        )
    chosen = found.sort("score", descending=True, maintain_order=True).head(options.limit or count)
    _refuse_other_items(run, chosen, stream)
    config = None
    if options.to == "csv":
        _write_csv(path, chosen, options.predictions, without=run.facts.inputs.features)
        shown = "all columns"
    else:
        config = path.with_suffix(".label_config.xml")
        shown = _write_label_studio(run, path, config, chosen, options)
    trains = not run.facts.imported
    return Deferred(path, config, count, len(found), len(chosen), shown, trains)


def _deferred(run: Run, stream: ItemStream, options: DeferOptions) -> tuple[int, pl.DataFrame]:
    """The number of items, and the deferred ones with their digest and what is known of them."""
    count, parts = 0, []
    decide = find_decision(run, options.threshold)
    for batch, frame in decisions(run, stream, decide):
        count += len(frame)
        parts.append(pl.DataFrame(_columns(batch, frame, run)).filter(frame["decision"] == "defer"))
    return count, pl.concat(parts, how="diagonal_relaxed")


def _columns(batch: Batch, frame: pl.DataFrame, run: Run) -> Iterator[pl.Series]:
    """Item, label, lower, score, digest; then the other columns and the features, if they are few.

    The columns of the data carry the prefix "data:", so that none hides one of ours.
    """
    yield from frame.select("item", "label", "lower", "score").get_columns()
    yield pl.Series("digest", batch.digests, dtype=pl.String)
    for column in batch.extra.get_columns():
        yield column.alias(f"data:{column.name}")
    names = run.facts.inputs.features
    if len(names) <= _MOST_FEATURES:
        for number, name in enumerate(names):
            yield pl.Series(f"data:{name}", batch.X[:, number])


def _refuse_other_items(run: Run, chosen: pl.DataFrame, stream: ItemStream) -> None:
    """Refuse names that belong to different items of the run: their votes would be mixed up."""
    same = chosen.join(run.items, on="item", how="inner")
    others = same.filter(pl.col("digest") != pl.col("digest_right"))["item"]
    if len(others):
        raise CredalError(
            f"{len(others):,} deferred items of {stream.name} have the name of a different item of "
            f"{run.path}, such as {others[0]!r}; their votes would be mixed up. To fix: rename "
            "them."
        )


def _write_csv(
    path: Path, chosen: pl.DataFrame, predictions: bool, *, without: Iterable[str]
) -> None:
    """One row per item, with empty columns ``annotator`` and ``label`` to fill in.

    Without the features: one called "weight" would be read back as the weight of a vote.
    """
    # Under other names: "lower" would be read back as a stated bound, "label" as a vote.
    said = [pl.col(name).alias(f"model_{name}") for name in ("label", "lower", "score")]
    empty = [pl.lit(None, dtype=pl.String).alias(name) for name in ("annotator", "label")]
    taken = {"item", "annotator", "label", "model_label", "model_lower", "model_score", *without}
    extra = [
        pl.col(name).alias(own)
        for name in chosen.columns
        if name.startswith("data:") and (own := name.removeprefix("data:")) not in taken
    ]
    frame = chosen.select("item", *(said if predictions else ()), *extra, *empty)
    write_frames(path, iter([frame]), {name: type(kind) for name, kind in frame.schema.items()})


def _write_label_studio(
    run: Run, path: Path, config: Path, chosen: pl.DataFrame, options: DeferOptions
) -> str:
    """Write tasks and interface; returns what the interface shows."""
    data = [name for name in chosen.columns if name.startswith("data:")]
    text = f"data:{options.text or (*run.facts.inputs.texts, 'text')[0]}"
    if run.takes_images:
        shown, field = "data:image", "image"
    elif text in data:
        shown, field = text, field_name(text.removeprefix("data:"))
    else:
        shown, field = "item", "item"
    model = (
        f"{run.path.resolve().name}, {run.facts.imported or run.facts.method}, {run.facts.created}"
    )

    def tasks() -> Iterator[dict[str, Any]]:
        for row in chosen.iter_rows(named=True):
            values = {name.removeprefix("data:"): row[name] for name in data if name != shown}
            said = "" if row[shown] is None else str(row[shown])
            if run.takes_images:
                said = image_address(said, options.image_prefix)
            yield task(
                row["item"],
                {} if shown == "item" else {field: said},
                {name: _plain(value) for name, value in values.items() if value is not None},
                label=row["label"] if options.predictions else None,
                lower=row["lower"],
                model=model,
            )

    write_tasks(path, tasks())
    has_row = any(name != shown for name in data)
    with whole_file(config) as partial:
        xml = interface(run.classes, image=run.takes_images, field=field, row=has_row)
        partial.write_text(xml, encoding="utf-8")
    what = "the image" if run.takes_images else f"the column {shown.removeprefix('data:')!r}"
    return f"{what} and a table of the other columns" if has_row else what


def _plain(value: Any) -> Any:
    """A value that JSON has; others, such as dates, become text."""
    return value if isinstance(value, str | int | float | bool) else str(value)
