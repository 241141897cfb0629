"""``credalearn predict``: a label, its bounds and a decision for each item."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from credalearn._formats import many, percent, shown
from credalearn._options import check_options, option
from credalearn.app.facts import Printed
from credalearn.app.features import Features
from credalearn.app.item_stream import Batch, ItemStream, known_items, open_items
from credalearn.app.run import Run
from credalearn.app.run_files import MADE_FROM
from credalearn.app.sources import Tabular
from credalearn.app.steps.unseen_values import count_unseen, unseen_warnings
from credalearn.app.table_writer import Schema, check_output, write_frames
from credalearn.app.texts import text_digests
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.run import Predictor
    from credalearn.guarantees import DeferralScore

Decide = Callable[[np.ndarray, Sequence[str]], np.ndarray]  # by scores and labels
SCHEMA: Schema = {
    **dict.fromkeys(("item", "label"), pl.String),
    **dict.fromkeys(("probability", "lower", "upper", "score"), pl.Float64),
    "decision": pl.String,
}
_SEED = 20261115  # of the hashes of items
_BLANK = text_digests([""])[0]
_NO_STRATUM = "a value of too few calibration items, or none, so widened sets say nothing"
SET_SCHEMA: Schema = {"set_lower": pl.Float64, "set_upper": pl.Float64}


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
            raise CredalError(
                "threshold must be left out with decision=False, which decides nothing."
            )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(Tabular, Printed):
    """What ``predict`` found, one row per item in the order of the data."""

    items: int  # number of items
    deferred: int | None  # number of deferred items; None without decisions
    trained_on: int  # number of items that the model was trained on
    ignored: tuple[str, ...]  # columns of the data that are not features of the model
    unreadable: dict[str, str]  # why an image could not be read, by item
    warnings: tuple[str, ...]  # about values that training did not have
    made_by: dict[str, Any]  # the run, and the guarantee or threshold, as :func:`made_by` has them
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

    @property
    def lines(self) -> list[str]:
        """What the command prints."""
        lines = [*unreadable_lines(self.unreadable), *self.warnings]
        if self.ignored:
            names = ", ".join(self.ignored[:10]) + ", …" * (len(self.ignored) > 10)
            lines.append(f"Ignored columns that are not features: {names}.")
        if self.deferred is None:
            lines.append(f"Predicted {many(self.items, 'item')}, without decisions.")
        else:
            kept, before = self.items - self.deferred, ""
            if usual := self.made_by["kept"]:
                before = f"; {percent(usual)} of the calibration items"
            lines.append(
                f"{many(self.items, 'item')}: {kept:,} predicted ({percent(kept / self.items)}"
                f"{before}), {self.deferred:,} deferred."
            )
        if self.trained_on:
            lines.append(
                f"The model was trained on {self.trained_on:,} of these items; a guarantee is "
                "about new items only."
            )
        if promise := self.made_by["guarantee"]:
            lines.append(f"Decided by the rule of {self.made_by['run']}: {promise}")
        return lines if self.output is None else [*lines, f"Wrote {self.output}."]


def predict(
    run: Run, data: Any, output: str | Path | None = None, options: PredictOptions | None = None
) -> Decisions:
    """Predict every item once; with an output, memory does not grow with the number of items."""
    options = options or PredictOptions()
    path = None if output is None else check_output(output, run, data=data)
    decide: Decide | None = None
    if options.decision:
        decide = find_decision(run, options.threshold, otherwise=" or decision=False")
    stream = open_items(run, data, item=options.item)
    schema = {name: kind for name, kind in SCHEMA.items() if options.decision or name != "decision"}
    schema |= {} if run.sets is None else SET_SCHEMA
    schema |= class_schema(run) if options.all_classes else {}
    counts, trained = Counter[str](), known_items(run, "train")

    def frames() -> Iterator[pl.DataFrame]:
        for batch, frame in decisions(run, stream, decide, all_classes=options.all_classes):
            counts["items"] += len(frame)
            counts["trained on"] += sum(trained(batch.items, batch.digests))
            if decide is not None:
                counts["deferred"] += int((frame["decision"] == "defer").sum())
            yield frame.select(list(schema))

    table = pl.concat(frames()) if path is None else None
    if path is not None:
        write_frames(path, frames(), schema)
    return Decisions(
        items=counts["items"],
        deferred=counts["deferred"] if options.decision else None,
        trained_on=counts["trained on"],
        ignored=() if run.facts.inputs.texts else stream.ignored,
        unreadable=dict(stream.unreadable),
        warnings=unseen_warnings(stream.unseen),
        made_by=made_by(run, options.threshold, decision=options.decision),
        output=path,
        table=table,
    )


def made_by(run: Run, threshold: float | None, *, decision: bool = True) -> dict[str, Any]:
    """Which run made a file of decisions, and by which guarantee or threshold; for ``--json``."""
    guarantee = run.guarantee if decision and threshold is None else None
    return {
        "run": str(run.path),
        "created": run.facts.created,
        MADE_FROM: run.facts.sha256["predictions"],  # the same in guarantee.json
        "threshold": threshold,
        "guarantee": None if guarantee is None else guarantee.sentence(),
        "kept": None if guarantee is None else guarantee.coverage,  # of the calibration items
        "set_coverage": None if run.sets is None else run.sets.coverage,
    }


def unreadable_lines(unreadable: dict[str, str]) -> list[str]:
    """How many images could not be read, and why the first one could not; none if all could."""
    if not unreadable:
        return []
    name, why = next(iter(unreadable.items()))
    return [f"Skipped {many(len(unreadable), 'unreadable image')}, first {name}: {why}"]


def find_decision(run: Run, threshold: float | None, *, otherwise: str = "") -> Decide:
    """What decides by the score: the threshold if there is one, else the run's guarantee."""
    if threshold is not None:
        return lambda score, _: np.where(score <= threshold, "predict", "defer")
    if run.guarantee is None:
        raise CredalError(
            f"{run.path} has no guarantee, so nothing can be decided. To fix: "
            f"certify it, as with {run.certify_command}; or pass threshold={otherwise}."
        )
    return run.guarantee.decide


