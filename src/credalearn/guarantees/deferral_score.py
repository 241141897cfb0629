"""Which score to defer by: the one that ranks errors best on items that calibrate nothing."""

from collections.abc import Mapping
from typing import Literal

from numpy.typing import ArrayLike

from credalearn._ranks import kept_means
from credalearn.guarantees.items import ScoredItems

DeferralScore = Literal["lower-probability", "top-probability"]

SCORE_WORDS: dict[DeferralScore, str] = {
    "lower-probability": "one minus the lower probability of the label",
    "top-probability": "one minus the probability of the label",
}


def better_score(scores: Mapping[DeferralScore, ArrayLike], wrong: ArrayLike) -> DeferralScore:
    """The score with the smallest mean error over all shares kept; the first of equal ones."""
    items = {name: ScoredItems(each, wrong) for name, each in scores.items()}
    return min(items, key=lambda name: kept_means(items[name].score, items[name].wrong).mean())
