"""Which score to defer by: the one that ranks errors best on items that calibrate nothing."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from credalearn._ranks import tie_ends
from credalearn.guarantees.items import ScoredItems

DeferralScore = Literal["lower-probability", "top-probability"]

SCORE_WORDS: dict[DeferralScore, str] = {
    "lower-probability": "one minus the lower probability of the label",
    "top-probability": "one minus the probability of the label",
}


def better_score(scores: Mapping[DeferralScore, ArrayLike], wrong: ArrayLike) -> DeferralScore:
    """The score with the smallest mean error over all shares kept; the first of equal ones."""
    areas = {name: mean_error_kept(ScoredItems(each, wrong)) for name, each in scores.items()}
    return min(areas, key=lambda name: areas[name])


def mean_error_kept(items: ScoredItems) -> float:
    """Mean over m of the error among the m most certain items: 1 − AUARC; ties share their mean."""
    order = items.score.argsort()
    ends = tie_ends(items.score[order])
    sizes = np.diff(ends, prepend=0)
    errors = np.diff(items.wrong[order].cumsum()[ends - 1], prepend=0)
    shared = np.repeat(errors / sizes, sizes)
    return float((shared.cumsum() / np.arange(1, len(shared) + 1)).mean())