def class_schema(run: Run) -> Schema:
    """Columns of every class: ``probability_cat`` and so on, and ``set_lower_cat`` if widened."""
    parts = ("probability", "lower", "upper", *(() if run.sets is None else SET_SCHEMA))
    return {f"{part}_{name}": pl.Float64 for name in run.classes for part in parts}


def decisions(
    run: Run, stream: ItemStream, decide: Decide | None, *, all_classes: bool = False
) -> Iterator[tuple[Batch, pl.DataFrame]]:
    """Batches of the stream with the columns that ``predict`` writes."""
    clf, score = run.predictor(), run.deferral_score
    for batch in _distinct(stream):
        try:
            frame = _frame(run, clf, batch, score, decide, all_classes, stream.unseen)
            count_unseen(run, clf, batch.X, stream.unseen)
            yield batch, frame
        except CredalError as error:
            found = failing_row(clf, batch.X)
            if found is None:
                raise
            row, why = found
            name = shown(batch.items[row])
            if not (run.facts.imported or run.facts.inputs.texts):
                why = CredalError(
                    "its features are too far from those of the training items. To fix: correct "
                    "the item, or leave it out."
                )
            raise CredalError(f"{stream.name}, item {name}: {why}") from error


def _frame(
    run: Run,
    clf: "Predictor",
    batch: Batch,
    score_name: "DeferralScore",
    decide: Decide | None,
    all_classes: bool,
    unseen: Counter[tuple[str, str]],
) -> pl.DataFrame:
    predicted = clf.predict_credal(batch.X)
    index = predicted.classes.numpy()
    row = np.arange(len(index))
    score = predicted.score(score_name).double().numpy()
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
        from credalearn.app.steps.set_coverage import strata_of_batch
        from credalearn.app.steps.voted_items import about_votes

        strata = strata_of_batch(run, run.sets, predicted, label, batch)
        known = {each.name for each in run.sets.strata}
        if lost := sum(name not in known for name in strata or ()):
            unseen[str(run.sets.by), _NO_STRATUM] += lost
        widened = about_votes(run, predicted).conformalize(run.sets, strata=strata)
        bounds = [each.double().numpy() for each in (widened.lower, widened.upper)]
        columns |= {name: x[row, index] for name, x in zip(SET_SCHEMA, bounds, strict=True)}
        parts = [*parts, *bounds]
    if all_classes:
        values = (part[:, k] for k in range(len(run.classes)) for part in parts)
        columns |= dict(zip(class_schema(run), values, strict=True))
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


def _distinct(stream: ItemStream) -> Iterator[Batch]:
    """The items without rows that repeat one; rows of one name with other inputs are refused."""
    # Known items take 16 bytes each: 64-bit hashes of 20 million collide by 1e-5.
    names: list[np.ndarray] = []
    whole: list[np.ndarray] = []
    start = 0
    for batch in stream.batches:
        both = pl.DataFrame({"name": batch.items, "content": batch.digests})
        found = both.select(name=pl.col("name").hash(_SEED), whole=pl.struct(pl.all()).hash(_SEED))
        first = found["whole"].is_first_distinct().to_numpy() & ~_among(found["whole"], whole)
        again = _among(found["name"], names) | ~found["name"].is_first_distinct().to_numpy()
        first &= ~(again & (both["content"] == _BLANK).to_numpy())
        if (again & first).any():
            row = int((again & first).argmax())
            raise CredalError(
                f"{stream.place(start + row)}: item {shown(batch.items[row])} has other inputs "
                "than in an earlier row. To fix: give every item its own name, or all of its rows "
                "the same inputs."
            )
        for name, known in (("name", names), ("whole", whole)):
            # Sorted arrays, each more than twice as long as the next: few, and rarely merged.
            known += [np.sort(found.filter(first)[name].to_numpy())] if first.any() else []
            while len(known) > 1 and len(known[-2]) <= 2 * len(known[-1]):
                known[-2:] = [np.sort(np.concatenate(known[-2:]), kind="stable")]
        start += len(first)
        if first.all():
            yield batch
        elif first.any():
            rows = np.flatnonzero(first)
            digests = [batch.digests[row] for row in rows]
            extra = batch.extra.filter(first) if batch.extra.width else batch.extra
            yield Batch(batch.items.filter(first), batch.X[rows], digests, extra)


def _among(values: pl.Series, known: list[np.ndarray]) -> np.ndarray:
    """Which values are in one of the sorted arrays."""
    wanted, among = values.to_numpy(), np.zeros(len(values), dtype=bool)
    for each in known:
        among |= each[np.searchsorted(each, wanted).clip(max=len(each) - 1)] == wanted
    return among
