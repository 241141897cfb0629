"""``credalearn import``: another model's probabilities as a run."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.optimize import linear_sum_assignment

from credalearn._formats import listed, many, percent, shown
from credalearn._options import option, same_option
from credalearn.app._join import gold_column
from credalearn.app._split import HELD_OUT
from credalearn.app.annotations.table import Annotations, gold_alone
from credalearn.app.dataset import Dataset, DatasetOptions
from credalearn.app.features import (
    feature_values,
    find_categories,
    item_column,
    item_names,
    row_digests,
)
from credalearn.app.readers import read_votes
from credalearn.app.readers.options import ReaderOptions, refuse_reading
from credalearn.app.readers.tables import without_prefix
from credalearn.app.run import Run
from credalearn.app.run_files import write_run
from credalearn.app.sources import Source, open_source
from credalearn.app.staging import check_place, staged
from credalearn.app.steps.predict import failing_row
from credalearn.app.steps.recalibrate import HeldOutOptions
from credalearn.app.steps.train import TrainOptions, data_facts, recorded_options, run_tables
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions

_LABELS = ("label", "truth")
_ROUNDED = 0.02  # how far rounding to two digits takes a sum of probabilities from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(HeldOutOptions):
    """Options of ``import``, in Python and on the command line."""

    model_name: str | None = option(
        None, "Name of the model that made the probabilities.", show_default="the file's name"
    )
    drop: tuple[str, ...] = same_option(
        DatasetOptions, "drop", help="Column that is not a probability; may be repeated."
    )
    overwrite: bool = same_option(TrainOptions, "overwrite")


class GivenProbabilities:
    """A model whose inputs are its probabilities."""

    out_of_fold_ = None

    def predict_credal(self, X: Any) -> CredalPredictions:
        """Sets of one distribution each; rounded probabilities are divided by their sum."""
        sums = X.sum(1)
        wrong = ~((np.abs(sums - 1) <= _ROUNDED) & (X >= 0).all(1))
        if wrong.any():
            row = X[int(wrong.argmax())]
            fix = "leave out other numbers with drop="
            if np.isnan(row).any():
                fix = "fill the empty cells, or leave the item out"
            elif abs(row.sum() - 100) <= 100 * _ROUNDED:
                fix = "divide percentages by 100"
            elif (row < 0).any():
                fix = f"turn logits into probabilities, or {fix}"
            elif row.max() <= 1:
                fix = f"add the class that is missing, divide by the sum, or {fix}"
            raise CredalError(
                "probabilities must be 0 or more and sum to 1; got "
                f"{', '.join(f'{each:g}' for each in row[:8])}. To fix: {fix}."
            )
        probs = torch.from_numpy(X / sums[:, None])
        return CredalPredictions(probs, probs, probs)


def import_predictions(
    probs: Any, votes: Any, folder: str | Path, options: ImportOptions, reading: ReaderOptions
) -> Run:
    """Write a run of another model's probabilities: half of the items calibrate, half test."""
    output = Path(folder)
    check_place(output, overwrite=options.overwrite)
    name = options.model_name or "another model"
    if options.model_name is None and isinstance(probs, str | PathLike):
        name = Path(probs).name
    if isinstance(votes, Dataset):
        data = _of_dataset(probs, votes)
    else:
        data = _joined(probs, votes, options, reading)
    empty = np.where(np.isnan(data.X).any(1), "with an empty probability", "").tolist()
    data = data.split(HELD_OUT, without=empty) if data.part is None else data.without_training()
    with staged(output, overwrite=options.overwrite) as partial:
        facts = data_facts(data) | {"model": f"probabilities of {name}", "imported": name}
        used = recorded_options(TrainOptions(random_state=options.random_state), images=False)
        facts["options"] = used | {"method": "imported", "backbone": ""}
        write_run(partial, facts, run_tables(data, GivenProbabilities()), model_sha256="")
    return Run.load(output)


