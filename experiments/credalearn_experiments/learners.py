"""The default learner next to logistic regression and named methods, on crowd data sets.

Shapes: N items, K classes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from credalearn._folds import make_folds
from credalearn._targets import truth_of
from credalearn._temperature import fit_temperature, log_probs, temper
from credalearn.app.annotations.dawid_skene import posteriors
from credalearn.classifier import CredalClassifier
from credalearn.guarantees import certify
from credalearn.labels import from_posterior
from credalearn.metrics import accuracy, accuracy_rejection, ece
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.studies import Score, Studies, by_seed, score_table, value_of

_STRENGTHS = tuple(10.0**power for power in range(-3, 4))  # C of logistic regression
_CONFIDENCE = 0.9
_DEFAULT, _RIVAL, _SKILL = "default", "logistic regression", ", Dawid–Skene"
METRICS = (
    Column("accuracy"),
    Column("ECE", better="lower"),
    Column("log-likelihood of votes", percent=False, digits=3),
    Column("accuracy, 20 % deferred"),
    Column("kept"),
)


# From a set and a seed to predictions of its calibration and test items: probabilities (N, K) of
# the truth and of votes, and an uncertainty.
Predicted = tuple[Tensor, Tensor, Tensor]
Learner = Callable[[CrowdSet, int], Predicted]


def _classifier(
    data: CrowdSet, random_state: int, *, method: str, skill: bool = False
) -> Predicted:
    """A classifier on votes; with ``skill``, on Dawid and Skene's posteriors in their place."""
    makes = data.words if data.words and method != "auto" else data.features
    X, new = makes(data.train, data.others)
    labels, counts = data.labels, data.counts[data.train]
    right = truth_of(labels, None, np.arange(counts.shape[1]))
    if skill:
        labels = from_posterior(_by_skill(data)[data.train], counts.sum(1))
    clf = CredalClassifier(method, random_state=random_state, device="cpu")
    clf.fit(X, labels, groups=data.train_groups, truth=right)
    found = clf.predict_credal(new)
    said = clf.predict_credal(new, meaning="votes").probs
    return found.probs, said, found.score("top-probability")


def _logistic(
    data: CrowdSet, random_state: int, *, labels: Callable[[CrowdSet], np.ndarray]
) -> Predicted:
    """Logistic regression of scikit-learn on soft labels, C by cross-validation, tempered."""
    (X, new), soft, votes = data.inputs, labels(data)[data.train], data.labels
    right = truth_of(votes, None, np.arange(soft.shape[1]))
    folds = make_folds(right, data.train_groups, random_state=random_state)
    found = {C: _out_of_fold(X, soft, folds, C) for C in _STRENGTHS}
    best = max(found, key=lambda C: float((right * log_probs(found[C])).sum()))
    probs = torch.from_numpy(_probs(_fit(X, soft, best), new, soft.shape[1]))
    targets = (right, votes.reference)
    truth, said = (temper(probs, fit_temperature(found[best], each)) for each in targets)
    return truth, said, 1 - truth.amax(1)


def _fit(X: Any, soft: np.ndarray, C: float) -> Any:
    """Every item once per class that it may have, weighted by the share of that class."""
    item, label = np.nonzero(soft)
    scaled = [StandardScaler()] if isinstance(X, np.ndarray) else []
    pipe = make_pipeline(*scaled, LogisticRegression(C=C, max_iter=1000))
    return pipe.fit(X[item], label, logisticregression__sample_weight=soft[item, label])


def _probs(model: Any, X: Any, num_classes: int) -> np.ndarray:
    probs = np.full((X.shape[0], num_classes), 1e-6)
    probs[:, model.classes_] = model.predict_proba(X)
    return probs / probs.sum(1, keepdims=True)


def _out_of_fold(X: Any, soft: np.ndarray, folds: np.ndarray, C: float) -> Tensor:
    probs = np.zeros(soft.shape)
    for fold in range(folds.max() + 1):
        here = folds == fold
        probs[here] = _probs(_fit(X[~here], soft[~here], C), X[here], soft.shape[1])
    return torch.from_numpy(probs)


