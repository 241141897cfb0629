"""Several ways to learn and to defer, over random splits of the lung nodules by patient."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from credalearn.app.nodules import CLASSES, Nodules
from credalearn.classifier import CredalClassifier
from credalearn.labels import from_votes
from credalearn.methods import METHODS
from credalearn.metrics import accuracy, accuracy_rejection, auarc, ece
from credalearn.predictions import CredalPredictions

TEST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to learn and to defer.

    Args:
        name: Used in tables.
        method: A key of ``METHODS``.
        score: The score that defers, a key of ``SCORES``.
        collapse: Learn from the majority only, and only where there is one.
    """

    name: str
    method: str
    score: str
    collapse: bool = False


CONTENDERS = {
    "basic": (
        Contender("POCC, lower prob.", "pocc", "lower-probability"),
        Contender("POCC, top prob.", "pocc", "top-probability"),
        Contender("POCC, MMI", "pocc", "mmi"),
        Contender("softmax, majority", "softmax", "top-probability", collapse=True),
        Contender("softmax, vote shares", "softmax", "top-probability"),
    ),
    "all": tuple(Contender(name, name, method.score) for name, method in METHODS.items()),
}


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Predictions for the test nodules that have a majority, by contender, and their classes."""

    predictions: dict[Contender, CredalPredictions]
    y: np.ndarray

    def metrics(self, contender: Contender) -> dict[str, float]:
        """Accuracy, calibration, and deferral by the contender's own score and by a common one."""
        pred = self.predictions[contender]
        return {
            "accuracy": accuracy(pred.probs, self.y),
            "ece": ece(pred.probs, self.y),
            "auarc": auarc(pred.probs, self.y, pred.score(contender.score)),
            "auarc-common": auarc(pred.probs, self.y, pred.score("top-probability")),
        }

    def kept_accuracy(self, contender: Contender, deferred: np.ndarray) -> np.ndarray:
        """Accuracy of the rest when these shares are deferred, shape as ``deferred``."""
        pred = self.predictions[contender]
        curve = accuracy_rejection(pred.probs, self.y, pred.score(contender.score)).numpy()
        kept = np.ceil((1 - deferred) * len(curve)).astype(int).clip(min=1)
        at_shares: np.ndarray = curve[kept - 1]
        return at_shares


def splits(
    nodules: Nodules, contenders: Sequence[Contender], *, num_splits: int, epochs: int
) -> Iterator[Split]:
    """Train and test on random splits by patient; ties have no true class and are not tested."""
    splitter = GroupShuffleSplit(num_splits, test_size=TEST_SHARE, random_state=0)
    parts = splitter.split(nodules.features, groups=nodules.patients)
    for number, (train, test) in enumerate(parts):
        rows = test[nodules.has_majority[test]]
        fitted: dict[tuple[str, bool], CredalPredictions] = {}
        for each in contenders:
            if (each.method, each.collapse) not in fitted:
                seen = train[nodules.has_majority[train]] if each.collapse else train
                clf = CredalClassifier(
                    each.method,
                    collapse=each.collapse,
                    epochs=epochs,
                    weight_decay=1e-3,
                    random_state=number,
                )
                clf.fit(nodules.features[seen], from_votes(nodules.votes[seen]), classes=CLASSES)
                found = clf.predict_credal(nodules.features[rows])
                fitted[each.method, each.collapse] = found
        predictions = {each: fitted[each.method, each.collapse] for each in contenders}
        yield Split(predictions, nodules.majority[rows])
