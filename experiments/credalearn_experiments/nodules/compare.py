"""Several ways to learn and to defer, side by side, over random splits by patient."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from credalearn.app.nodules import CLASSES, Nodules
from credalearn.estimator import CredalClassifier
from credalearn.labels import from_votes
from credalearn.methods import BASES, METHODS
from credalearn.metrics import accuracy, accuracy_rejection, auarc, ece
from credalearn.predictions import CredalPredictions

TEST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to learn and to defer.

    Args:
        name: What tables call it.
        method: A key of ``METHODS``.
        score: What defers, a key of ``SCORES``.
        collapse: Learn from the majority only, and only where there is one.
    """

    name: str
    method: str
    score: str
    collapse: bool = False


BASIC = (
    Contender("POCC, lower prob.", "pocc", "lower-probability"),
    Contender("POCC, top prob.", "pocc", "top-probability"),
    Contender("POCC, MMI", "pocc", "mmi"),
    Contender("softmax, majority", "softmax", "top-probability", collapse=True),
    Contender("softmax, vote shares", "softmax", "top-probability"),
)
EVERY_METHOD = tuple(Contender(name, name, method.score) for name, method in METHODS.items())


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One split by patient: what every contender says of the test nodules.

    Args:
        classifiers: By the contender's name.
        predictions: By the contender's name, of the test nodules that have a majority.
        y: The majority class of these nodules.
    """

    classifiers: dict[str, CredalClassifier]
    predictions: dict[str, CredalPredictions]
    y: np.ndarray

    def metrics(self, contender: Contender) -> dict[str, float]:
        """Accuracy, calibration and deferral, by the contender's score and by one for all."""
        pred = self.predictions[contender.name]
        return {
            "accuracy": accuracy(pred.probs, self.y),
            "ece": ece(pred.probs, self.y),
            "auarc": auarc(pred.probs, self.y, pred.score(contender.score)),
            "auarc-common": auarc(pred.probs, self.y, pred.score("top-probability")),
        }

    def kept_accuracy(self, contender: Contender, deferred: np.ndarray) -> np.ndarray:
        """Accuracy of the nodules kept when these shares are deferred, shape as ``deferred``."""
        pred = self.predictions[contender.name]
        curve = accuracy_rejection(pred.probs, self.y, pred.score(contender.score)).numpy()
        kept = np.ceil((1 - deferred) * len(curve)).astype(int).clip(min=1)
        at_shares: np.ndarray = curve[kept - 1]
        return at_shares


def compare(
    nodules: Nodules,
    contenders: Sequence[Contender],
    *,
    num_splits: int,
    epochs: int,
    seed: int,
) -> Iterator[Split]:
    """Train and test on several random splits by patient, one after the other.

    Test nodules whose votes tie have no right answer and are left out.
    """
    splitter = GroupShuffleSplit(num_splits, test_size=TEST_SHARE, random_state=seed)
    splits = splitter.split(nodules.features, groups=nodules.patients)
    for number, (train, test) in enumerate(splits):
        fitted = _Trainings(nodules, train, epochs)
        rows = test[nodules.has_majority[test]]
        classifiers = {
            each.name: fitted.classifier(each.method, each.collapse, seed + number)
            for each in contenders
        }
        predictions = {
            name: clf.predict_credal(nodules.features[rows]) for name, clf in classifiers.items()
        }
        yield Split(classifiers, predictions, nodules.majority[rows])


class _Trainings:
    """The classifiers of one split: each network is trained once, whoever needs it."""

    def __init__(self, nodules: Nodules, train: np.ndarray, epochs: int) -> None:
        self.nodules, self.train, self.epochs = nodules, train, epochs
        self.done: dict[tuple[str, bool, int], CredalClassifier] = {}

    def classifier(self, method: str, collapse: bool, seed: int) -> CredalClassifier:
        """Trained on this split, or built on networks that are."""
        key = (method, collapse, seed)
        if key not in self.done:
            rows = self.train
            rows = rows[self.nodules.has_majority[rows]] if collapse else rows
            members = None
            if method in BASES:
                seeds = range(seed, seed + METHODS[method].num_members)
                bases = [self.classifier(BASES[method], collapse, each) for each in seeds]
                members = [base.model_.members[0] for base in bases]
            clf = CredalClassifier(
                method, collapse=collapse, epochs=self.epochs, weight_decay=1e-3, random_state=seed
            )
            labels = from_votes(self.nodules.votes[rows])
            clf.fit(self.nodules.features[rows], labels, classes=CLASSES, members=members)
            self.done[key] = clf
        return self.done[key]