def imported_lines(run: Run) -> list[str]:
    """What the command prints."""
    facts, judged = run.facts, run.held_out("test").drop_nulls("wrong")
    test, warning = judged["wrong"], []
    sizes = ", ".join(f"{number:,} {name}" for name, number in facts.splits.items())
    right = ""
    if len(test):
        share = 1 - float(test.to_numpy().mean())
        columns = [judged[name].cast(pl.Enum(run.classes)).to_physical() for name in _LABELS]
        pairs = np.zeros((len(run.classes), len(run.classes)))
        np.add.at(pairs, tuple(column.to_numpy() for column in columns), 1)
        best = float(pairs[linear_sum_assignment(pairs, maximize=True)].sum()) / len(test)
        if best - share > 4 * (0.25 / len(test)) ** 0.5:  # four standard errors: not by chance
            warning = [
                f"With the columns of its classes swapped, the model would be right on "
                f"{percent(best)} of these items. To fix: check which column is which class."
            ]
        right = f"; right on {percent(share)} of {many(len(test), 'test item')} by {facts.truth}"
    return [
        *(f"Left out: {many(each, 'item')} {why}" for why, each in facts.inputs.left_out.items()),
        f"{many(len(run.classes), 'class', 'classes')}: {listed(run.classes)}",
        f"Wrote {run.path}: {facts.learner}; items: {sizes}{right}.",
        *warning,
        f"Next: credalearn certify {run.path} --max-error 0.10",
    ]


def _of_dataset(probs: Any, data: Dataset) -> Dataset:
    """The items of a dataset, with probabilities as inputs."""
    classes = data.annotations.classes
    table = _in_memory(probs, data.items, classes)
    found = Dataset(data.annotations, features=table, names=classes, skip_missing=True)
    row_of = {item: row for row, item in enumerate(found.items)}
    if missing := [item for item in data.items if item not in row_of]:
        have = many(len(missing), "item has", "items have")
        raise CredalError(f"{have} no probabilities: {listed(missing)}.")
    _check(found.inputs.path, found.items, found.X)
    X = found.X[[row_of[item] for item in data.items]]
    return data.with_values(X=X, digests=row_digests(X), inputs=found.inputs)


def _joined(probs: Any, votes: Any, options: ImportOptions, reading: ReaderOptions) -> Dataset:
    if isinstance(probs, np.ndarray | torch.Tensor) and not isinstance(votes, Annotations | None):
        votes = read_votes(votes, reading)
    elif isinstance(votes, Annotations):
        refuse_reading(reading)
    if isinstance(votes, Annotations):
        probs = _in_memory(probs, votes.items, votes.classes)
    source = open_source(probs)
    names = _class_columns(source, options)
    classes = tuple(without_prefix(names))
    if votes is None:
        votes = gold_alone(options.gold, classes)
    elif isinstance(votes, Annotations):
        if set(votes.classes) != set(classes):
            source.refuse(
                f"its classes are {listed(classes)}; those of the votes: {listed(votes.classes)}",
                fix="read the votes with these classes",
            )
        names = [names[classes.index(each)] for each in votes.classes]
    else:
        votes = read_votes(votes, replace(reading, classes=classes))
    chosen = {each.name: getattr(options, each.name) for each in fields(HeldOutOptions)}
    inputs = {"features": source, "names": tuple(names), "called": "probabilities"}
    return Dataset(votes, **inputs, drop=options.drop, **chosen)


def _in_memory(probs: Any, items: Any, classes: tuple[str, ...]) -> Any:
    """An array with the names of its items and classes; a table or path stays as it is."""
    if isinstance(probs, np.ndarray | torch.Tensor):
        if tuple(probs.shape) != (len(items), len(classes)):
            raise CredalError(
                f"probs must have the shape ({len(items)}, {len(classes)}), items and classes of "
                f"the annotations; got {tuple(probs.shape)}. To fix: pass a table with a column of "
                "items."
            )
        by_class = dict(zip(classes, np.asarray(probs).T, strict=True))
        probs = pl.DataFrame({"item": list(items), **by_class})
    return probs


def _class_columns(source: Source, options: ImportOptions) -> list[str]:
    """The columns of numbers that are not named for something else."""
    asked = filter(None, (options.group, options.split, gold_column(options.gold)))
    beside = [*asked, *(source.column(name, option="drop") for name in options.drop)]
    item = item_column(source, (options.item,), beside)
    left = [name for name in source.columns if name not in (item, *beside)]
    table = source.read((item, *left))
    texts = find_categories(table.select(left)) if left else ()
    names = [name for name in left if name not in texts]
    if len(names) < 2:
        source.refuse(
            f"there must be one column of probabilities per class; got {listed(names) or 'none'}",
            fix="name the columns after the classes",
        )
    items = item_names(source, table[item])
    X = np.asarray(feature_values(source, table.select(names), items))
    given = ~np.isnan(X).any(1) | (not options.skip_missing)
    _check(source.path, items.filter(given), X[given])
    return names


def _check(path: str | Path, items: Sequence[str] | pl.Series, X: Any) -> None:
    """Refuse an item whose numbers are no probabilities."""
    if found := failing_row(GivenProbabilities(), X):
        row, error = found
        raise CredalError(f"{path}, item {shown(items[row])}: {error}")
