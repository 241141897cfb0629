"""POCC on credal labels beside plain softmax, over random splits by patient."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from credalearn.demo.lidc import CLASSES, Nodules
from credalearn.estimator import CredalClassifier
from credalearn.labels import from_votes, precise
from credalearn.metrics import accuracy, accuracy_rejection, ece
from credalearn.predictions import CredalPredictions

TEST_SHARE = 0.3

# A model's name: the method, and the labels it learns from. Softmax on credal labels takes their
# reference, the vote shares.
MODELS = {
    "POCC": ("pocc", "credal"),
    "softmax, majority": ("softmax", "majority"),
    "softmax, vote shares": ("softmax", "credal"),
}

# A deferral rule's name: the model, and the score that defers.
RULES = {
    "POCC, lower prob.": ("POCC", "lower-probability"),
    "POCC, MMI": ("POCC", "mmi"),
    "softmax, majority": ("softmax, majority", "top-probability"),
    "softmax, vote shares": ("softmax, vote shares", "top-probability"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One split by patient: the trained models and what they say of the test nodules.

    Args:
        classifiers: By model.
        predictions: By model, of the test nodules that have a majority.
        y: The majority class of these nodules.
    """

    classifiers: dict[str, CredalClassifier]
    predictions: dict[str, CredalPredictions]
    y: np.ndarray

    def accuracy(self, model: str) -> float:
        """Share of test nodules whose majority class is predicted."""
        return accuracy(self.predictions[model].probs, self.y)

    def ece(self, model: str) -> float:
        """Expected calibration error on the test nodules."""
        return ece(self.predictions[model].probs, self.y)

    def kept_accuracy(self, rule: str, deferred: np.ndarray) -> np.ndarray:
        """Accuracy of the nodules kept when these shares are deferred, shape as ``deferred``."""
        model, score = RULES[rule]
        pred = self.predictions[model]
        curve = accuracy_rejection(pred.probs, self.y, pred.score(score)).numpy()
        kept = np.ceil((1 - deferred) * len(curve)).astype(int).clip(min=1)
        at_shares: np.ndarray = curve[kept - 1]
        return at_shares


def compare(nodules: Nodules, *, num_splits: int, epochs: int, seed: int) -> Iterator[Split]:
    """Train and test on several random splits by patient, one after the other.

    Every training nodule is learnt from, ties included (their majority goes to the lowest class).
    Test nodules whose votes tie have no right answer and are left out.
    """
    labels = {
        "credal": from_votes(nodules.votes),
        "majority": precise(np.eye(len(CLASSES))[nodules.majority]),
    }
    splitter = GroupShuffleSplit(num_splits, test_size=TEST_SHARE, random_state=seed)
    splits = splitter.split(nodules.features, groups=nodules.patients)
    for number, (train, test) in enumerate(splits):
        rows = test[nodules.has_majority[test]]
        classifiers, predictions = {}, {}
        for model, (method, kind) in MODELS.items():
            clf = CredalClassifier(method, epochs=epochs, weight_decay=1e-3, seed=seed + number)
            clf.fit(nodules.features[train], labels[kind][train], classes=CLASSES)
            classifiers[model] = clf
            predictions[model] = clf.predict_credal(nodules.features[rows])
        yield Split(classifiers, predictions, nodules.majority[rows])
