"""How often each annotator agrees with the others, and who does so far less than they do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import betaincinv

from credalearn.app.annotations.agreement import majority
from credalearn.app.annotations.table import Annotations

_MARGIN = 0.10  # below the others: a difference that matters, not only one that is certain
_CONFIDENCE = 0.95
_FEWEST = 10  # votes compared before anybody is called far
_COUNTS = 5_000_000  # of the others' counts at a time: 80 MB


@dataclass(frozen=True, slots=True)
class Annotator:
    """How often one annotator agrees with the majority of the others on the same item."""

    name: str
    compared: int  # votes on items where the others' votes have one leading class
    agreed: int  # votes among those for that class
    share: float | None  # agreed / compared
    upper: float  # upper confidence limit of the share
    others: float | None  # the share of everyone else
    far: bool  # whether upper is more than 0.10 below others, with ten or more votes compared


def annotator_agreement(annotations: Annotations) -> tuple[Annotator, ...]:
    """Every annotator next to the others, with limits at 95 % for all together (Bonferroni)."""
    names = annotations.annotators
    who, label = annotations.codes["annotator"], annotations.codes["label"]
    known = (who >= 0) & (label >= 0)
    who, label, item = who[known], label[known], annotations.codes["item"][known]
    leading = _majority_of_others(annotations.sparse_counts(weighted=False), item, label)
    compared, agreed = (
        np.bincount(who[chosen], minlength=len(names))
        for chosen in (leading >= 0, leading == label)
    )
    level = (1 - _CONFIDENCE) / (2 * max(len(names), 1))
    missed = compared - agreed
    upper = np.where(missed > 0, 1 - betaincinv(np.maximum(missed, 1), agreed + 1, level), 1.0)
    found = []
    for i, name in enumerate(names):
        others = _share(agreed.sum() - agreed[i], compared.sum() - compared[i])
        far = compared[i] >= _FEWEST and others is not None and upper[i] < others - _MARGIN
        numbers = (int(compared[i]), int(agreed[i]), _share(agreed[i], compared[i]))
        found.append(Annotator(name, *numbers, float(upper[i]), others, bool(far)))
    found.sort(key=lambda each: (not each.far, 2.0 if each.share is None else each.share))
    return tuple(found)


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


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
