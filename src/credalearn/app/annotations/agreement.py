"""How far people agree: votes per item, unanimity, ties, Krippendorff's alpha, confused classes.

Shapes: N items, K classes.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import AgreementFacts, AnnotationFacts
from credalearn.errors import CredalError

Counts = NDArray[np.float64]


def annotation_facts(annotations: Annotations) -> AnnotationFacts:
    """Where annotations come from and what they contain, for the record of a run."""
    source = annotations.source
    counted = annotations.kind in ("votes", "counts")
    return AnnotationFacts(
        kind=annotations.kind,
        path=str(source.path),
        later=tuple(map(str, source.later)),
        format=source.words,
        item=source.item,
        items=len(annotations.items),
        annotators=len(annotations.annotators) or None,
        votes=int(vote_counts(annotations).sum()) if counted else None,
        left_out=dict(source.left_out),
        agreement=agreement(annotations) if counted else None,
    )


def agreement(annotations: Annotations) -> AgreementFacts:
    """How far the annotators agree; each vote counts once, whatever its weight.

    Shares are among the items with at least two votes, and None if there are none.
    """
    counts = vote_counts(annotations)
    totals = counts.sum(1)
    several = counts[totals >= 2]
    unanimous = tied = None
    if len(several):
        unanimous = float((several.max(1) == several.sum(1)).mean())
        tied = float((majority(several) < 0).mean())
    return AgreementFacts(
        alpha=krippendorff_alpha(counts),
        unanimous=unanimous,
        tied=tied,
        votes_per_item=(int(totals.min()), float(np.median(totals)), int(totals.max())),
        confused=confused_pairs(counts, annotations.classes),
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


def majority(counts: Counts) -> NDArray[np.int64]:
    """Index of the class with most votes, −1 on a tie or without votes, shape (N,)."""
    top = counts.max(1, keepdims=True)
    # Sums of weights such as 0.1 and 0.2 tie with 0.3 but for rounding.
    single = (counts >= top * (1 - 1e-9)).sum(1) == 1
    return np.where(single & (top[:, 0] > 0), counts.argmax(1), -1)


def krippendorff_alpha(counts: ArrayLike) -> float | None:
    r"""Krippendorff's alpha for nominal labels, :math:`1 - D_o / D_e`, from counts (N, K).

    Observed disagreement is that of pairs of votes on the same item, each item's pairs weighted by
    :math:`1/(m_u - 1)`; expected disagreement is that of pairs of any two votes. Items with one
    vote have no pair and are left out. Exact (Krippendorff, 2011, "Computing Krippendorff's
    alpha-reliability").

    Returns:
        1 for full agreement, 0 for agreement by chance; None if no disagreement is expected.

    Example:
        >>> krippendorff_alpha([[2, 0], [0, 2], [1, 1]])
        0.4444444444444444
    """
    votes = np.asarray(counts, np.float64)
    paired = votes[votes.sum(1) >= 2]
    totals = paired.sum(1)
    of_class = paired.sum(0)
    everything = of_class.sum()
    # Ordered pairs of different labels on an item: m² − Σ n², each weighted by 1/(m − 1).
    observed = ((totals**2 - (paired**2).sum(1)) / (totals - 1)).sum()
    expected = everything**2 - (of_class**2).sum()
    if expected == 0:
        return None
    return float(1 - (everything - 1) * observed / expected)


def confused_pairs(
    counts: Counts, classes: tuple[str, ...], most: int = 5
) -> tuple[tuple[str, str, float], ...]:
    """Two classes and their share of all pairs of votes that disagree about an item, sorted."""
    pairs = np.triu(counts.T @ counts, k=1)  # votes for one times votes for the other, by item
    order = np.argsort(-pairs, axis=None, kind="stable")[:most]
    return tuple(
        (classes[first], classes[second], float(pairs[first, second] / pairs.sum()))
        for first, second in zip(*np.unravel_index(order, pairs.shape), strict=True)
        if pairs[first, second]
    )
