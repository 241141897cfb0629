"""The test items of a run: what was predicted, and what people said.

Shapes: N items, K classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from credalearn.errors import CredalError
from credalearn.guarantees.truths import HAVING, LACKING, Truth
from credalearn.metrics import Reliability, auarc, reliability

NO_TRUTH = -1

SCORE_NAMES = {
    "lower-probability": "lower probability",
    "mmi": "MMI (imprecision)",
    "top-probability": "top probability",
}


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Predictions for items that neither training nor the rule has seen.

    Args:
        items: Their names, N.
        classes: Names of the classes, K.
        probs: Probabilities, shape (N, K).
        label: Predicted classes, shape (N,).
        truth: True classes, −1 where there is none, shape (N,).
        scores: By name, uncertainty: larger is deferred first, shape (N,). By the first of them
            items are deferred; the others are shown beside it.
        votes: How many votes each class got, shape (N, K); zeros where they are not known.
        heads: By name, probabilities to show side by side, each of shape (N, K): of POCC the
            pessimist's and the optimist's, of other methods the bounds.
        against: What the true classes come from.

    Raises:
        CredalError: If there is no item, shapes do not fit, or a score is not finite.

    Example:
        >>> one = HeldOut(("a",), ("cat", "dog"), np.array([[0.9, 0.1]]), np.array([0]),
        ...               np.array([1]), {"mmi": np.array([0.2])}, np.array([[1.0, 2.0]]))
        >>> one.wrong.tolist(), one.accuracy
        ([True], 0.0)
    """

    items: tuple[str, ...]
    classes: tuple[str, ...]
    probs: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    scores: Mapping[str, np.ndarray]
    votes: np.ndarray
    heads: Mapping[str, np.ndarray] = field(default_factory=dict)
    against: Truth = "majority"

    def __post_init__(self) -> None:
        num_items, num_classes = len(self.items), len(self.classes)
        if num_items == 0 or not self.scores:
            raise CredalError(
                f"a page needs one test item and one score or more; got {num_items} items and "
                f"{len(self.scores)} scores. To fix: train with a larger test share."
            )
        wanted: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {
            "probs": (self.probs, (num_items, num_classes)),
            "votes": (self.votes, (num_items, num_classes)),
            "label": (self.label, (num_items,)),
            "truth": (self.truth, (num_items,)),
            **{f"scores[{name!r}]": (each, (num_items,)) for name, each in self.scores.items()},
            **{
                f"heads[{name!r}]": (each, (num_items, num_classes))
                for name, each in self.heads.items()
            },
        }
        for name, (array, shape) in wanted.items():
            if array.shape != shape:
                raise CredalError(f"{name} must have shape {shape}; got {array.shape}.")
        for name, score in self.scores.items():
            if not np.isfinite(score).all():
                place = int((~np.isfinite(score)).argmax())
                raise CredalError(
                    f"scores must be finite; scores[{name!r}] of item {self.items[place]!r} is "
                    f"{score[place]}. To fix: train again."
                )
        if not self.judged.any():
            raise CredalError(
                f"of the {num_items} test items none can be right or wrong: "
                f"{LACKING[self.against]}. To fix: train with a larger test share."
            )

    @property
    def deferring(self) -> str:
        """Name of the score that defers."""
        return next(iter(self.scores))

    @property
    def judged(self) -> np.ndarray:
        """Which items have a truth, shape (N,)."""
        known: np.ndarray = self.truth != NO_TRUTH
        return known

    @property
    def no_truth(self) -> str:
        """What stands where a true class would: "no single most-voted class"."""
        return f"no {HAVING[self.against].removeprefix('a ')}"

    @property
    def wrong(self) -> np.ndarray:
        """Which items have a truth that is not the label, shape (N,)."""
        wrong: np.ndarray = self.judged & (self.truth != self.label)
        return wrong

    @property
    def accuracy(self) -> float:
        """Share of right labels among the judged."""
        return 1 - float(self.wrong.sum() / self.judged.sum())

    @property
    def reliability(self) -> Reliability:
        """Confidence against accuracy in ten bins."""
        return reliability(self.probs[self.judged], self.truth[self.judged])

    def auarc(self, score: str) -> float:
        """Area under the accuracy–rejection curve by this score."""
        seen = self.judged
        return auarc(self.probs[seen], self.truth[seen], self.scores[score][seen])

    def confusion(self, rows: np.ndarray) -> np.ndarray:
        """How many of these rows have each truth (down) and label (across), shape (K, K)."""
        counts = np.zeros((len(self.classes),) * 2, dtype=np.int64)
        chosen = rows & self.judged
        np.add.at(counts, (self.truth[chosen], self.label[chosen]), 1)
        return counts
