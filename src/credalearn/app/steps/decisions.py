"""The stream of predictions and decisions that ``predict`` and ``defer`` share.

Shapes: N items of a batch, K classes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from credalearn._formats import shown
from credalearn.app.features import Features
from credalearn.app.item_stream import Batch, ItemStream
from credalearn.app.run import Run
from credalearn.app.steps.strata import strata_of_batch
from credalearn.app.table_writer import Schema
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.run import Predictor

Decide = Callable[[np.ndarray, Sequence[str]], np.ndarray]  # by scores and labels
SCHEMA: Schema = {
    "item": pl.String,
    "label": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "score": pl.Float64,
    "decision": pl.String,
}
SET_SCHEMA: Schema = {"set_lower": pl.Float64, "set_upper": pl.Float64}


def find_decision(run: Run, threshold: float | None) -> Decide:
    """What decides by the score: the threshold if there is one, else the run's guarantee."""
    if threshold is not None:
        return lambda score, _: np.where(score <= threshold, "predict", "defer")
    if run.guarantee is None:
        raise CredalError(
            f"{run.path} has no guarantee, so nothing can be decided. To fix: credalearn certify "
            f"{run.path} --max-error 0.10; or pass --threshold or --no-decision."
        )
    return run.guarantee.decide


def class_schema(classes: Sequence[str]) -> Schema:
    """Columns of every class, of the set before it is widened: ``probability_cat`` and so on."""
    parts = ("probability", "lower", "upper")
    return {f"{part}_{name}": pl.Float64 for name in classes for part in parts}


def decisions(
    run: Run, stream: ItemStream, decide: Decide | None, *, all_classes: bool = False
) -> Iterator[tuple[Batch, pl.DataFrame]]:
    """Batches of the stream with the columns that ``predict`` writes."""
    clf = run.predictor()
    hashes: list[pl.DataFrame] = []
    for batch in stream.batches:
        both = pl.DataFrame({"name": batch.items, "content": batch.digests})
        hashes.append(both.select(pl.all().hash(seed=20261115)))
        try:
            yield batch, _frame(run, clf, batch, decide, all_classes)
        except CredalError as error:
            raise _without_answer(run, clf, batch, stream) or error from error
    _refuse_duplicates(stream, hashes)


def _frame(
    run: Run, clf: "Predictor", batch: Batch, decide: Decide | None, all_classes: bool
) -> pl.DataFrame:
    predicted = clf.predict_credal(batch.X)
    index = predicted.classes.numpy()
    row = np.arange(len(index))
    score = predicted.score(run.deferral_score).double().numpy()
    label = pl.Series(run.classes, dtype=pl.String).gather(index)
    parts = [x.double().numpy() for x in (predicted.probs, predicted.lower, predicted.upper)]
    columns: dict[str, Any] = {
        "item": batch.items,
        "label": label,
        **dict(zip(("probability", "lower", "upper"), (x[row, index] for x in parts), strict=True)),
        "score": score,
    }
    if decide is not None:
        columns["decision"] = pl.Series(decide(score, label.to_list()), dtype=pl.String)
    if run.sets is not None:
        from credalearn.app.steps.voted_items import about_votes  # imports torch

        strata = strata_of_batch(run, run.sets, predicted, label, batch)
        widened = about_votes(run, predicted).conformalize(run.sets, strata=strata)
        columns["set_lower"] = widened.lower.double().numpy()[row, index]
        columns["set_upper"] = widened.upper.double().numpy()[row, index]
    if all_classes:
        values = (part[:, k] for k in range(len(run.classes)) for part in parts)
        columns |= dict(zip(class_schema(run.classes), values, strict=True))
    return pl.DataFrame(columns)


def failing_row(model: "Predictor", X: Features) -> tuple[int, CredalError] | None:
    """The first item that the model fails on, and why; None if it fails on none of them."""
    with suppress(CredalError):
        model.predict_credal(X)
        return None
    for row in range(len(X)):
        try:
            model.predict_credal(X[row : row + 1])
        except CredalError as error:
            return row, error
    return None


def _without_answer(
    run: Run, clf: "Predictor", batch: Batch, stream: ItemStream
) -> CredalError | None:
    """Which item the model fails on; None if it fails on none of them."""
    found = failing_row(clf, batch.X)
    if found is None:
        return None
    row, error = found
    if run.facts.imported or run.facts.inputs.texts:
        return CredalError(f"{stream.name}, item {shown(batch.items[row])}: {error}")
    largest = float(np.abs(batch.X[row]).max())
    return CredalError(
        f"{stream.name}: the model has no answer for item {shown(batch.items[row])}, whose largest "
        f"feature is {largest:.3g}: too far from the training items. To fix: correct the item, or "
        "leave it out."
    )


def _refuse_duplicates(stream: ItemStream, hashes: list[pl.DataFrame]) -> None:
    """Refuse equal names, by 16 bytes per item: 64-bit hashes of 20 million collide by 1e-5."""
    every = pl.concat(hashes)
    names, contents = every["name"].to_numpy(), every["content"]
    order = np.argsort(names, kind="stable")
    equal = np.flatnonzero(names[order][1:] == names[order][:-1])
    if len(equal):
        again = equal[order[equal + 1].argmin()]  # the first in the file
        first, second = int(order[again]), int(order[again + 1])
        same = contents[first] == contents[second]
        what = "the item is the same as" if same else "another item has the name of the one"
        fix = "keep one row per item" if same else "give every item its own name"
        raise CredalError(
            f"{stream.place(second)}: {what} in {stream.place(first).rpartition(', ')[2]}. To fix: "
            f"{fix}."
        )
