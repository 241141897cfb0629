"""``credalearn defer``: the items that the model leaves to people, least certain first.

Label Studio's tasks are its basic JSON format with predictions, as
https://labelstud.io/guide/predictions describes it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import polars as pl

from credalearn._files import whole_file
from credalearn._formats import listed, many, visible
from credalearn._options import Options, option, same_option
from credalearn.app.facts import Printed
from credalearn.app.item_stream import Batch, open_items
from credalearn.app.run import Run
from credalearn.app.sources import Tabular
from credalearn.app.steps.predict import (
    PredictOptions,
    decisions,
    find_decision,
    made_by,
    unreadable_lines,
)
from credalearn.app.steps.unseen_values import unseen_warnings
from credalearn.app.table_writer import check_output, write_frames
from credalearn.errors import CredalError

CHOICES, SHOWN, ROW = "label", "item", "row"
LOCAL_FILES = "/data/local-files/?d="  # where Label Studio serves files of its own machine
_FIELD = re.compile(r"\w+", re.ASCII)  # a field that Label Studio finds as $NAME
_SUFFIXES = {"label-studio": ".json", "csv": ".csv"}
_NEW_INPUTS = {  # without them, training would leave out the new items
    "features": " --features OLD --features NEW --skip-missing",
    "images": ", with the new images in the folder of the old ones",
    "texts": "",  # annotators return them
}
_MOST_FEATURES = 30  # shown as a table: nobody reads the 384 numbers of an embedding


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferOptions(Options):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deferred(Tabular, Printed):
    """What ``defer`` wrote."""

    output: Path  # the tasks
    config: Path | None  # the labeling interface of Label Studio
    items: int  # number of items in the data
    deferred: int  # how many of them are deferred
    written: int  # how many of those were written
    shown: str  # what annotators see of an item
    made_by: dict[str, Any]  # the run, and the guarantee or threshold, as in ``Decisions``
    unreadable: dict[str, str]  # why an image could not be read, by item
    warnings: tuple[str, ...]  # about values that training did not have
    table: pl.DataFrame  # item, label, lower and score of those that were written
    next_step: str = ""  # how to add their votes to the training; empty for an imported run

    @property
    def lines(self) -> list[str]:
        """What the command prints."""
        lines = [*unreadable_lines(self.unreadable), *self.warnings]
        if not self.written:
            least = "for the 50 least certain ones, pass threshold=0 and limit=50"
            none = f"{many(self.items, 'item')}: none deferred, so {self.output} is empty"
            return [*lines, f"{none}; {least}."]
        lines += [
            f"{many(self.items, 'item')}: {self.deferred:,} deferred.",
            f"Wrote {self.output}: {many(self.written, 'item')}, least certain first.",
        ]
        if self.config is not None:
            lines.append(f"Wrote {self.config}: the labeling interface; it shows {self.shown}.")
        return [*lines, f"Next: {self.next_step}."] if self.next_step else lines


def defer(run: Run, data: Any, output: str | Path, options: DeferOptions | None = None) -> Deferred:
    """Write the deferred items for annotators, least certain first."""
    options = options or DeferOptions()
    wanted, other = _SUFFIXES[options.to], "csv" if options.to == "label-studio" else "label-studio"
    if Path(output).suffix.lower() == _SUFFIXES[other]:
        raise CredalError(
            f"the output must end in {wanted}; got {output}. To fix: name it "
            f"{Path(output).with_suffix(wanted)}, or pass to={other!r}."
        )
    path = check_output(output, run, data=data, suffixes=(wanted,))
    stream = open_items(run, data, item=options.item)
    columns = (*run.facts.inputs.texts, *stream.ignored)
    if options.text is not None and options.text not in columns:
        raise CredalError(
            f"{stream.name} has no column {options.text!r} of texts; its other columns are: "
            f"{listed(columns) or 'none'}. To fix: name one of these, or leave out text=."
        )
    count, parts = 0, []  # the deferred items, with their digest and what is known of them
    for batch, frame in decisions(run, stream, find_decision(run, options.threshold)):
        count += len(frame)
        parts.append(pl.DataFrame(_columns(batch, frame, run)).filter(frame["decision"] == "defer"))
    found = pl.concat(parts, how="diagonal_relaxed")
    chosen = found.sort("score", descending=True, maintain_order=True).head(options.limit or count)
    same = chosen.join(run.items, on="item", how="inner")
    others = same.filter(pl.col("digest") != pl.col("digest_right"))["item"]
    if len(others):  # their votes would be mixed up
        raise CredalError(
            f"deferred items of {stream.name} have the names of different items of {run.path}: "
            f"{listed(others.to_list(), 3)}. To fix: rename them."
        )
    config = None
    if options.to == "csv":
        _write_csv(path, chosen, options.predictions, run.facts.inputs.features)
        few = len(run.facts.inputs.features) <= _MOST_FEATURES
        shown = "all columns" if few else "the columns that are not features"
    else:
        config = path.with_suffix(".label_config.xml")
        shown = _write_label_studio(run, path, config, chosen, options)
    made, unreadable = made_by(run, options.threshold), dict(stream.unreadable)
    notes, table = unseen_warnings(stream.unseen), chosen.select("item", "label", "lower", "score")
    sizes = (count, len(found), len(chosen))
    merge = f"credalearn train … --merge ANNOTATED{_NEW_INPUTS[run.facts.inputs.kind]}"
    next_step = "" if run.facts.imported else f"add the new votes with {merge}"
    return Deferred(path, config, *sizes, shown, made, unreadable, notes, table, next_step)


def _columns(batch: Batch, frame: pl.DataFrame, run: Run) -> Iterator[pl.Series]:
    """Item, label, lower, score, digest; then the other columns, and the features if few."""
    yield from frame.select("item", "label", "lower", "score").get_columns()
    yield pl.Series("digest", batch.digests, dtype=pl.String)
    for column in batch.extra.get_columns():  # with a prefix, so that none hides one of ours
        yield column.alias(f"data:{column.name}")
    names = run.facts.inputs.features
    if len(names) <= _MOST_FEATURES:
        for number, name in enumerate(names):
            yield pl.Series(f"data:{name}", batch.X[:, number])


def _write_csv(
    path: Path, chosen: pl.DataFrame, predictions: bool, features: Iterable[str]
) -> None:
    """One row per item, with empty columns ``annotator`` and ``label`` to fill in."""
    # Under other names: "lower" would be read back as a stated bound, "label" as a vote.
    said = [pl.col(name).alias(f"model_{name}") for name in ("label", "lower", "score")]
    empty = [pl.lit(None, dtype=pl.String).alias(name) for name in ("annotator", "label")]
    taken = {"item", "annotator", "label", "model_label", "model_lower", "model_score"}
    own = {name: name.removeprefix("data:") for name in chosen.columns if name.startswith("data:")}
    # "weight" would be read back as that of the vote.
    own |= {f"data:{name}": f"feature_{name}" for name in features if f"data:{name}" in own}
    extra = [pl.col(column).alias(name) for column, name in own.items() if name not in taken]
    frame = chosen.select("item", *(said if predictions else ()), *extra, *empty)
    frame = frame.with_columns(pl.selectors.float().fill_nan(None))
    write_frames(path, iter([frame]), frame.schema)


def _write_label_studio(
    run: Run, path: Path, config: Path, chosen: pl.DataFrame, options: DeferOptions
) -> str:
    """Write tasks and interface; returns what the interface shows."""
    data = [name for name in chosen.columns if name.startswith("data:")]
    text = f"data:{options.text or (*run.facts.inputs.texts, 'text')[0]}"
    shown = "data:image" if run.takes_images else text if text in data else "item"
    field = shown.removeprefix("data:").removeprefix("data.")
    if shown == text and (not _FIELD.fullmatch(field) or field in ("item", ROW)):
        field = "text"  # Label Studio cannot find the column by its own name
    facts = run.facts
    trained = {*facts.inputs.texts, facts.group, facts.gold, facts.split}  # for the next training
    maker = facts.imported or facts.options["method"]
    model = f"{run.path.resolve().name}, {maker}, {facts.created}"
    tasks = []
    for row in chosen.iter_rows(named=True):
        others = {name.removeprefix("data:"): row[name] for name in data if name != shown}
        # What JSON has: a missing number is left out, and others, such as dates, become text.
        others = {
            name: value if isinstance(value, str | int | float | bool) else str(value)
            for name, value in others.items()
            if value is not None and value == value
        }
        said = "" if row[shown] is None else str(row[shown])
        said = options.image_prefix + quote(said, safe="/") if run.takes_images else said
        own = {name: x for name, x in others.items() if name.startswith("data.") or name in trained}
        own = {name.removeprefix("data."): x for name, x in own.items()}
        task: dict[str, Any] = {"data": {**own, "item": row["item"]}}
        task["data"] |= {ROW: others} if others else {}
        task["data"] |= {} if shown == "item" else {field: said}
        if options.predictions:
            question = {"from_name": CHOICES, "to_name": SHOWN, "type": "choices"}
            result = {"id": "predicted", **question, "value": {"choices": [row["label"]]}}
            made = {"model_version": model, "score": row["lower"], "result": [result]}
            task["predictions"] = [made]
        tasks.append(json.dumps(task, ensure_ascii=False, allow_nan=False))
    has_row = any(name != shown for name in data)
    xml = interface(run.classes, image=run.takes_images, field=field, row=has_row)
    for file, content in ((path, "[\n" + ",\n".join(tasks) + "\n]\n"), (config, xml)):
        with whole_file(file) as partial:
            partial.write_text(content, encoding="utf-8")
    what = "the image" if run.takes_images else f"the column {shown.removeprefix('data:')!r}"
    return f"{what} and a table of the other columns" if has_row else what


def interface(classes: Iterable[str], *, image: bool, field: str, row: bool) -> str:
    """The labeling interface of the tasks, as XML."""
    choices = "\n".join(f"    <Choice value={quoteattr(visible(name))}/>" for name in classes)
    tag = "Image" if image else "Text"
    table = f'  <Table name="{ROW}" value="${ROW}"/>\n' if row else ""
    return (
        f'<View>\n  <{tag} name="{SHOWN}" value={quoteattr(f"${field}")}/>\n{table}'
        f'  <Choices name="{CHOICES}" toName="{SHOWN}" choice="single" required="true">\n'
        f"{choices}\n  </Choices>\n</View>\n"
    )