def _by_skill(data: CrowdSet) -> np.ndarray:
    """Dawid and Skene's posteriors, from votes on the training items."""
    assert data.named is not None
    own = np.isin(data.named[0], data.train)
    item, who, label = (each[own] for each in data.named)
    return posteriors(item, who, label, shape=data.counts.shape)


LEARNERS: dict[str, Learner] = {
    _DEFAULT: partial(_classifier, method="auto"),
    _DEFAULT + _SKILL: partial(_classifier, method="auto", skill=True),
    "logistic regression, majority": partial(
        _logistic, labels=lambda data: np.eye(data.counts.shape[1])[data.counts.argmax(1)]
    ),
    _RIVAL + _SKILL: partial(_logistic, labels=_by_skill),
    "logistic regression, soft labels": partial(
        _logistic, labels=lambda data: data.counts / data.counts.sum(1, keepdims=True).clip(1)
    ),
    "pocc (default of 0.1)": partial(_classifier, method="pocc"),
    "softmax": partial(_classifier, method="softmax"),
}


def learner_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Every learner on one split of a data set."""
    data = CROWD_SETS[cell](folders, random_state)
    for learner, learn in LEARNERS.items():
        if data.named is not None or _SKILL not in learner:
            values = zip(METRICS, _judged(data, *learn(data, random_state)), strict=True)
            yield from ((learner, column.name, value) for column, value in values)


STUDIES: Studies = {"learners": (learner_scores, CROWD_SETS)}


def _judged(data: CrowdSet, probs: Tensor, said: Tensor, score: Tensor) -> Iterator[float]:
    """The metrics of one learner, in their order."""
    truth, count = torch.from_numpy(data.truth[data.others]), len(data.split[1])
    known, test = (truth[:count] >= 0).nonzero()[:, 0], (truth[count:] >= 0).nonzero()[:, 0] + count
    rule = certify(
        score[known].numpy(),
        (probs.argmax(1) != truth)[known].numpy(),
        max_error=data.max_error,
        confidence=_CONFIDENCE,
        method="learn-then-test",
    )
    tested, y = probs[test].double(), truth[test]
    curve = accuracy_rejection(tested, y, score[test])
    votes = torch.from_numpy(data.judged[data.split[2]])
    yield accuracy(tested, y)
    yield ece(tested, y)
    yield float((votes * log_probs(said[count:])).sum() / votes.sum())
    yield float(curve[round(0.8 * len(curve)) - 1])  # by top probability
    yield float(np.mean(rule.keeps(score[count:].numpy())))


def learners_page(scores: pl.DataFrame) -> Iterator[Table | str]:
    """All learners on all sets, and the default next to the best logistic regression of each."""
    of = {name: own for name in CROWD_SETS if len(own := scores.filter(data=name))}
    for name, own in of.items():
        yield score_table(name, own, METRICS, _known(own))
    rows = {name: _differences(own) for name, own in of.items()}
    for name, own in of.items():
        if _DEFAULT + _SKILL in _known(own):
            rows[f"{name}, both on Dawid–Skene"] = _differences(own, _SKILL)
    columns = [replace(each, marked=False) for each in METRICS]
    yield Table("Default less the best logistic regression", columns, rows, corner="data")
    count = min(own["seed"].n_unique() for own in of.values())
    yield f"{count} seeds or more; mean ± standard deviation in the tables by set."
    yield (
        "The last table has paired differences with the half width of their 95 % interval "
        "(Student's t); the best logistic regression is chosen for each set and metric, after "
        "looking."
    )
    yield (
        "kept: share of test items under a learn-then-test certificate with 90 % confidence; its "
        "largest error is 20 % for LIDC and ArMIS and 5 % for the others."
    )


def _differences(scores: pl.DataFrame, labels: str = "") -> dict[str, Value]:
    """The default minus the rival with the best mean, by metric."""
    rivals = [each for each in _known(scores) if each.startswith(_RIVAL + labels)]
    found = {}
    for column in METRICS:
        means = {each: float(by_seed(scores, each, column.name).mean()) for each in rivals}
        best = (min if column.better == "lower" else max)(means, key=means.__getitem__)
        found[column.name] = value_of(scores, f"{_DEFAULT}{labels} less {best}", column.name)
    return found


def _known(scores: pl.DataFrame) -> list[str]:
    return [each for each in LEARNERS if each in set(scores["learner"])]
