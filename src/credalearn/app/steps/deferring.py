"""``credalearn defer``: what the model leaves to people, least certain first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from credalearn._checks import check_choice
from credalearn._files import check_file
from credalearn.app.annotations.places import shown
from credalearn.app.items.batches import Stream, broken_lines
from credalearn.app.items.digests import DIGEST, image_digest
from credalearn.app.items.inputs import find_images
from credalearn.app.items.known import other_content
from credalearn.app.items.streaming import open_stream
from credalearn.app.outputs import refuse_overwriting, refuse_overwriting_run
from credalearn.app.run import Run
from credalearn.app.steps.cut import find_rule
from credalearn.app.steps.decided import is_decisions, read_decisions
from credalearn.app.steps.label_studio import LOCAL_FILES
from credalearn.app.steps.predicting import SCHEMA, decisions
from credalearn.app.steps.shown_text import names_alone, other_columns, text_column
from credalearn.app.steps.tasks import with_images, write_csv, write_tasks
from credalearn.errors import CredalError

_FEATURES = 30  # shown as a table: nobody reads the 384 numbers of an embedding


@dataclass(frozen=True, slots=True)
class DeferSummary:
    """What was handed over.

    Args:
        output: The file of tasks.
        config: The labeling interface beside it, for Label Studio.
        items: How many items were decided about.
        deferred: How many of them are deferred.
        written: How many of those were written; fewer where a limit was given.
        broken: Why images could not be read, by item.
        same_names: How many of the written are called like items of the run, where nothing tells
            whether they are those.
        shown: The column that annotators read, where there is one.
        hidden: What to tell where annotators see no more than the names of the items.
    """

    output: Path
    config: Path | None
    items: int
    deferred: int
    written: int
    broken: Mapping[str, str] = field(default_factory=dict)
    same_names: int = 0
    shown: str | None = None
    hidden: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        kept = f", the {self.written:,} least certain written" * (self.written < self.deferred)
        told = broken_lines(self.broken)
        told += [f"{self.deferred:,} of {self.items:,} items are deferred{kept}", f"{self.output}"]
        if self.config is not None:
            column = "" if self.shown is None else f", which shows the column {shown(self.shown)}"
            told.append(f"{self.config}: the labeling interface{column}")
        if self.same_names:
            told.append(
                f"{self.same_names:,} of them are called like items of the run: if they are not "
                "those, rename them, or their votes will be taken for votes about those"
            )
        if self.hidden is not None:
            told.append(self.hidden)
        return tuple(told)


def defer(
    run: Run,
    source: str | Path,
    output: str | Path,
    *,
    to: Literal["label-studio", "csv"] = "label-studio",
    threshold: float | None = None,
    limit: int | None = None,
    item: str | None = None,
    text: str | None = None,
    images: str | Path | None = None,
    image_prefix: str = LOCAL_FILES,
    predictions: bool = True,
) -> DeferSummary:
    """Write the deferred items, least certain first.

    A task shows the image, or the text and the numbers of the item's row; the numbers only where
    source is the data, as ``predict`` does not repeat them, and they are thirty or fewer.

    Args:
        run: A finished run.
        source: The data, or what ``predict`` wrote about them.
        output: A JSON file of tasks, such as ``tasks.json``, with the labeling interface beside
            it, ``tasks.label_config.xml``; or a CSV whose columns ``annotator`` and ``label`` are
            empty, to be filled in and read back as votes.
        to: Which of the two.
        threshold: Predict up to this score, instead of the rule; only where source is the data.
        limit: Write at most this many.
        item: Column of the data that names the items.
        text: Column of source that the annotators read; else the one called text, or the only one
            that holds texts.
        images: Folder of the images, where source is what ``predict`` wrote.
        image_prefix: What stands before an image's path within its folder; Label Studio's address
            of local files unless given.
        predictions: False hides from the annotators what the model said, which may sway them.

    Raises:
        CredalError: If source is neither or has no such text, nothing is deferred, an item has the
            name of one of the run and is another, or the output is the source or a file that the
            run was trained on.
    """
    check_choice(to, ("label-studio", "csv"), name="to")
    output = check_file(output, (".json" if to == "label-studio" else ".csv",))
    if limit is not None and limit < 1:
        raise CredalError(f"limit must be 1 or more; got {limit}. To fix: give --limit 100.")
    if text is not None and run.takes_images:
        raise CredalError(
            f"the model of {run.path} takes images, and annotators see those. To fix: leave out "
            f"--text {text}."
        )
    source = Path(source)
    refuse_overwriting(output, source)
    refuse_overwriting_run(output, run)
    stream = None
    if is_decisions(source):
        if threshold is not None:
            raise CredalError(
                f"{source} holds decisions, made by their own threshold. To fix: give the data."
            )
        frames = read_decisions(source, run.classes)
    else:
        rule = find_rule(run, threshold=threshold)
        stream = open_stream(run, source, item=item)
        frames = decisions(run, stream, rule)
    num_items, deferred = _deferred(frames)
    if not len(deferred):
        raise CredalError(
            f"none of the {num_items:,} items in {source} is deferred. To fix: give the data and a "
            "lower --threshold, or what predict --defer 50 writes."
        )
    chosen = deferred.sort("score", descending=True, maintain_order=True).head(
        limit or len(deferred)
    )
    broken = {} if stream is None else dict(stream.broken)
    same = _refuse_other_content(run, source, chosen, images)
    chosen, deferred = (frame.drop(DIGEST, strict=False) for frame in (chosen, deferred))
    named = "item"
    if not run.takes_images:
        names = [] if stream is None else run.facts.inputs.features
        named = named if stream is None else stream.named
        text = text_column(source, deferred, text, named=named, features=names)
    config, blind = None, text is None and not run.takes_images
    if to == "csv":
        write_csv(output, chosen, predictions)
        blind = blind and not other_columns(chosen)
    elif run.takes_images:
        with_them = with_images(chosen, images, image_prefix)
        config = write_tasks(run, output, with_them, {}, predictions, field="image")
    else:
        seen = {} if stream is None else _features(run, stream, set(chosen["item"]))
        config = write_tasks(run, output, chosen, seen, predictions, field=text or "item")
        blind = blind and not seen
    hidden = names_alone(source, deferred, decided=stream is None) if blind else None
    counts = num_items, len(deferred), len(chosen)
    read = named if text == "item" else text
    return DeferSummary(output, config, *counts, broken, same, shown=read, hidden=hidden)


def _deferred(frames: Iterator[pl.DataFrame]) -> tuple[int, pl.DataFrame]:
    """How many items there are, and those of them that are deferred."""
    num_items, kept = 0, []
    for frame in frames:
        num_items += len(frame)
        kept.append(frame.filter(pl.col("decision") == "defer"))
    deferred = pl.concat(kept, how="diagonal_relaxed") if kept else pl.DataFrame(schema=SCHEMA)
    return num_items, deferred


def _refuse_other_content(
    run: Run, source: Path, chosen: pl.DataFrame, images: str | Path | None
) -> int:
    """Refuse items whose votes would be another's; how many may be, where nothing tells.

    Nothing does where only ``predict``'s table is there, and neither features nor images.
    """
    items = chosen["item"].to_list()
    if DIGEST in chosen.columns:
        digests = chosen[DIGEST].to_list()
    elif images is not None:
        files = find_images(images, items)
        items = [name for name in items if name in files]
        digests = [image_digest(files[name]) for name in items]
    else:
        known = set(run.items["item"])
        return sum(name in known for name in items)
    others = other_content(run, items, digests)
    if others:
        fix = "rename them"
        if source.suffix.lower() == ".npy":
            fix = "give them names, in an npz file or a table"
        if run.takes_images:
            fix += "; or move their folder into that of the training's images, and give the latter"
        raise CredalError(
            f"{len(others):,} of the deferred items in {source} have the name of an item of "
            f"{run.path} and are not that item, such as {shown(others[0])}: their votes would be "
            f"taken for votes about it. To fix: {fix}."
        )
    return 0


def _features(run: Run, stream: Stream, items: set[str]) -> dict[str, dict[str, float]]:
    """What the model saw of these items, by name; nothing where that is too much to read."""
    names = run.facts.inputs.features
    if len(names) > _FEATURES:
        return {}
    return {
        item: dict(zip(names, values.tolist(), strict=True))
        for batch in stream.batches()
        for item, values in zip(batch.items, batch.X, strict=True)
        if item in items
    }
