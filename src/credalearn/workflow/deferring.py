"""``credalearn defer``: what the model leaves to people, least certain first."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from credalearn.annotations.places import listed, shown
from credalearn.checks import check_choice
from credalearn.errors import CredalError
from credalearn.files import check_file, whole_file
from credalearn.workflow.items.batches import Stream, broken_lines
from credalearn.workflow.items.digests import DIGEST, image_digest
from credalearn.workflow.items.inputs import IMAGE_SUFFIXES, find_images
from credalearn.workflow.items.known import other_content
from credalearn.workflow.items.names import unescaped
from credalearn.workflow.items.streaming import open_stream
from credalearn.workflow.label_studio import LOCAL_FILES, ROW, image_address, interface, task
from credalearn.workflow.predicting import SCHEMA, SET_SCHEMA, class_schema, decisions
from credalearn.workflow.run.folder import RunFolder
from credalearn.workflow.run.overwriting import refuse_overwriting, refuse_overwriting_run
from credalearn.workflow.run.rules import find_rule
from credalearn.workflow.tables.blocks import blocks, columns_of
from credalearn.workflow.tables.naming import naming
from credalearn.workflow.tables.writing import write_frames

_NUMBERS = ("probability", "lower", "upper", "score")
_FOR_PEOPLE = ("annotator", "label")  # empty columns of the CSV, to be filled in
_CONFIG = ".label_config.xml"  # after the output's name: two runs may share a folder


@dataclass(frozen=True, slots=True)
class DeferSummary:
    """What was handed over.

    Args:
        output: The file of tasks.
        config: The labelling interface beside it, for Label Studio.
        items: How many items were decided about.
        deferred: How many of them are deferred.
        written: How many of those were written; fewer where a limit was given.
        broken: Why images could not be read, by item.
        same_names: How many of the written are called like items of the run, where nothing tells
            whether they are those.

    Example:
        >>> from credalearn.workflow.deferring import DeferSummary
        >>> DeferSummary(Path("tasks.json"), Path("tasks.label_config.xml"), 10, 4, 4).written
        4
    """

    output: Path
    config: Path | None
    items: int
    deferred: int
    written: int
    broken: Mapping[str, str] = field(default_factory=dict)
    same_names: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        kept = f", the {self.written:,} least certain written" * (self.written < self.deferred)
        told = broken_lines(self.broken)
        told += [f"{self.deferred:,} of {self.items:,} items are deferred{kept}", f"{self.output}"]
        if self.config is not None:
            told.append(f"{self.config}: the labelling interface")
        if self.same_names:
            told.append(
                f"{self.same_names:,} of them are called like items of the run: if they are not "
                "those, rename them, or their votes will be taken for votes about those"
            )
        return tuple(told)


def defer(
    run: RunFolder,
    source: str | Path,
    output: str | Path,
    *,
    to: Literal["label-studio", "csv"] = "label-studio",
    threshold: float | None = None,
    limit: int | None = None,
    item: str | None = None,
    images: str | Path | None = None,
    image_prefix: str = LOCAL_FILES,
    predictions: bool = True,
) -> DeferSummary:
    """Write the deferred items, least certain first.

    A task shows the image, or the text and the numbers of the item's row; the numbers only where
    source is the data, as ``predict`` does not repeat them.

    Args:
        run: A finished run.
        source: The data, or what ``predict`` wrote about them.
        output: A JSON file of tasks, such as ``tasks.json``, with the labelling interface beside
            it, ``tasks.label_config.xml``; or a CSV whose columns ``annotator`` and ``label`` are
            empty, to be filled in and read back as votes.
        to: Which of the two.
        threshold: Predict up to this score, instead of the rule; only where source is the data.
        limit: Write at most this many.
        item: Column of the data that names the items.
        images: Folder of the images, where source is what ``predict`` wrote.
        image_prefix: What stands before an image's path within its folder; Label Studio's address
            of local files unless given.
        predictions: False hides from the annotators what the model said, which may sway them.

    Raises:
        CredalError: If source is neither, nothing is deferred, an item has the name of one of the
            run and is another, or the output is the source or a file that the run was trained on.
    """
    check_choice(to, ("label-studio", "csv"), name="to")
    output = check_file(output, (".json" if to == "label-studio" else ".csv",))
    if limit is not None and limit < 1:
        raise CredalError(f"limit must be 1 or more; got {limit}.")
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
    num_items, kept = 0, []
    for frame in frames:
        num_items += len(frame)
        kept.append(frame.filter(pl.col("decision") == "defer"))
    deferred = pl.concat(kept, how="diagonal_relaxed") if kept else pl.DataFrame(schema=SCHEMA)
    if not len(deferred):
        raise CredalError(f"none of the {num_items} items in {source} is deferred.")
    chosen = deferred.sort("score", descending=True, maintain_order=True).head(
        limit or len(deferred)
    )
    broken = {} if stream is None else dict(stream.broken)
    same = _refuse_other_content(run, source, chosen, images)
    chosen = chosen.drop(DIGEST, strict=False)
    if to == "csv":
        _write_csv(output, chosen, predictions)
        return DeferSummary(output, None, num_items, len(deferred), len(chosen), broken, same)
    if run.facts["inputs"]["kind"] == "images":
        chosen = _with_images(chosen, images, image_prefix)
        stream = None
    seen = {} if stream is None else _features(run, stream, set(chosen["item"]))
    config = _write_tasks(run, output, chosen, seen, predictions)
    return DeferSummary(output, config, num_items, len(deferred), len(chosen), broken, same)


def _refuse_other_content(
    run: RunFolder, source: Path, chosen: pl.DataFrame, images: str | Path | None
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
        if run.facts["inputs"]["kind"] == "images":
            fix += "; or move their folder into that of the training's images, and give the latter"
        raise CredalError(
            f"{len(others):,} of the deferred items in {source} have the name of an item of "
            f"{run.path} and are not that item, such as {shown(others[0])}: their votes would be "
            f"taken for votes about it. To fix: {fix}."
        )
    return 0


def is_decisions(path: Path) -> bool:
    """Whether a file is what ``predict`` wrote, by its columns.

    Raises:
        CredalError: If it is, but without decisions.
    """
    if path.is_dir() or path.suffix.lower() in (".npy", ".npz"):
        return False
    if path.suffix.lower() == ".jsonl":
        with naming(path):
            columns = pl.scan_ndjson(path).collect_schema().names()
    else:
        columns = columns_of(path)
    if not {"item", "label", *_NUMBERS} <= set(columns):
        return False
    if "decision" not in columns:
        raise CredalError(
            f"{path} holds predictions without decisions. To fix: predict again with a rule or a "
            "threshold."
        )
    return True


def read_decisions(path: Path, classes: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """What ``predict`` wrote, checked, without bounds that are not those of ``SCHEMA``.

    Raises:
        CredalError: If a value cannot be one of ``predict``'s, or an item comes twice.
    """
    seen: set[str] = set()
    bounds = [*SET_SCHEMA, *class_schema(classes)]  # else annotators would be shown them
    jsonl = path.suffix.lower() == ".jsonl"
    with naming(path):
        frames = iter([pl.read_ndjson(path)]) if jsonl else blocks(path)
        for frame in frames:
            frame = _typed(path, frame).drop(bounds, strict=False)
            _check(path, frame, "decision", pl.col("decision").is_in(["predict", "defer"]))
            _check(path, frame, "label", pl.col("label").is_in(list(classes)))
            _check(path, frame, "score", pl.col("score").is_between(0, 1))
            _check(path, frame, "item", pl.col("item") != "")
            for name in frame.filter(pl.col("decision") == "defer")["item"]:
                if name in seen:
                    raise CredalError(f"{path}: the item {name!r} comes twice.")
                seen.add(name)
            yield frame


def _typed(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    numbers = frame.with_columns(pl.col(*_NUMBERS).cast(pl.Float64, strict=False))
    texts = ["item", "label", "decision"]
    frame = numbers.with_columns(pl.col(*texts).cast(pl.String))
    if path.suffix.lower() in (".csv", ".tsv"):
        suspects = pl.col("item", "label").str.starts_with("'")
        if frame.select(suspects.any()).row(0) != (False, False):
            frame = frame.with_columns(
                pl.col("item", "label").map_elements(unescaped, return_dtype=pl.String)
            )
    return frame


def _check(path: Path, frame: pl.DataFrame, column: str, ok: pl.Expr) -> None:
    good = frame.select(ok.fill_null(False)).to_series()
    if not good.all():
        row = (~good).arg_max() or 0
        raise CredalError(
            f"{path} is not what predict wrote with this run: {column} {shown(frame[column][row])} "
            f"of item {shown(frame['item'][row])}. To fix: predict again."
        )


def _with_images(frame: pl.DataFrame, folder: str | Path | None, prefix: str) -> pl.DataFrame:
    """The same with the address of each image."""
    items = frame["item"].to_list()
    if folder is not None:
        files = find_images(folder, items)
        missing = [name for name in items if name not in files]
        if missing:
            raise CredalError(f"{folder} has no image of {len(missing)} items: {listed(missing)}.")
        paths = [files[name].relative_to(folder).as_posix() for name in items]
    elif "image" in frame.columns:
        paths = frame["image"].to_list()
    else:
        paths = items
        bare = [name for name in items if not name.lower().endswith(IMAGE_SUFFIXES)]
        if bare:
            raise CredalError(
                f"the file of the image {shown(bare[0])} is not known. To fix: name the folder of "
                "the images with --images."
            )
    addresses = [image_address(path, prefix) for path in paths]
    return frame.with_columns(pl.Series("image", addresses, dtype=pl.String))


def _features(run: RunFolder, stream: Stream, items: set[str]) -> dict[str, dict[str, float]]:
    """What the model saw of these items, by name."""
    names = run.facts["inputs"]["features"]
    return {
        item: dict(zip(names, values.tolist(), strict=True))
        for batch in stream.batches()
        for item, values in zip(batch.items, batch.X, strict=True)
        if item in items
    }


def _write_tasks(
    run: RunFolder,
    output: Path,
    frame: pl.DataFrame,
    seen: dict[str, dict[str, float]],
    predictions: bool,
) -> Path:
    extra = [name for name in frame.columns if name not in SCHEMA]
    image = run.facts["inputs"]["kind"] == "images"
    field = "image" if image else ("text" if "text" in extra else "item")
    facts = run.facts
    model = f"{run.path.resolve().name}, {facts['method']}, {facts['created']}"
    with whole_file(output) as partial, partial.open("w", encoding="utf-8") as file:
        before = "[\n"
        for row in frame.iter_rows(named=True):
            data = {name: _plain(row[name]) for name in extra if row[name] is not None}
            if seen:
                # Under one name, so that no feature takes the place of the item's.
                data[ROW] = {**seen[row["item"]], **data}
            label = row["label"] if predictions else None
            made = task(row["item"], data, label=label, lower=row["lower"], model=model)
            file.write(before + json.dumps(made, ensure_ascii=False, allow_nan=False))
            before = ",\n"
        file.write("\n]\n")
    config = output.with_suffix(_CONFIG)
    with whole_file(config) as partial:
        text = interface(run.classes, image=image, field=field, row=bool(seen))
        partial.write_text(f"{text}\n", encoding="utf-8")
    return config


def _plain(value: Any) -> Any:
    """As JSON holds it: dates and lists of other columns as text."""
    return value if isinstance(value, str | int | bool) else str(value)


def _write_csv(output: Path, frame: pl.DataFrame, predictions: bool) -> None:
    # Under names of their own: "lower" would be read back as a stated bound, "label" as a vote.
    said = [pl.col(name).alias(f"model_{name}") for name in ("label", *_NUMBERS)]
    extra = [name for name in frame.columns if name not in {*SCHEMA, *_FOR_PEOPLE}]
    empty = [pl.lit(None, dtype=pl.String).alias(name) for name in _FOR_PEOPLE]
    frame = frame.select("item", *(said if predictions else ()), *extra, *empty)
    write_frames(output, iter([frame]), {name: type(kind) for name, kind in frame.schema.items()})
