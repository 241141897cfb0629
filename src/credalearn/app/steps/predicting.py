"""``credalearn predict``: a label, its bounds and a decision for each item, in a stream.

Shapes: N items of a batch, K classes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch

from credalearn._formats import percent
from credalearn.app.annotations.places import listed, shown
from credalearn.app.items.batches import Batch, Stream, broken_lines, rebatched
from credalearn.app.items.digests import DIGEST
from credalearn.app.items.known import KnownItems, known_items
from credalearn.app.items.streaming import open_stream
from credalearn.app.outputs import refuse_overwriting, refuse_overwriting_run
from credalearn.app.run import Run
from credalearn.app.steps.cut import Cut, find_rule
from credalearn.app.steps.least_certain import defer_least_certain
from credalearn.app.tables.decimal_commas import said_of_commas
from credalearn.app.tables.twice import Twice, first_twice
from credalearn.app.tables.writing import check_output, write_frames
from credalearn.conformal import Inflation
from credalearn.errors import CredalError
from credalearn.estimator import CredalClassifier
from credalearn.guarantees import Guarantee
from credalearn.methods.model import items_at_once
from credalearn.predictions import CredalPredictions

SCHEMA: dict[str, type[pl.DataType]] = {
    "item": pl.String,
    "label": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "score": pl.Float64,
    "decision": pl.String,
}
SET_SCHEMA: dict[str, type[pl.DataType]] = {"set_lower": pl.Float64, "set_upper": pl.Float64}


@dataclass(frozen=True, slots=True)
class PredictSummary:
    """What was predicted.

    Args:
        output: The file that was written.
        items: How many items it holds.
        deferred: How many of them are deferred; None where nothing was decided.
        threshold: Largest score that is predicted; None: all are deferred, or nothing decided, or
            as many deferred as were asked.
        ignored: Columns of the data that are no features of the model.
        broken: Why images could not be read, by item.
        seconds: How long it took.
        wanted: How many were to be deferred; None where a threshold decides.
        trained: How many of the items the model was trained on, by what they hold.
        commas: Features in which decimal commas were read.

    Example:
        >>> PredictSummary(Path("d.csv"), 4, 1, 0.4, (), {}, 0.1).coverage
        0.75
    """

    output: Path
    items: int
    deferred: int | None
    threshold: float | None
    ignored: tuple[str, ...]
    broken: dict[str, str]
    seconds: float
    wanted: int | None = None
    trained: int = 0
    commas: tuple[str, ...] = ()

    @property
    def coverage(self) -> float | None:
        """Share of the items that are predicted; None where nothing was decided."""
        return None if self.deferred is None else 1 - self.deferred / self.items

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        told = broken_lines(self.broken)
        if self.ignored:
            told.append(f"ignored: columns that are no features, {listed(self.ignored)}")
        if self.commas:
            told.append(said_of_commas(self.commas))
        if self.deferred is not None:
            kept = self.items - self.deferred
            told.append(
                f"predict {kept:,} and defer {self.deferred:,} of {self.items:,} items "
                f"({percent(kept / self.items, decimals=1)} kept)"
            )
        if self.wanted is not None and self.wanted > self.items:
            told.append(f"--defer {self.wanted}: all are deferred, as there are no more items")
        if self.trained:
            told.append(
                f"{self.trained:,} of these items were trained on: what is promised is about others"
            )
        told.append(f"{self.output}: {self.items:,} items in {self.seconds:.1f} s")
        return tuple(told)


def predict(
    run: Run,
    data: str | Path,
    output: str | Path,
    *,
    threshold: float | None = None,
    decide: bool = True,
    defer: int | None = None,
    item: str | None = None,
    all_classes: bool = False,
    batch_rows: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> PredictSummary:
    """Predict every item of a file or folder; memory does not grow with the number of rows.

    The output holds ``item``, ``label`` (always the predicted class), ``probability``, ``lower``
    and ``upper`` (of that class), ``score`` (1 − lower) and ``decision`` (predict or defer), an
    item a row in the order of the data. Where the run has a ``sets.json``, ``set_lower`` and
    ``set_upper`` follow: the class's bounds in the widened set, which decide nothing. With
    ``all_classes`` the columns of :func:`class_schema` come last.

    Args:
        run: A finished run; its ``guarantee.json`` decides.
        data: Features (CSV, TSV, Parquet, npy, npz), by name in any order, or a folder of images.
        output: CSV, TSV, Parquet or JSON lines, by its suffix; whole or not at all.
        threshold: Predict up to this score, instead of the rule.
        decide: False leaves the decision out, and needs no rule.
        defer: Defer so many of these items, the least certain, instead of by the rule; nothing is
            promised then.
        item: Column that names the items.
        all_classes: Whether the probability and the bounds of every class are written too.
        batch_rows: Items at a time; None: what the networks take at once, so that Monte-Carlo
            dropout says what it says of the whole table.
        progress: Called with the number of items after each batch.

    Raises:
        CredalError: If there is no rule, the data do not fit the model, an item comes twice, or
            the output is the data or a file that the run was trained on.
    """
    started = time.monotonic()
    output = check_output(output)
    refuse_overwriting(output, data)
    refuse_overwriting_run(output, run)
    rule, sets = _rule(run, threshold, decide, defer), run.sets
    stream = open_stream(run, data, item=item)
    schema = {name: kind for name, kind in SCHEMA.items() if decide or name != "decision"}
    schema |= {} if sets is None else SET_SCHEMA
    schema |= class_schema(run.classes) if all_classes else {}
    tally = _Tally(known_items(run, ["train"]), progress)
    frames = tally.predicted(
        decisions(run, stream, rule, sets=sets, all_classes=all_classes, batch_rows=batch_rows)
    )
    if defer is not None:
        undecided = {name: kind for name, kind in schema.items() if name != "decision"}
        waiting = (frame.select(list(undecided)) for frame in frames)
        frames = defer_least_certain(waiting, undecided, defer)
    if decide:
        frames = tally.decided(frames)
    write_frames(output, (frame.select(list(schema)) for frame in frames), schema)
    return PredictSummary(
        output=output,
        items=tally.items,
        deferred=tally.deferred if decide else None,
        threshold=None if rule is None else rule.threshold,
        ignored=stream.ignored,
        broken=dict(stream.broken),
        seconds=time.monotonic() - started,
        wanted=defer,
        trained=tally.trained,
        commas=tuple(sorted(stream.commas)),
    )


class _Tally:
    """Counts what goes by: items, those that were trained on, and those that are deferred."""

    def __init__(self, learned_from: KnownItems, progress: Callable[[int], None] | None) -> None:
        self.learned_from, self.progress = learned_from, progress
        self.items = self.trained = self.deferred = 0

    def predicted(self, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for frame in frames:
            self.items += len(frame)
            self.trained += sum(self.learned_from.among(frame["item"], frame[DIGEST]))
            if self.progress is not None:
                self.progress(self.items)
            yield frame

    def decided(self, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for frame in frames:
            self.deferred += int((frame["decision"] == "defer").sum())
            yield frame


def _rule(
    run: Run, threshold: float | None, decide: bool, defer: int | None
) -> Guarantee | Cut | None:
    """What decides item by item; None where nothing does, or the number to defer is given."""
    if defer is not None:
        _check_defer(defer, threshold, decide)
    if not decide or defer is not None:
        return None
    otherwise = "; or --no-decision for the predictions alone"
    return find_rule(run, threshold=threshold, otherwise=otherwise)


def _check_defer(defer: int, threshold: float | None, decide: bool) -> None:
    if threshold is not None or not decide:
        other = "--threshold" if decide else "--no-decision"
        raise CredalError(
            f"--defer {defer} decides how many items are deferred, and so does {other}. To fix: "
            "leave one of them out."
        )
    if defer < 0:
        raise CredalError(f"defer must be 0 or more; got {defer}. To fix: give --defer 100.")


def class_schema(classes: Sequence[str]) -> dict[str, type[pl.DataType]]:
    """Columns of every class, of the set before it is widened.

    No two are the same, and none is one of ``SCHEMA`` or ``SET_SCHEMA``, whatever the classes.

    Example:
        >>> list(class_schema(["cat", "dog"]))[:4]
        ['probability_cat', 'lower_cat', 'upper_cat', 'probability_dog']
    """
    parts = ("probability", "lower", "upper")
    return {f"{part}_{name}": pl.Float64 for name in classes for part in parts}


def decisions(
    run: Run,
    stream: Stream,
    rule: Guarantee | Cut | None,
    *,
    sets: Inflation | None = None,
    all_classes: bool = False,
    batch_rows: int | None = None,
) -> Iterator[pl.DataFrame]:
    """Frames with the columns of ``SCHEMA``, then those of the data that are no features.

    Among the latter is ``DIGEST``, by which items are known again.

    With ``sets`` those of ``SET_SCHEMA`` come between, with ``all_classes`` those of
    :func:`class_schema`.

    Raises:
        CredalError: After the last frame, if an item came twice.
    """
    clf, classes = run.load_model(), pl.Series(run.classes, dtype=pl.String)
    if batch_rows is None:
        batch_rows = items_at_once(clf._input_shape)
    if batch_rows < 1:
        raise CredalError(f"batch_rows must be 1 or more; got {batch_rows}. To fix: leave it out.")
    with _threads(run), Twice() as names:
        for batch in rebatched(stream.batches(), batch_rows):
            if not stream.row_names:
                names.add(batch.items)
            try:
                yield _decided(clf, classes, batch, rule, sets, all_classes)
            except CredalError as error:
                raise _unpredictable(clf, batch, stream.path) or error from error
        _refuse_twice(stream, names)


@contextmanager
def _threads(run: Run) -> Iterator[None]:
    """One thread for tables: 150,000 rows a second, where two on two busy cores made 29,000."""
    before = torch.get_num_threads()
    if not run.takes_images:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _decided(
    clf: CredalClassifier,
    classes: pl.Series,
    batch: Batch,
    rule: Guarantee | Cut | None,
    sets: Inflation | None,
    all_classes: bool,
) -> pl.DataFrame:
    predicted: CredalPredictions = clf.predict_credal(batch.X)
    index = predicted.classes.numpy()
    row = np.arange(len(index))
    score = predicted.score("lower-probability").double().numpy()
    parts = [x.double().numpy() for x in (predicted.probs, predicted.lower, predicted.upper)]
    probs, lower, upper = parts
    columns = {
        "item": batch.items,
        "label": classes.gather(index),
        "probability": probs[row, index],
        "lower": lower[row, index],
        "upper": upper[row, index],
        "score": score,
    }
    if rule is not None:
        columns["decision"] = pl.Series(rule.decide(score), dtype=pl.String)
    if sets is not None:
        widened = predicted.conformalize(sets)
        columns["set_lower"] = widened.lower.double().numpy()[row, index]
        columns["set_upper"] = widened.upper.double().numpy()[row, index]
    if all_classes:
        of_classes = (part[:, k] for k in range(len(classes)) for part in parts)
        columns |= dict(zip(class_schema(classes.to_list()), of_classes, strict=True))
    frame = pl.DataFrame(columns)
    taken = {*SCHEMA, *frame.columns}
    extra = batch.extra.select(name for name in batch.extra.columns if name not in taken)
    return frame.hstack(extra) if extra.width else frame


def _unpredictable(clf: CredalClassifier, batch: Batch, path: Path) -> CredalError | None:
    """Which item the model fails on, found one by one; None if on none of them."""
    for row in range(len(batch.items)):
        try:
            clf.predict_credal(batch.X[row : row + 1])
        except CredalError:
            most = float(np.abs(batch.X[row]).max())
            return CredalError(
                f"{path}: the model has no answer for item {shown(batch.items[row])}, whose "
                f"largest feature is {most:.3g}: too far from what it was trained on. To fix: "
                "correct the item, or leave it out."
            )
    return None


def _refuse_twice(stream: Stream, names: Twice) -> None:
    suspects = names.suspects()
    if not len(suspects):
        return
    again = (batch.items for batch in stream.batches())
    found = first_twice(again, suspects)
    if found is not None:
        item, first, second = found
        raise CredalError(
            f"{stream.path}: the item {item!r} comes twice, in rows {first + 1} and {second + 1}. "
            "To fix: one row an item."
        )
