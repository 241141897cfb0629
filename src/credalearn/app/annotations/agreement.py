"""How far people agree: unanimity, ties, Krippendorff's alpha, confused classes; and who does not.

Counts are sparse: 5,000 classes on 20,000 items would take 0.8 GB. Shapes: N items, K classes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import betaincinv

from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import AnnotationFacts

_CELLS = 1 << 22  # pairs of classes at a time: 32 MB
_MARGIN = 0.10  # below the others: a difference that matters, not only one that is certain
_CONFIDENCE = 0.95
_FEWEST = 10  # votes compared before anybody is called far
_COUNTS = 5_000_000  # of the others' counts at a time: 80 MB


def annotation_facts(annotations: Annotations) -> AnnotationFacts:
    """Where annotations come from, what they contain and how far people agree."""
    source, agreement = annotations.source, dict[str, Any]()
    if annotations.kind in ("votes", "counts"):
        counts = annotations.sparse_counts(weighted=False)
        totals = counts.sum(1)
        agreement["votes"] = int(totals.sum())
        agreement["unvoted"] = int((totals == 0).sum())
        if agreement["votes"]:
            several = counts[totals >= 2]
            if several.shape[0]:
                agreement["several"] = several.shape[0]
                same = several.max(1).toarray() == several.sum(1)
                agreement["unanimous"] = float(same.mean())
                agreement["tied"] = float((majority(several) < 0).mean())
            per_item = (int(totals.min()), float(np.median(totals)), int(totals.max()))
            agreement |= {
                "alpha": krippendorff_alpha(counts),
                "votes_per_item": per_item,
                "confused": confused_pairs(counts, annotations.classes),
            }
    return AnnotationFacts(
        kind=annotations.kind,
        path=str(source.path),
        stated=annotations.contains == "statements",
        later=tuple(map(str, source.later)),
        format=source.words,
        item=source.item,
        items=len(annotations.items),
        annotators=len(annotations.annotators) or None,
        left_out=dict(source.left_out),
        **agreement,
    )


def majority(counts: Any) -> NDArray[np.int64]:
    """Index of the class with most votes, −1 on a tie or without votes, shape (N,)."""
    counts = csr_array(counts)
    top = counts.max(1).toarray()
    row = np.repeat(np.arange(len(top)), np.diff(counts.indptr))
    # Sums of weights such as 0.1 and 0.2 tie with 0.3 but for rounding.
    leads = (counts.data > 0) & (counts.data >= top[row] * (1 - 1e-9))
    found = np.full(len(top), -1)
    found[row[leads]] = counts.indices[leads]
    found[np.bincount(row[leads], minlength=len(top)) != 1] = -1
    return found


def krippendorff_alpha(counts: Any) -> float | None:
    r"""Krippendorff's alpha of nominal labels (2011), 1 - D_o / D_e; None if no votes differ."""
    votes = csr_array(counts, dtype=np.float64)
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
    counts: csr_array, classes: tuple[str, ...], most: int = 5
) -> tuple[tuple[str, str, float], ...]:
    """Two classes and their share of all pairs of votes that disagree about an item, sorted."""
    everything, found = 0.0, list[tuple[float, int, int]]()
    by_class, size = counts.T.tocsr(), max(1, _CELLS // len(classes))
    for start in range(0, len(classes), size):
        # Votes for one times votes for the other, summed over the items.
        product = by_class[start : start + size] @ counts
        product.sort_indices()  # of equal pairs the first is named
        pairs = product.tocoo()
        first = pairs.row + start
        shares = np.where(first < pairs.col, pairs.data, 0)
        everything += shares.sum()
        for _ in range(min(most, len(shares))):
            best = int(shares.argmax())
            found.append((float(shares[best]), int(first[best]), int(pairs.col[best])))
            shares[best] = 0
    found.sort(key=lambda each: (-each[0], *each[1:]))
    named = (each for each in found[:most] if each[0])
    return tuple((classes[a], classes[b], votes / everything) for votes, a, b in named)


@dataclass(frozen=True, slots=True)
class Annotator:
    """How often one annotator agrees with the majority of the others on the same item."""

    name: str
    compared: int  # votes on items where the others' votes have one leading class
    agreed: int  # votes among those for that class
    share: float  # agreed / compared
    upper: float  # upper confidence limit of the share
    others: float  # the share of everyone else


def far_annotators(annotations: Annotations) -> tuple[Annotator, ...]:
    """Annotators whose limit is more than 0.10 below the others, the least agreement first.

    The limits hold at 95 % for all together (Bonferroni).
    """
    compared, agreed = agreement_with_others(annotations)
    level = (1 - _CONFIDENCE) / (2 * max(len(compared), 1))
    missed, rest = compared - agreed, compared.sum() - compared
    upper = np.where(missed > 0, 1 - betaincinv(np.maximum(missed, 1), agreed + 1, level), 1.0)
    others = (agreed.sum() - agreed) / np.maximum(rest, 1)
    found = []
    for i in np.flatnonzero((compared >= _FEWEST) & (upper < others - _MARGIN)):
        counts, shares = (compared[i], agreed[i]), (agreed[i] / compared[i], upper[i], others[i])
        found.append(Annotator(annotations.annotators[i], *map(int, counts), *map(float, shares)))
    return tuple(sorted(found, key=lambda each: each.share))


def agreement_with_others(annotations: Annotations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Votes of each annotator where the others have one leading class, and those for it, (W,)."""
    who, label = annotations.codes["annotator"], annotations.codes["label"]
    known = (who >= 0) & (label >= 0)
    who, label, item = who[known], label[known], annotations.codes["item"][known]
    leading = _majority_of_others(annotations.sparse_counts(weighted=False), item, label)
    compared, agreed = (
        np.bincount(who[chosen], minlength=len(annotations.annotators))
        for chosen in (leading >= 0, leading == label)
    )
    return compared, agreed


def _majority_of_others(
    counts: csr_array, item: NDArray[np.int64], label: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The class that leads among the others on each vote's item; −1 where none does, (V,)."""
    found, num_classes = np.empty(len(item), np.int64), counts.shape[1]
    size = max(_COUNTS // (int(np.diff(counts.indptr).max(initial=0)) + 1), 1)
    for start in range(0, len(item), size):
        part = slice(start, start + size)
        said = label[part]
        shape = (len(said), num_classes)
        own = csr_array((np.ones(len(said)), said, np.arange(len(said) + 1)), shape=shape)
        found[part] = majority(counts[item[part]] - own)
    return found
