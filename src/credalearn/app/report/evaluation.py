"""The test items of a run: what was predicted, what people said, and the truth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee
from credalearn.guarantees._truths import LACKING, Truth
from credalearn.metrics import Reliability, auarc, reliability

NO_TRUTH = -1

# Name of each score and its column in the table that Run.held_out returns.
SCORES = {
    "lower probability": "lower_probability",
    "MMI (imprecision)": "mmi",
    "top probability": "top_probability",
}


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Predictions for items that neither the training nor the guarantee has used."""

    items: tuple[str, ...]  # names of the items, N
    classes: tuple[str, ...]  # names of the classes, K
    probs: np.ndarray  # probabilities, shape (N, K)
    label: np.ndarray  # predicted classes, shape (N,)
    truth: np.ndarray  # true classes, −1 where an item has none, shape (N,)
    scores: Mapping[str, np.ndarray]  # by name, shape (N,) each; the first decides
    votes: np.ndarray  # votes by class, shape (N, K); zeros where they are not known
    # To show side by side: pessimist and optimist of POCC, or lower and upper bounds, (N, K) each.
    heads: Mapping[str, np.ndarray]
    against: Truth  # where the true classes come from

    def __post_init__(self) -> None:
        if not self.judged.any():
            raise CredalError(
                f"the report needs a test item with a truth: {LACKING[self.against]}. To fix: "
                "train with a larger test share."
            )

    @classmethod
    def of(cls, run: Run) -> Self:
        """The test items of a run."""
        classes = run.classes
        table = run.held_out("test")
        place = {name: number for number, name in enumerate(classes)}
        truth = [NO_TRUTH if each is None else place[each] for each in table["truth"]]
        first = run.deferral_score.replace("-", " ")
        others = [name for name in SCORES if name != first]
        return cls(
            items=tuple(table["item"]),
            classes=classes,
            probs=matrix(table, "p", classes),
            label=np.array([place[each] for each in table["label"]], dtype=np.int64),
            truth=np.array(truth, dtype=np.int64),
            scores={name: table[SCORES[name]].to_numpy() for name in [first, *others]},
            votes=matrix(table, "n", classes),
            heads=_heads(table, classes, run.facts.options["method"]),
            against=run.truth,
        )

    @property
    def score(self) -> np.ndarray:
        """The score that items are deferred by, shape (N,)."""
        return next(iter(self.scores.values()))

    def kept_by(self, guarantee: Guarantee) -> np.ndarray:
        """Which items a guarantee keeps, shape (N,)."""
        return guarantee.keeps(self.score, [self.classes[index] for index in self.label])

    @property
    def judged(self) -> np.ndarray:
        """Which items have a truth, shape (N,)."""
        return self.truth != NO_TRUTH

    @property
    def wrong(self) -> np.ndarray:
        """Which items have a truth that differs from the label, shape (N,)."""
        return self.judged & (self.truth != self.label)

    @property
    def accuracy(self) -> float:
        """Share of correct labels among the items with a truth."""
        return 1 - float(self.wrong.sum() / self.judged.sum())

    @property
    def without_truth(self) -> int:
        """Number of items without a truth."""
        return len(self.items) - int(self.judged.sum())

    @property
    def confidence(self) -> float:
        """Mean stated probability of the labels of items with a truth."""
        return float(self.probs[self.judged].max(1).mean())

    @property
    def reliability(self) -> Reliability:
        """Confidence against accuracy in ten bins."""
        return reliability(self.probs[self.judged], self.truth[self.judged])

    @property
    def auarc(self) -> float:
        """Area under the accuracy-rejection curve of the score that items are deferred by."""
        rows = self.judged
        return auarc(self.probs[rows], self.truth[rows], self.score[rows])


def matrix(table: pl.DataFrame, part: str, classes: tuple[str, ...]) -> np.ndarray:
    """Columns such as ``p:CLASS`` of all classes, shape (N, K)."""
    return table.select(f"{part}:{name}" for name in classes).to_numpy().astype(np.float64)


def _heads(table: pl.DataFrame, classes: tuple[str, ...], method: str) -> dict[str, np.ndarray]:
    two = f"v1:{classes[0]}" in table.columns and f"v2:{classes[0]}" not in table.columns
    if two and method.startswith("pocc"):
        return {"pessimist": matrix(table, "v0", classes), "optimist": matrix(table, "v1", classes)}
    lower, upper = matrix(table, "lower", classes), matrix(table, "upper", classes)
    if (upper > lower).any():
        return {"lower bound": lower, "upper bound": upper}
    return {"probability": matrix(table, "p", classes)}
