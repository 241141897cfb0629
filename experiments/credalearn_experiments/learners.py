"""The default learner next to logistic regression and named methods, on crowd data sets.

Shapes: N items, K classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from joblib import Parallel, delayed
from scipy.stats import t as student
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
from credalearn.labels import from_posterior, from_votes
from credalearn.metrics import accuracy, accuracy_rejection, ece
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.results.table import Column, Table, Value

_STRENGTHS = tuple(10.0**power for power in range(-3, 4))  # C of logistic regression
_CONFIDENCE = 0.9
_DEFAULT, _RIVAL, _SKILL = "default", "logistic regression", ", Dawid–Skene"
_KEYS = ("data", "seed", "learner")
_METRICS = {
    "accuracy": Column("accuracy"),
    "ece": Column("ECE", better="lower"),
    "vote_log_likelihood": Column("log-likelihood of votes", percent=False, digits=3),
    "accuracy_kept": Column("accuracy, 20 % deferred"),
    "kept": Column("kept"),
}
Score = dict[str, Any]  # of one learner on one set with one seed: the keys and the metrics


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Probabilities of new items, shape (N, K), for both meanings, and an uncertainty."""

    truth: Tensor
    votes: Tensor
    score: Tensor


# From a set and a seed to predictions of its calibration and test items.
Learner = Callable[[CrowdSet, int], Predicted]


def _classifier(method: str, *, skill: bool = False) -> Learner:
    """A classifier on votes; with ``skill``, on Dawid and Skene's posteriors in their place."""

    def learn(data: CrowdSet, seed: int) -> Predicted:
        makes = data.features if method == "auto" else data.words
        X, new = makes(data.train, data.others)
        groups = None if data.groups is None else data.groups[data.train]
        clf = CredalClassifier(method, random_state=seed, device="cpu")
        counts = data.counts[data.train]
        labels = votes = from_votes(counts)
        if skill:
            labels = from_posterior(_by_skill(data)[data.train], counts.sum(1))
        right = truth_of(votes, None, np.arange(counts.shape[1]))
        clf.fit(X, labels, groups=groups, truth=right)
        found = clf.predict_credal(new)
        said = clf.predict_credal(new, meaning="votes").probs
        return Predicted(found.probs, said, found.score("top-probability"))

    return learn


def _logistic(labels: Callable[[CrowdSet], np.ndarray]) -> Learner:
    """Logistic regression of scikit-learn on soft labels, C by cross-validation, tempered."""

    def learn(data: CrowdSet, seed: int) -> Predicted:
        X, new = data.features(data.train, data.others)
        soft = labels(data)[data.train]
        votes = from_votes(data.counts[data.train])
        right = truth_of(votes, None, np.arange(soft.shape[1]))
        groups = None if data.groups is None else data.groups[data.train]
        folds = make_folds(right, groups, random_state=seed)
        found = {C: _out_of_fold(X, soft, folds, C) for C in _STRENGTHS}
        best = max(found, key=lambda C: float((right * log_probs(found[C])).sum()))
        probs = torch.from_numpy(_probs(_fit(X, soft, best), new, soft.shape[1]))
        targets = (right, votes.reference)
        truth, said = (temper(probs, fit_temperature(found[best], each)) for each in targets)
        return Predicted(truth, said, 1 - truth.amax(1))

    return learn


def _fit(X: Any, soft: np.ndarray, C: float) -> Any:
    """Every item once per class that it may have, weighted by the share of that class."""
    item, label = np.nonzero(soft)
    model = LogisticRegression(C=C, max_iter=1000)
    pipe = make_pipeline(StandardScaler(with_mean=isinstance(X, np.ndarray)), model)
    if not isinstance(X, np.ndarray):
        pipe = make_pipeline(model)
    return pipe.fit(X[item], label, logisticregression__sample_weight=soft[item, label])


def _probs(model: Any, X: Any, num_classes: int) -> np.ndarray:
    probs = np.full((X.shape[0], num_classes), 1e-6)
    probs[:, model.classes_] = model.predict_proba(X)
    found: np.ndarray = probs / probs.sum(1, keepdims=True)
    return found


def _out_of_fold(X: Any, soft: np.ndarray, folds: np.ndarray, C: float) -> Tensor:
    probs = np.zeros(soft.shape)
    for fold in range(folds.max() + 1):
        here = folds == fold
        probs[here] = _probs(_fit(X[~here], soft[~here], C), X[here], soft.shape[1])
    return torch.from_numpy(probs)


def _shares(data: CrowdSet) -> np.ndarray:
    shares: np.ndarray = data.counts / np.maximum(data.counts.sum(1, keepdims=True), 1)
    return shares


def _by_skill(data: CrowdSet) -> np.ndarray:
    """Dawid and Skene's posteriors, from votes on the training items."""
    assert data.named is not None
    own = np.isin(data.named[0], data.train)
    item, who, label = (each[own] for each in data.named)
    return posteriors(item, who, label, shape=data.counts.shape)


