"""``credalearn certify --set-coverage``: sets widened to hold what annotators say of new items.

Shapes: N items, K classes.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import torch

from credalearn.conformal import Inflation
from credalearn.conformal.checks import check_coverage
from credalearn.decide.bounds import interval
from credalearn.decide.shortfall import percent
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions
from credalearn.workflow.certifying import keep
from credalearn.workflow.folder import RunFolder

_FEWEST = 2  # of one vote the shares are always 1 and 0: no set but a whole edge holds them


@dataclass(frozen=True, slots=True)
class SetCertificate:
    r"""By how much sets are widened, and how that does on test items, which had no part in it.

    Args:
        inflation: The radius and its promise.
        left_out: Calibration items with fewer than two votes.
        counted: Whether it is known how many votes an item has.
        test_items: Test items that have as many.
        test_covered: Those of them whose observed shares lie in their widened set.
        width_before: Mean width of a class's interval on these, as predicted.
        width_after: The same when widened.

    Example:
        >>> found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="binomial", items=300)
        >>> print("\n".join(SetCertificate(found, 12, True, 100, 91, 0.02, 0.15).lines))
        left out: 12 calibration items with fewer than two votes
        In 90 % of cases or more, the shares of a new item's votes lie in its widened set, for items
        drawn and voted on like the 300 calibration items.
        radius 0.4, scaled by binomial: on the test items a class's interval is 0.15 wide on
        average, and was 0.02
        On 100 test items with two votes or more, the shares of 91 % lie in the widened set (95 %
        interval 83.6 % to 95.8 %).
    """

    inflation: Inflation
    left_out: int
    counted: bool
    test_items: int
    test_covered: int
    width_before: float
    width_after: float

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        told = []
        if self.left_out:
            what = "fewer than two votes" if self.counted else "no shares"
            told.append(f"left out: {self.left_out:,} calibration items with {what}")
        if not self.counted:
            told.append("the items have probabilities: of how many votes is not known")
        told.append(self.inflation.statement)
        if self.inflation.vacuous:  # which covers all test items and says nothing by it
            return tuple(told)
        if self.test_items:
            told.append(
                f"radius {self.inflation.radius:.4g}, scaled by {self.inflation.scale}: on the "
                f"test items a class's interval is {self.width_after:.3g} wide on average, and "
                f"was {self.width_before:.3g}"
            )
        return (*told, self.test_line)

    @property
    def test_line(self) -> str:
        """What share of the test items the sets cover, in a sentence."""
        having = "with two votes or more" if self.counted else "with shares"
        if not self.test_items:
            return f"No test item is there {having} to see it on."
        missed, number = np.array([[self.test_items - self.test_covered], [self.test_items]])
        low, high = interval(missed, number, confidence=0.95, binary=True)
        return (
            f"On {self.test_items:,} test items {having}, the shares of "
            f"{percent(self.test_covered / self.test_items)} lie in the widened set (95 % interval "
            f"{percent(1 - high.item())} to {percent(1 - low.item())})."
        )


def certify_sets(run: RunFolder, *, coverage: float) -> SetCertificate:
    """Calibrate by how much to widen predicted sets, on a run's calibration items.

    Those with two votes or more take part. Nothing is written: see :func:`keep_sets`.

    Args:
        run: A finished run.
        coverage: Share of new items whose observed shares are to lie in their set.

    Raises:
        CredalError: If coverage is no share, nobody voted, or no calibration item has two votes.
    """
    check_coverage(coverage)
    table, counted = _voted(run)
    calibration, test = (table.filter(split=name) for name in ("calibration", "test"))
    usable = calibration.filter("usable")
    if not len(usable):
        raise CredalError(
            f"no calibration item of {run.path} has two votes or more, and one says nothing about "
            "their shares. To fix: have some items voted on again, and train with them."
        )
    predicted, shares = _read(run, usable)
    inflation = predicted.inflation(shares, coverage=coverage)
    test = test.filter("usable")
    covered, before, after = 0, 0.0, 0.0
    if len(test):
        predicted, shares = _read(run, test)
        sets = (predicted.lower, predicted.upper, predicted.probs)
        covered = int(inflation.covers(shares, *sets).sum())
        widened = predicted.conformalise(inflation)
        before, after = (float((p.upper - p.lower).mean()) for p in (predicted, widened))
    left_out = len(calibration) - len(usable)
    return SetCertificate(inflation, left_out, counted, len(test), covered, before, after)


def keep_sets(run: RunFolder, inflation: Inflation) -> None:
    """Write ``sets.json``, but nothing that promises nothing over something that does.

    Raises:
        CredalError: If it cannot be written.
    """
    if inflation.vacuous:
        with suppress(CredalError):  # a damaged file promises nothing
            there = run.sets
            if there is not None and not there.vacuous:
                return
    keep(run, "sets.json", inflation.to_json())


def _voted(run: RunFolder) -> tuple[pl.DataFrame, bool]:
    """Predictions with votes or shares beside them, which are usable, and whether votes count."""
    kind = _kind(run)
    if kind == "bounds":
        raise CredalError(
            f"{run.path} was trained on stated bounds: nobody voted, so there are no shares for a "
            "set to hold. To fix: train on votes, counts or probabilities."
        )
    items = run.items
    counts = _classes(run, "items", items, "n")
    items = items.select("item").hstack(counts)
    if kind == "votes":
        said = run.annotations.filter(pl.col("label").is_not_null())
        votes = said.group_by("item").agg(pl.len().alias("votes"))
        items = items.join(votes, on="item", how="left")
    else:
        items = items.with_columns(votes=pl.sum_horizontal(counts.columns))
    table = run.predictions.join(items, on="item", how="left", maintain_order="left")
    enough = pl.col("votes") > 0 if kind == "probabilities" else pl.col("votes") >= _FEWEST
    some = pl.sum_horizontal(counts.columns) > 0  # weights may all be 0
    return table.with_columns(usable=(enough & some).fill_null(False)), kind != "probabilities"


def _kind(run: RunFolder) -> Literal["votes", "bounds", "counts", "probabilities"]:
    """What people gave, by the columns of the canonical table."""
    columns = run.annotations.columns
    if columns == ["item", "annotator", "label", "weight"]:
        return "votes"
    if columns == ["item", "label", "at_least"]:
        return "bounds"
    known = run.facts.get("annotations") or {}
    return "probabilities" if known.get("votes") is None else "counts"


def _read(run: RunFolder, table: pl.DataFrame) -> tuple[CredalPredictions, np.ndarray]:
    """Predicted sets, known by their bounds, and what was observed, shape (N, K)."""
    probs, lower, upper, observed = (
        _classes(run, "items" if part == "n" else "predictions", table, part).to_numpy()
        for part in ("p", "lower", "upper", "n")
    )
    return CredalPredictions(*map(torch.tensor, (probs, lower, upper))), observed


def _classes(run: RunFolder, file: str, table: pl.DataFrame, part: str) -> pl.DataFrame:
    """The columns ``PART:CLASS`` of all classes, in their order."""
    names = [f"{part}:{name}" for name in run.classes]
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CredalError(
            f"{run.path / file}.parquet does not fit run.json: it has no column {missing[0]!r}. "
            "To fix: train again."
        )
    return table.select(names)
