"""Which classes the labels of the test items confuse."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from credalearn.app.report.held_out import HeldOut

_MATRIX_CLASSES = 12  # larger matrices do not fit the page
_MOST_PAIRS = 15


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


def confusions(held_out: HeldOut, kept: np.ndarray | None) -> tuple[Confusion, ...]:
    """Of the kept and of the deferred items; of all items where nothing is decided."""
    if kept is None:
        return (Confusion.of(held_out, "all", np.ones(len(held_out.items), dtype=bool)),)
    return Confusion.of(held_out, "kept", kept), Confusion.of(held_out, "deferred", ~kept)
