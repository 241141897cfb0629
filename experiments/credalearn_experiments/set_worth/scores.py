"""The figures that all classifiers are judged by.

Shapes: N items, K classes.
"""

from collections.abc import Iterator
from itertools import permutations

from torch import Tensor

from credalearn._temperature import fit_temperature, log_probs, temper
from credalearn.metrics import accuracy, auarc, ece
from credalearn_experiments.data.cifar import split_in_two
from credalearn_experiments.evaluation import tempered_ece
from credalearn_experiments.results.table import Column
from credalearn_experiments.studies import Score

METRICS = (
    Column("accuracy"),
    Column("AUARC"),
    Column("ECE", better="lower"),
    Column("ECE, tempered", better="lower"),
    Column("cross-entropy to people", better="lower", percent=False, digits=3),
    Column("the same, tempered", better="lower", percent=False, digits=3),
)


def scores_of(learner: str, probs: Tensor, right: Tensor, votes: Tensor) -> Iterator[Score]:
    """Each metric of a learner, given true classes (N,), −1 for none, and people's shares (N, K).

    AUARC defers by 1 − top probability. *Tempered*: each half of the items by the other half.
    """
    known = right >= 0
    sure, classes = probs[known], right[known]
    values = (
        accuracy(sure, classes),
        auarc(sure, classes, 1 - sure.amax(1)),
        ece(sure, classes),
        tempered_ece(sure, classes),
        _cross_entropy(probs, votes),
        _tempered_cross_entropy(probs, votes),
    )
    named = zip(METRICS, values, strict=True)
    return ((learner, column.name, value) for column, value in named)


def _cross_entropy(probs: Tensor, votes: Tensor) -> float:
    return float(-(votes * log_probs(probs)).sum(1).mean())


def _tempered_cross_entropy(probs: Tensor, votes: Tensor) -> float:
    """Each half of the items, tempered by the other half; the mean of both."""
    costs = []
    for rest, test in permutations(split_in_two(len(probs), len(probs) // 2)):
        tempered = temper(probs[test], fit_temperature(probs[rest], votes[rest]))
        costs.append(_cross_entropy(tempered, votes[test]))
    return sum(costs) / 2
