"""How good the predicted labels and probabilities are on the test items."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from credalearn.app.report.held_out import HeldOut

_MATRIX_CLASSES = 12  # larger matrices do not fit the page
_MOST_PAIRS = 15


@dataclass(frozen=True, slots=True)
class Bin:
    """Test items whose top probability lies between ``low`` and ``high``."""

    low: float
    high: float
    items: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """True classes against predicted classes."""

    which: Literal["all", "kept", "deferred"]  # which test items are counted
    items: int  # number of items with a truth
    wrong: int  # number of wrong labels
    matrix: tuple[tuple[int, ...], ...]  # by true and predicted class; empty for many classes
    pairs: tuple[tuple[str, str, int], ...]  # most frequent mistakes: truth, label, items

    @classmethod
    def of(
        cls, held_out: HeldOut, which: Literal["all", "kept", "deferred"], rows: np.ndarray
    ) -> Self:
        """Count the given rows, bool of shape (N,)."""
        classes = held_out.classes
        counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
        chosen = rows & held_out.judged
        np.add.at(counts, (held_out.truth[chosen], held_out.label[chosen]), 1)
        mistakes = counts - np.diag(np.diag(counts))
        order = np.argsort(-mistakes, axis=None, kind="stable")[:_MOST_PAIRS]
        pairs = [divmod(int(flat), len(classes)) for flat in order]
        few = len(classes) <= _MATRIX_CLASSES
        return cls(
            which=which,
            items=int(counts.sum()),
            wrong=int(mistakes.sum()),
            matrix=tuple(map(tuple, counts.tolist())) if few else (),
            pairs=tuple(
                (classes[t], classes[p], int(mistakes[t, p])) for t, p in pairs if mistakes[t, p]
            ),
        )


@dataclass(frozen=True, slots=True)
class Quality:
    """Accuracy, calibration and confusions."""

    accuracy: float  # share of correct labels
    ece: float  # expected calibration error, ten bins
    auarc: float  # area under the accuracy-rejection curve
    bins: tuple[Bin, ...]  # bins that contain an item
    confusions: tuple[Confusion, ...]  # of all items, or of the kept and of the deferred items
    left_out: int  # test items without a truth

    @classmethod
    def of(cls, held_out: HeldOut, kept: np.ndarray | None) -> Self:
        """Quality on the test items; ``kept`` says which ones a guarantee keeps."""
        found = held_out.reliability
        edges = zip(found.edges[:-1], found.edges[1:], strict=True)
        bins = zip(edges, found.count, found.confidence, found.accuracy, strict=True)
        if kept is None:
            everything = np.ones(len(held_out.items), dtype=bool)
            confusions: tuple[Confusion, ...] = (Confusion.of(held_out, "all", everything),)
        else:
            confusions = (
                Confusion.of(held_out, "kept", kept),
                Confusion.of(held_out, "deferred", ~kept),
            )
        return cls(
            accuracy=held_out.accuracy,
            ece=found.ece,
            auarc=held_out.auarc,
            bins=tuple(Bin(*ends, n, stated, right) for ends, n, stated, right in bins if n),
            confusions=confusions,
            left_out=int((~held_out.judged).sum()),
        )

    @property
    def confidence(self) -> float:
        """Mean stated probability of the labels."""
        items = sum(each.items for each in self.bins)
        return sum(each.items * each.confidence for each in self.bins) / items