LEARNERS: dict[str, Learner] = {
    _DEFAULT: _classifier("auto"),
    _DEFAULT + _SKILL: _classifier("auto", skill=True),
    "logistic regression, majority": _logistic(
        lambda data: np.eye(data.counts.shape[1])[data.counts.argmax(1)]
    ),
    _RIVAL + _SKILL: _logistic(_by_skill),
    "logistic regression, soft labels": _logistic(_shares),
    "pocc (default of 0.1)": _classifier("pocc"),
    "softmax": _classifier("softmax"),
}


def run_learners(
    path: Path, folders: DataFolders, *, seeds: Sequence[int], workers: int
) -> Iterator[str]:
    """Do what is missing in the file, set by set and seed by seed; a line for each."""
    done = set(read_scores(path).select(_KEYS).rows()) if path.exists() else set()
    jobs = (delayed(_scores)(name, seed, folders, done) for seed in seeds for name in CROWD_SETS)
    for found in Parallel(n_jobs=workers, return_as="generator_unordered")(jobs):
        for score in found:
            new = pl.DataFrame([score])
            table = pl.concat([read_scores(path), new], how="diagonal") if path.exists() else new
            table.sort(_KEYS).write_csv(path, float_precision=6)
            yield f"{score['data']}, seed {score['seed']}, {score['learner']}"


def _scores(name: str, seed: int, folders: DataFolders, done: set[tuple[Any, ...]]) -> list[Score]:
    torch.set_num_threads(1)  # this process is joblib's own
    data = CROWD_SETS[name](folders, seed)
    known = [each for each in LEARNERS if data.named is not None or _SKILL not in each]
    missing = [each for each in known if (name, seed, each) not in done]
    return [_judged(name, learner, seed, data, LEARNERS[learner]) for learner in missing]


def _judged(name: str, learner: str, seed: int, data: CrowdSet, learn: Learner) -> Score:
    found = learn(data, seed)
    count = len(data.split[1])
    truth = torch.from_numpy(data.truth[data.others])
    known = truth >= 0
    wrong = (found.truth.argmax(1) != truth)[:count]
    rule = certify(
        found.score[:count][known[:count]].numpy(),
        wrong[known[:count]].numpy(),
        max_error=data.max_error,
        confidence=_CONFIDENCE,
        method="learn-then-test",
    )
    test, y = known[count:], truth[count:]
    probs, score = found.truth[count:][test].double(), found.score[count:][test]
    curve = accuracy_rejection(probs, y[test], score)
    votes = torch.from_numpy(data.judged[data.split[2]])
    return {
        "data": name,
        "learner": learner,
        "seed": seed,
        "accuracy": accuracy(probs, y[test]),
        "ece": ece(probs, y[test]),
        "vote_log_likelihood": float((votes * log_probs(found.votes[count:])).sum() / votes.sum()),
        "accuracy_kept": float(curve[round(0.8 * len(curve)) - 1]),  # by top probability
        "kept": float(np.mean(rule.keeps(found.score[count:].numpy()))),
    }


def read_scores(path: Path) -> pl.DataFrame:
    """The scores in a CSV file."""
    return pl.read_csv(path)


def learners_page(scores: pl.DataFrame) -> Iterator[Table | str]:
    """All learners on all sets, and the default next to the best logistic regression of each."""
    held = set(scores["data"])
    names = [name for name in CROWD_SETS if name in held]
    for name in names:
        found = {learner: _values(scores, name, learner) for learner in LEARNERS}
        rows = {learner: _spread(values) for learner, values in found.items() if len(values)}
        yield Table(name, [*_METRICS.values()], rows, corner="learner")
    rows = {name: _differences(scores, name) for name in names}
    for name in names:
        if len(_values(scores, name, _DEFAULT + _SKILL)):
            rows[f"{name}, both on Dawid–Skene"] = _differences(scores, name, _SKILL)
    columns = [replace(each, marked=False) for each in _METRICS.values()]
    yield Table("Default less the best logistic regression", columns, rows, corner="data")
    count = min(len(_values(scores, name, _DEFAULT)) for name in names)
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


def _values(scores: pl.DataFrame, data: str, learner: str) -> np.ndarray:
    """The metrics of each seed, shape (seeds, metrics)."""
    own = scores.filter(pl.col("data") == data, pl.col("learner") == learner)
    return own.sort("seed").select(list(_METRICS)).to_numpy()


def _spread(values: np.ndarray) -> dict[str, Value]:
    found = zip(_METRICS.values(), values.mean(0), values.std(0), strict=True)
    return {column.name: (float(mean), float(spread)) for column, mean, spread in found}


def _differences(scores: pl.DataFrame, data: str, labels: str = "") -> dict[str, Value]:
    own, kind = _values(scores, data, _DEFAULT + labels), _RIVAL + labels
    rivals = [_values(scores, data, name) for name in LEARNERS if name.startswith(kind)]
    found: dict[str, Value] = {}
    for number, column in enumerate(_METRICS.values()):
        sign = -1 if column.better == "lower" else 1
        known = [each[:, number] for each in rivals if len(each)]
        best = max(known, key=lambda values: float(sign * values.mean()))
        gap = own[:, number] - best
        error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else np.nan
        found[column.name] = (float(gap.mean()), float(student.ppf(0.975, len(gap) - 1) * error))
    return found
