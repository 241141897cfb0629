"""How far people agree: votes per item, unanimity, ties and Krippendorff's alpha.

Shapes: N items, K classes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from credalearn.app.annotations.table import Annotations
from credalearn.errors import CredalError

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many votes there are, and how far they agree.

    Args:
        items: Number of items.
        annotators: Number of annotators; 0 where they are unknown.
        votes: Number of votes, without the unsure.
        unvoted: Number of items without a vote.
        fewest: Votes of the item with the fewest.
        median: Median of the votes per item.
        most: Votes of the item with the most.
        unanimous: Share of unanimous items among those with at least two votes.
        tied: Share of items among those on which two or more classes lead together.
        alpha: Krippendorff's alpha; None if no item has two votes, or all votes are for one class.
    """

    items: int
    annotators: int
    votes: int
    unvoted: int
    fewest: int
    median: float
    most: int
    unanimous: float | None
    tied: float | None
    alpha: float | None


def agreement(annotations: Annotations) -> Agreement:
    """How far the annotators agree; each vote counts once, whatever its weight.

    Raises:
        CredalError: If the annotations are neither votes nor counts.

    Example:
        >>> from credalearn.app.annotations.table import three_items
        >>> found = agreement(three_items())
        >>> found.votes, found.fewest, found.most, round(found.alpha, 2)
        (7, 2, 3, -0.2)
    """
    counts = vote_counts(annotations)
    totals = counts.sum(1)
    several = counts[totals >= 2]
    unanimous = tied = None
    if len(several):
        top = several.max(1, keepdims=True)
        unanimous = float((top[:, 0] == several.sum(1)).mean())
        tied = float(((several == top).sum(1) > 1).mean())
    return Agreement(
        items=len(counts),
        annotators=len(annotations.annotators),
        votes=int(totals.sum()),
        unvoted=int((totals == 0).sum()),
        fewest=int(totals.min()),
        median=float(np.median(totals)),
        most=int(totals.max()),
        unanimous=unanimous,
        tied=tied,
        alpha=krippendorff_alpha(counts),
    )


def vote_counts(annotations: Annotations) -> Counts:
    """Votes of each item by class, (N, K), without weights."""
    if annotations.kind == "counts":
        return annotations.counts()
    if annotations.kind != "votes":
        raise CredalError(
            f"agreement needs votes; {annotations.source.path} contains {annotations.kind}. To "
            "fix: pass votes, or counts of votes."
        )
    shape = (len(annotations.items), len(annotations.classes))
    label = annotations.codes("label")
    cell = (annotations.codes("item") * shape[1] + label)[label >= 0]
    return np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)


def krippendorff_alpha(counts: ArrayLike) -> float | None:
    r"""Krippendorff's alpha for nominal labels, :math:`1 - D_o / D_e`, from counts (N, K).

    Observed disagreement is that of pairs of votes on the same item, each item's pairs weighted by
    :math:`1/(m_u - 1)`; expected disagreement is that of pairs of any two votes. Items with one
    vote have no pair and are left out. Exact (Krippendorff, 2011, "Computing Krippendorff's
    alpha-reliability").

    Returns:
        1 for full agreement, 0 for agreement by chance; None if no disagreement is expected.

    Raises:
        CredalError: If a count is negative or not finite, or the counts are no table of numbers.

    Example:
        >>> krippendorff_alpha([[2, 0], [0, 2], [1, 1]])
        0.4444444444444444
    """
    votes = _as_counts(counts)
    paired = votes[votes.sum(1) >= 2]
    if not len(paired):
        return None
    totals = paired.sum(1)
    of_class = paired.sum(0)
    everything = of_class.sum()
    # Ordered pairs of different labels on an item: m² − Σ n², each weighted by 1/(m − 1).
    observed = ((totals**2 - (paired**2).sum(1)) / (totals - 1)).sum()
    expected = everything**2 - (of_class**2).sum()
    if expected == 0:
        return None
    return float(1 - (everything - 1) * observed / expected)


def _as_counts(counts: ArrayLike) -> Counts:
    """Counts (N, K) of 0 or more; a masked count is not finite."""
    fix = "pass the number of votes for each class, one row per item"
    try:
        given: np.ma.MaskedArray[Any, Any] = np.ma.asarray(counts)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"got {given.dtype}")
        found: Counts = np.ma.filled(given.astype(np.float64), np.nan)
    except (TypeError, ValueError, RuntimeError) as error:
        why = str(error).rstrip(".")
        raise CredalError(f"counts must be an array of numbers; {why}. To fix: {fix}.") from error
    if found.ndim != 2:
        raise CredalError(
            f"counts must have shape (items, classes); got {found.shape}. To fix: {fix}."
        )
    wrong = ~(np.isfinite(found) & (found >= 0)).all(1)
    if wrong.any():
        row = int(wrong.argmax())
        raise CredalError(
            f"counts must be finite numbers of 0 or more; row {row} has "
            f"{found[row].tolist()[:8]}. To fix: {fix}."
        )
    return found
