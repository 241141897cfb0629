"""Held-out items of a run with their predicted sets and what people said of them.

Shapes: N items, K classes.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch

from credalearn.app.annotations.table import Annotations, Origin
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions

_FEWEST = 2  # of one vote the shares are always 1 and 0: no set but a whole edge holds them


@dataclass(frozen=True, slots=True, eq=False)
class VotedItems:
    """Items of one split, with which predicted sets can be held against votes.

    Args:
        predicted: Their sets, known by their bounds.
        observed: Votes or shares by class, shape (N, K).
        usable: Which have votes enough to say something about their shares, bool (N,).
        counted: Whether it is known how many votes an item has; else shares alone were given.
        score: What items are deferred by, shape (N,).
    """

    predicted: CredalPredictions
    observed: np.ndarray
    usable: np.ndarray
    counted: bool
    score: np.ndarray


def read_voted(run: Run, split: str) -> VotedItems:
    """The items of one split, in the order of ``predictions.parquet``.

    Raises:
        CredalError: If a table cannot be read or does not fit the run.
    """
    said = said_of(run)
    table = run.predictions.filter(split=split)
    items = run.items
    both = ["item", "split"]  # of a run calibrated again trained items may have the same names
    votes = items.select(both).hstack(_classes(run, "items", items, "n").fill_null(0))
    table = table.join(votes, on=both, how="left", maintain_order="left")
    probs, lower, upper, observed = (
        _classes(run, "predictions", table, part).to_numpy().astype(np.float64)
        for part in ("p", "lower", "upper", "n")
    )
    observed = np.nan_to_num(observed)
    counted = said.kind != "probabilities"
    number = observed.sum(1)
    usable = number > 0
    if said.kind == "votes":  # weights are no number of votes, and unsure answers are none
        sure = said.codes("item")[said.codes("label") >= 0]
        known = dict(zip(said.items, np.bincount(sure, minlength=len(said.items)), strict=True))
        number = np.array([known.get(item, 0) for item in table["item"]])
    if counted:
        usable &= number >= _FEWEST
    predicted = CredalPredictions(*map(torch.from_numpy, (probs, lower, upper)))
    return VotedItems(predicted, observed, usable, counted, table["score"].to_numpy())


def said_of(run: Run) -> Annotations:
    """What people said, as training read it.

    Raises:
        CredalError: If ``annotations.parquet`` cannot be read, or is no table of annotations.
    """
    known, table = run.facts.annotations, run.annotations
    items = tuple(table["item"].cast(pl.String).unique(maintain_order=True))
    source = Origin(Path(known.path), known.kind, known.format, len(table))
    return Annotations(known.kind, items, run.classes, table, source)


def _classes(run: Run, file: str, table: pl.DataFrame, part: str) -> pl.DataFrame:
    """The columns ``PART:CLASS`` of all classes, in their order."""
    names = [f"{part}:{name}" for name in run.classes]
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CredalError(
            f"{run.path / file}.parquet does not fit run.json: it has no column {missing[0]!r}. "
            "To fix: train again."
        )
    return table.select(names)
