"""Held-out items of a run: their predicted sets and what people answered."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import torch

from credalearn.app.report.evaluation import matrix
from credalearn.app.run import Run
from credalearn.predictions import CredalPredictions

_FEWEST = 2  # the shares of a single vote are always 1 and 0


@dataclass(frozen=True, slots=True, eq=False)
class VotedItems:
    """Items of one split, whose predicted sets can be compared with votes."""

    predicted: CredalPredictions  # their predicted sets, as bounds
    observed: np.ndarray  # votes or shares by class, shape (N, K)
    usable: np.ndarray  # which items have enough votes to compare with a set, bool (N,)
    counted: bool  # whether the number of votes is known; else only shares were given
    table: pl.DataFrame  # the items as ``Run.held_out`` returns them


def voted_items(run: Run, split: str) -> VotedItems:
    """The items of one split, in the order of ``run.predictions``."""
    kind, table, center = run.facts.annotations.kind, run.held_out(split), _center(run)
    probs, lower, upper, observed = (
        matrix(table, part, run.classes)
        for part in ("p" if center is None else f"v{center}", "lower", "upper", "n")
    )
    counted = kind != "probabilities"
    number = observed.sum(1)
    usable = number > 0
    if kind == "votes":  # weights are no number of votes, and unsure answers are none
        sure = run.annotations.drop_nulls("label")["item"].cast(pl.String)
        known = dict(sure.value_counts().iter_rows())
        number = np.array([known.get(item, 0) for item in table["item"]])
    if counted:
        usable &= number >= _FEWEST
    predicted = CredalPredictions(*map(torch.from_numpy, (probs, lower, upper)))
    return VotedItems(about_votes(run, predicted), observed, usable, counted, table)


def soft_scores(run: Run) -> dict[str, float]:
    """Cross-entropy to the votes on the test items, and micro-F1; empty without votes."""
    found = voted_items(run, "test")
    total = found.observed.sum(1, keepdims=True)
    voted, probs = total[:, 0] > 0, found.predicted.probs.double().clamp(min=1e-12).numpy()
    wrong = found.table["wrong"].drop_nulls().to_numpy()
    if not voted.any() or not len(wrong) or run.facts.annotations.kind == "bounds":
        return {}
    cost = -(found.observed[voted] / total[voted] * np.log(probs[voted])).sum(1).mean()
    right = {"judged_items": len(wrong), "micro_f1": float(1 - wrong.mean())}
    return {"items": int(voted.sum()), "cross_entropy": float(cost), **right}


def about_votes(run: Run, predicted: CredalPredictions) -> CredalPredictions:
    """Predictions about what is right as predictions about what people say, by their bounds."""
    known, vertices, center = run.facts.temperatures, predicted.vertices, _center(run)
    probs = predicted.probs
    if center is not None and vertices is not None and vertices.shape[1] > center:
        probs = vertices[:, center]
    box = CredalPredictions(probs, predicted.lower, predicted.upper)
    return box.temper(known["votes"] / known["truth"]) if known else box


def _center(run: Run) -> int | None:
    """The head of the default learner that learned vote shares; None for another model."""
    if run.facts.options["method"] != "auto" or not run.facts.model or run.facts.imported:
        return None
    from credalearn._selection import CENTER  # imports the networks

    return CENTER
