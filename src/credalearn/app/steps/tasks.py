"""Deferred items as tasks: for Label Studio, or as a table to be filled in."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl

from credalearn._files import whole_file
from credalearn.app.annotations.places import listed, shown
from credalearn.app.items.inputs import IMAGE_SUFFIXES, find_images
from credalearn.app.run import Run
from credalearn.app.steps.decided import NUMBERS
from credalearn.app.steps.label_studio import ROW, image_address, interface, task
from credalearn.app.steps.predicting import SCHEMA
from credalearn.app.steps.shown_text import other_columns
from credalearn.app.tables.writing import write_frames
from credalearn.errors import CredalError

_FOR_PEOPLE = ("annotator", "label")  # empty columns of the CSV, to be filled in
_CONFIG = ".label_config.xml"  # after the output's name: two runs may share a folder
_FOUND = re.compile(r"\w+", re.ASCII)  # a field that Label Studio finds by $ and its name


def with_images(frame: pl.DataFrame, folder: str | Path | None, prefix: str) -> pl.DataFrame:
    """The same with the address of each image.

    Args:
        frame: With a column ``item``, and ``image`` where the paths of the images are known.
        folder: Of the images, where they are to be looked for.
        prefix: What stands before an image's path.

    Raises:
        CredalError: If an item has no image there, or nothing tells the file of an image.

    Example:
        >>> with_images(pl.DataFrame({"item": ["a b.png"]}), None, "https://x.org/")["image"][0]
        'https://x.org/a%20b.png'
    """
    items = frame["item"].to_list()
    if folder is not None:
        files = find_images(folder, items)
        missing = [name for name in items if name not in files]
        if missing:
            raise CredalError(
                f"{folder} has no image of {len(missing):,} items: {listed(missing)}. To fix: name "
                "the folder that was given to predict."
            )
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


def write_tasks(
    run: Run,
    output: Path,
    frame: pl.DataFrame,
    seen: dict[str, dict[str, float]],
    predictions: bool,
    *,
    field: str,
) -> Path:
    """Write a task an item for Label Studio, and its labeling interface beside them.

    Args:
        run: Whose model predicted.
        output: The file of tasks, JSON.
        frame: The items, in order, with the columns of ``SCHEMA`` and those to be shown.
        seen: What the model saw of each item, to be shown; empty where that is an image, or not
            known.
        predictions: False leaves out what the model said.
        field: The column that is shown; in a task it has another name if Label Studio cannot find
            it by its own.

    Returns:
        The file of the interface.

    Raises:
        CredalError: If one cannot be written.
    """
    extra = other_columns(frame)
    shown_as = field if _FOUND.fullmatch(field) and field != ROW else "text"
    facts = run.facts
    model = f"{run.path.resolve().name}, {facts.method}, {facts.created}"
    with whole_file(output) as partial, partial.open("w", encoding="utf-8") as file:
        before = "[\n"
        for row in frame.iter_rows(named=True):
            data = {name: _plain(row[name]) for name in extra if row[name] is not None}
            if seen:
                # Under one name, so that no feature takes the place of the item's.
                read = {name: value for name, value in data.items() if name != field}
                data[ROW] = {**seen[row["item"]], **read}
            if field != "item":
                data[shown_as] = "" if row[field] is None else _plain(row[field])
            label = row["label"] if predictions else None
            made = task(row["item"], data, label=label, lower=row["lower"], model=model)
            file.write(before + json.dumps(made, ensure_ascii=False, allow_nan=False))
            before = ",\n"
        file.write("\n]\n")
    config = output.with_suffix(_CONFIG)
    with whole_file(config) as partial:
        text = interface(run.classes, image=run.takes_images, field=shown_as, row=bool(seen))
        partial.write_text(f"{text}\n", encoding="utf-8")
    return config


def write_csv(output: Path, frame: pl.DataFrame, predictions: bool) -> None:
    """Write a row an item, with empty columns ``annotator`` and ``label`` to be filled in.

    Args:
        output: The file.
        frame: The items, in order, with the columns of ``SCHEMA`` and others.
        predictions: False leaves out what the model said.

    Raises:
        CredalError: If it cannot be written.
    """
    # Under names of their own: "lower" would be read back as a stated bound, "label" as a vote.
    said = [pl.col(name).alias(f"model_{name}") for name in ("label", *NUMBERS)]
    extra = [name for name in frame.columns if name not in {*SCHEMA, *_FOR_PEOPLE}]
    empty = [pl.lit(None, dtype=pl.String).alias(name) for name in _FOR_PEOPLE]
    frame = frame.select("item", *(said if predictions else ()), *extra, *empty)
    write_frames(output, iter([frame]), {name: type(kind) for name, kind in frame.schema.items()})


def _plain(value: Any) -> Any:
    """As JSON holds it: dates and lists of other columns as text."""
    return value if isinstance(value, str | int | bool) else str(value)
