"""What the rule of a guarantee does on the test items. Imports no torch."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from credalearn.app.run import Run
from credalearn.guarantees import Guarantee, Promise, ScoredItems
from credalearn.guarantees._bounds import interval
from credalearn.guarantees._truths import Truth


@dataclass(frozen=True, slots=True)
class HeldOutCheck:
    """What a guarantee's rule does on the test items, which had no part in it."""

    items: int  # number of test items
    kept: int  # how many of them are predicted
    judged: int  # how many test items can be right or wrong
    judged_kept: int  # how many of those are predicted
    errors: float  # how many of these are wrong, or the sum of the shares that disagree
    promises: tuple[Promise, ...] = ()  # those about classes and costs, with what they are about

    @property
    def outcomes(self) -> str:
        """What the test items say about each of ``promises``; empty without any."""
        found = ", ".join(each.outcome() for each in self.promises)
        return f"Of the kept test items, {found}." if found else ""

    @property
    def coverage(self) -> float:
        """Share of the test items that is predicted."""
        return self.kept / self.items

    @property
    def error(self) -> float | None:
        """Share of the predicted test items that are wrong; None where none can be judged."""
        return self.errors / self.judged_kept if self.judged_kept else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Clopper-Pearson interval of the error, where errors are counted."""
        errors, judged = np.array([self.errors]), np.array([self.judged_kept])
        low, high = interval(errors, judged, confidence=0.95, binary=True)
        return low.item(), high.item()


def check_rule(run: Run, guarantee: Guarantee) -> HeldOutCheck:
    """What the rule of a guarantee does on the test items."""
    column, judged = judged_by(guarantee.against)
    tested = run.held_out("test")
    kept = guarantee.keeps(tested["score"].to_numpy(), tested["label"].to_list())
    known = tested.select(judged).to_series().to_numpy()
    errors = tested[column].cast(pl.Float64).to_numpy()[kept & known]
    promises = [each for each in guarantee.all_promises if each.name or each.costs]
    if guarantee.against == "a random annotator" or not known.any():
        promises = []  # which are about the true class
    if promises:
        items, own = ScoredItems(**item_arrays(tested.filter(known), column)), kept[known]
        assert items.predicted is not None
        assert items.truth is not None
        there = {"called": set(items.predicted.tolist()), "missed": set(items.truth.tolist())}
        found = [x for x in promises if x.costs or x.name in there[x.kind]]
        promises = [replace(each.counted(items, own), bound=None) for each in found]
    return HeldOutCheck(
        items=len(tested),
        kept=int(kept.sum()),
        judged=int(known.sum()),
        judged_kept=int((kept & known).sum()),
        errors=float(errors.sum()),
        promises=tuple(promises),
    )


def judged_by(truth: Truth) -> tuple[str, pl.Expr]:
    """The column of a run's predictions that says how wrong each is, and where it is known."""
    column = "disagreement" if truth == "a random annotator" else "wrong"
    return column, pl.col(column).cast(pl.Float64).is_finite().fill_null(False)


def item_arrays(table: pl.DataFrame, column: str) -> dict[str, Any]:
    """The arguments of the library's ``certify`` that describe items."""
    known = table["truth"].is_not_null().all()
    return {
        "score": table["score"].to_numpy(),
        "wrong": table[column].to_numpy(),
        "groups": table["group"].to_list() if table["group"].count() else None,
        "predicted": table["label"].to_list(),
        "truth": table["truth"].to_list() if known else None,
    }
